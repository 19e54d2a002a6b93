// Downloads from a server that breaks off, lies or is not there: resumed, refused, never half
// there.
#include "engine/input/prepare/fetch.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <iterator>

#include "engine/input/prepare/make.h"
#include "engine/input/prepare/staged_folder.h"
#include "engine/input/prepare/verify.h"
#include "tests/support/expect_error.h"
#include "tests/support/http_server.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

std::string make_body(std::size_t bytes) {
  std::string body;
  for (std::size_t i = 0; i < bytes; ++i) body += static_cast<char>(i * 7 + i / 256);
  return body;
}

const std::map<std::string, HttpServer::File> kNoFiles;

struct Entry {
  std::string name, content;
  unsigned type = AE_IFREG;
};

class Fetch : public ::testing::Test {
 protected:
  const fs::path& folder() const { return scratch_.path(); }
  fs::path out() const { return folder() / "out"; }

  // A set of one file, published with the checksum of `content`.
  PublishedSet make_set(const std::string& name, const std::string& content) const {
    std::ofstream(folder() / "probe", std::ios::binary) << content;
    PublishedSet set;
    set.name = "numbers";
    set.about = "a test";
    set.files = {{name, "http://nowhere.invalid", content.size(), "sha256",
                  file_digest(folder() / "probe", "sha256")}};
    return set;
  }

  std::string fetch(const PublishedSet& set, const HttpServer& server, int retries = 3) const {
    FetchOptions options;
    options.out = out();
    options.mirror = server.url() + "/";
    options.quiet = true;
    options.retries = retries;
    options.pause_seconds = 0.01;
    options.stalled_seconds = 1;
    return fetch_set(set, options);
  }

  void expect_bad(const PublishedSet& set, const HttpServer& server,
                  const std::vector<std::string>& parts) const {
    expect_error(ErrorKind::input, parts, [&] { fetch(set, server, 0); });
  }

  // As tar.gz or zip.
  std::string make_archive(const std::vector<Entry>& entries, bool zip = false) const {
    const fs::path file = folder() / "made";
    archive* writer = archive_write_new();
    if (zip) {
      archive_write_set_format_zip(writer);
    } else {
      archive_write_set_format_pax_restricted(writer);
      archive_write_add_filter_gzip(writer);
    }
    archive_write_open_filename(writer, file.c_str());
    for (const Entry& made : entries) {
      archive_entry* entry = archive_entry_new();
      archive_entry_set_pathname(entry, made.name.c_str());
      archive_entry_set_filetype(entry, made.type);
      archive_entry_set_perm(entry, 0644);
      archive_entry_set_size(entry, static_cast<la_int64_t>(made.content.size()));
      if (made.type == AE_IFLNK) archive_entry_set_symlink(entry, "/etc");
      archive_write_header(writer, entry);
      archive_write_data(writer, made.content.data(), made.content.size());
      archive_entry_free(entry);
    }
    archive_write_close(writer);
    archive_write_free(writer);
    return file_text(file);
  }

  Scratch scratch_;
};

TEST_F(Fetch, DigestsOfKnownText) {
  std::ofstream(folder() / "abc") << "abc";
  EXPECT_EQ(file_digest(folder() / "abc", "sha256"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");  // FIPS 180-2
  EXPECT_EQ(file_digest(folder() / "abc", "md5"), "900150983cd24fb0d6963f7d28e17f72");  // RFC 1321
}

TEST_F(Fetch, AFileComesAndNothingElseIsLeft) {
  const std::string body = make_body(300'000);
  HttpServer server({{"a.gz", {body}}});
  expect_parts(fetch(make_set("a.gz", body), server), {"checksums match"});
  EXPECT_EQ(file_text(out() / "a.gz"), body);
  EXPECT_EQ(std::distance(fs::directory_iterator(out()), {}), 1);
  fetch(make_set("a.gz", body), server);
  EXPECT_EQ(server.requests().size(), 1U) << "what is there is not fetched again";
}

TEST_F(Fetch, GoesOnWhereTheServerBrokeOff) {
  const std::string body = make_body(200'000);
  HttpServer server({{"a", {.body = body, .cuts = {70'000, 50'000}}}});
  fetch(make_set("a", body), server);
  EXPECT_EQ(file_text(out() / "a"), body);
  EXPECT_EQ(server.requests(),
            (std::vector<std::string>{"a from 0", "a from 70000", "a from 120000"}));
}

TEST_F(Fetch, GoesOnInTheNextCall) {
  const std::string body = make_body(200'000);
  HttpServer server({{"a", {.body = body, .cuts = {70'000}}}});
  expect_bad(make_set("a", body), server, {"stopped after 70000 of 200000 bytes", server.url()});
  EXPECT_FALSE(fs::exists(out() / "a"));
  fetch(make_set("a", body), server);
  EXPECT_EQ(file_text(out() / "a"), body);
  EXPECT_EQ(server.requests().back(), "a from 70000");
}

TEST_F(Fetch, AServerWithoutRangesBeginsAgain) {
  const std::string body = make_body(200'000);
  HttpServer server({{"a", {.body = body, .ranges = false, .cuts = {70'000}}}});
  fetch(make_set("a", body), server);
  EXPECT_EQ(file_text(out() / "a"), body);
}

TEST_F(Fetch, PassingFailuresAreTriedAgainOthersAreNot) {
  const std::string body = make_body(1000);
  HttpServer server({{"a", {.body = body, .statuses = {503, 429}}}, {"b", {.statuses = {403}}}});
  fetch(make_set("a", body), server);
  EXPECT_EQ(server.requests().size(), 3U);
  expect_error(ErrorKind::input, {"403", "/b"}, [&] { fetch(make_set("b", body), server); });
  expect_error(ErrorKind::input, {"404", "/c"}, [&] { fetch(make_set("c", body), server); });
  EXPECT_EQ(server.requests().size(), 5U) << "no retries of what will stay";
}

TEST_F(Fetch, RedirectionsAreFollowedButNotToFiles) {
  const std::string body = make_body(1000);
  HttpServer target({{"a", {body}}});
  HttpServer server({{"a", {.statuses = {302}, .location = target.url() + "/a"}},
                     {"b", {.statuses = {302}, .location = "file:///etc/hostname"}}});
  fetch(make_set("a", body), server);
  EXPECT_EQ(file_text(out() / "a"), body);
  expect_bad(make_set("b", body), server, {"file", "/b"});
}

TEST_F(Fetch, AServerThatFallsSilent) {
  HttpServer server({{"a", {.body = make_body(1000), .silent = true}}});
  expect_bad(make_set("a", make_body(1000)), server,
             {"stopped after 0 of 1000 bytes", "call again"});
}

TEST_F(Fetch, WrongBytesNeverGetTheName) {
  const std::string body = make_body(1000);
  std::string other = body;
  other[500] ^= 1;
  HttpServer server({{"a", {other}}, {"long", {body + "more"}}, {"short", {body.substr(1)}}});
  expect_bad(make_set("a", body), server, {"sha256 differs", "/a"});
  EXPECT_FALSE(fs::exists(out() / ".partial/a")) << "it would be resumed";
  expect_bad(make_set("long", body), server, {"more than the published 1000 bytes"});
  expect_bad(make_set("short", body), server, {"after 999 of 1000 bytes"});
  for (const char* name : {"a", "long", "short"}) EXPECT_FALSE(fs::exists(out() / name)) << name;
}

TEST_F(Fetch, WhatIsThereIsNotOverwritten) {
  const std::string body = make_body(1000);
  HttpServer server({{"a", {body}}});
  fs::create_directories(out());
  std::ofstream(out() / "a") << "mine";
  expect_bad(make_set("a", body), server, {"differs from the published one", "out/a"});
  EXPECT_EQ(file_text(out() / "a"), "mine");
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(Fetch, NobodyListensOrNoSuchHost) {
  std::string url;
  {
    HttpServer server(kNoFiles);
    url = server.url();
  }
  FetchOptions options{.out = out(), .mirror = url, .quiet = true, .retries = 0};
  expect_error(ErrorKind::input, {url, "https_proxy"},
               [&] { fetch_set(make_set("a", "text"), options); });
  options.mirror = "ftp://127.0.0.1";
  expect_error(ErrorKind::input, {"ftp", "http:// or https://"},
               [&] { fetch_set(make_set("a", "text"), options); });
}

TEST_F(Fetch, TooLittleRoomIsSeenBefore) {
  PublishedSet set = make_set("a", "text");
  set.files[0].bytes = std::uint64_t{1} << 60;
  HttpServer server(kNoFiles);
  expect_bad(set, server, {"too little space"});
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(Fetch, ArchivesAreUnpacked) {
  for (const bool zip : {false, true}) {
    const std::string archive = make_archive(
        {{"set/", "", AE_IFDIR}, {"set/x/a.bin", make_body(99'999)}, {"set/b", ""}}, zip);
    PublishedSet set = make_set(zip ? "s.zip" : "s.tar.gz", archive);
    set.folder = "set";
    set.unpacked_bytes = 100'000;
    const std::map<std::string, HttpServer::File> files = {{set.files[0].name, {archive}}};
    HttpServer server(files);
    expect_parts(fetch(set, server), {"--data"});
    EXPECT_EQ(file_text(out() / "x/a.bin"), make_body(99'999));
    EXPECT_EQ(fs::file_size(out() / "b"), 0U);
    EXPECT_EQ(std::distance(fs::directory_iterator(out()), {}), 2);
    expect_bad(set, server, {"not empty", "out"});
    EXPECT_EQ(server.requests().size(), 1U);
    fs::remove_all(out());
  }
}

TEST_F(Fetch, ClassFoldersBecomeShards) {
  RandomSequence random(1, Stream::synthetic, 0);
  const std::string jpeg = encode_jpeg(make_noise(0, 5, 32, 32, random), 87);
  const std::string archive = make_archive({{"set/train/a/1.jpg", jpeg},
                                            {"set/train/b/2.jpg", jpeg},
                                            {"set/test/a/3.jpg", jpeg},
                                            {"set/test/b/4.jpg", jpeg}});
  PublishedSet set = make_set("s.tar.gz", archive);
  set.folder = "set";
  set.unpacked_bytes = 100'000;
  const std::map<std::string, HttpServer::File> files = {{"s.tar.gz", {archive}}};
  HttpServer server(files);
  FetchOptions options{.out = out(), .mirror = server.url(), .tfrecord = true, .quiet = true};
  fetch_set(set, options);
  const Verified verified = verify_folder(out(), 1, true);
  EXPECT_TRUE(verified.whole());
  EXPECT_EQ(verified.format, "TFDS folder");
  EXPECT_EQ(verified.images, 4U);
  EXPECT_FALSE(fs::exists(out() / ".partial"));
}

TEST_F(Fetch, AnArchiveThatWouldWriteElsewhere) {
  const auto refused = [&](const Entry& entry, const std::string& part) {
    SCOPED_TRACE(entry.name);
    std::ofstream(folder() / "evil", std::ios::binary) << make_archive({{"ok", "1"}, entry});
    fs::remove_all(out());
    fs::create_directories(out());
    expect_error(ErrorKind::input, {part, "evil"},
                 [&] { unpack(folder() / "evil", out(), 1000, true); });
  };
  refused({"../out-of-it", "x"}, "outside");
  refused({"a/../../out-of-it", "x"}, "outside");
  refused({"/etc/paceline-evil", "x"}, "outside");
  refused({"link", "", AE_IFLNK}, "link or device");
  refused({"fifo", "", AE_IFIFO}, "link or device");
  refused({"ok", "again"}, "a name twice");
  refused({"large", make_body(2000)}, "more than 1.0 kB");
  EXPECT_FALSE(fs::exists(folder() / "out-of-it"));
}

TEST_F(Fetch, ADamagedArchive) {
  std::string archive = make_archive({{"a", make_body(50'000)}});
  std::ofstream(folder() / "cut", std::ios::binary) << archive.substr(0, archive.size() / 2);
  fs::create_directories(out());
  expect_error(ErrorKind::input, {"damaged", "cut"},
               [&] { unpack(folder() / "cut", out(), 100'000, true); });
  std::ofstream(folder() / "page", std::ios::binary) << "<html></html>";
  expect_error(ErrorKind::input, {"damaged", "page"},
               [&] { unpack(folder() / "page", out(), 100'000, true); });
}

TEST(PublishedSets, AreWellFormed) {
  for (const PublishedSet& set : published_sets()) {
    for (const PublishedFile& file : set.files) {
      EXPECT_TRUE(file.base.starts_with("https://")) << file.name;
      EXPECT_EQ(file.digest.size(), file.algorithm == "md5" ? 32U : 64U) << file.name;
      EXPECT_EQ(file.digest.find_first_not_of("0123456789abcdef"), std::string::npos) << file.name;
    }
    EXPECT_TRUE(set.folder.empty() || set.files.size() == 1) << set.name;
    EXPECT_EQ(&published_set_at(set.name), &set);
  }
  expect_error(ErrorKind::usage, {"unknown data set \"mnits\"", "\"mnist\"?"},
               [] { published_set_at("mnits"); });
}

TEST(PublishedSets, OptionsThatDoNotApplyAreRefused) {
  FetchOptions options;
  options.mirror = "mirror.site";
  expect_error(ErrorKind::usage, {"--mirror mirror.site", "not a URL"},
               [&] { describe_fetch(published_set_at("mnist"), options); });
  options.mirror = "http://mirror.site/";
  expect_parts(describe_fetch(published_set_at("mnist"), options),
               {"  http://mirror.site/train-images-idx3-ubyte.gz\n"});
  options.tfrecord = true;
  expect_error(ErrorKind::usage, {"--tfrecord", "mnist does not come as class folders"},
               [&] { describe_fetch(published_set_at("mnist"), options); });
}

}  // namespace
}  // namespace paceline
