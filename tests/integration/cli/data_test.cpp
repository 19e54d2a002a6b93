// `paceline data`: sets made, fetched and verified as a user does, and what goes wrong on the way.
#include <nlohmann/json.hpp>

#include "tests/integration/cli/paceline.h"
#include "tests/support/has_engine.h"
#include "tests/support/http_server.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

const std::string kMake = "data make cassava --images 12 --size-min 40 --size-max 60 --out ";
const char* const kMnistFiles[] = {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                                   "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"};

class CliData : public Cli {
 protected:
  std::map<std::string, HttpServer::File> mnist() const {
    std::map<std::string, HttpServer::File> files;
    for (const char* name : kMnistFiles) {
      files[name] = {file_text(fs::path(PACELINE_SOURCE_DIR "/data/mnist") / name)};
    }
    return files;
  }

  bool can_fetch() const {
    return !contains(
        paceline("data fetch mnist --out x --mirror http://127.0.0.1:1 --retries 0").err,
        "this build cannot download");
  }

  std::string fetch_from(const HttpServer& server) const {
    return "data fetch mnist --out got --mirror " + server.url();
  }
};

TEST_F(CliData, MadeThenVerified) {
  expect_parts(succeed(kMake + "'a set'").out, {"20 synthetic images"});
  expect_parts(succeed("data verify 'a set'").out, {"synthetic", "whole: 20 good images"});
  const Ran ran = paceline("data verify 'a set' --json --threads 2");
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json.at("whole"), true);
  EXPECT_EQ(json.at("synthetic"), true);
  EXPECT_EQ(json.at("splits").size(), 3U);
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder()), {}), 1) << "something was left behind";
}

TEST_F(CliData, DamageIsExitCodeOne) {
  succeed(kMake + "set --quiet");
  const Ran ran = shell(
      "printf X | dd of=set/cassava-train.tfrecord-00002-of-00008 bs=1 seek=300 conv=notrunc "
      "2> /dev/null; paceline data verify set");
  EXPECT_EQ(ran.code, 1);
  expect_parts(ran.out, {"wrong: train: ", "00002-of-00008, record 0"});
}

TEST_F(CliData, APartOfCifar10IsNotWhole) {
  succeed("data make cifar10 --images 50 --out set --quiet");
  succeed("data verify set");
  fs::remove(folder() / "set/data_batch_2.bin");
  const Ran ran = paceline("data verify set");
  EXPECT_EQ(ran.code, 1);
  expect_parts(ran.out, {"wrong: data_batch_2.bin is missing"});
}

TEST_F(CliData, OfASetThatCannotBeOpenedNothingIsCounted) {
  fs::create_directory(folder() / "set");
  std::ofstream(folder() / "set/train-images-idx3-ubyte") << "<html>";
  const Ran ran = paceline("data verify set");
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(ran.out.starts_with("  wrong: ") && ran.out.ends_with("1 wrong: no good image\n"))
      << ran.out;
}

TEST_F(CliData, ALongKeyTakesNoMemory) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer takes all addresses";
#endif
  std::string text = "{\"name\": \"x\", \"" + std::string(100'000, 'k') + "\": [0";
  for (int i = 1; i < 100'000; ++i) text += ",0";
  fs::create_directory(folder() / "set");
  std::ofstream(folder() / "set/dataset_info.json") << text << "], \"splits\": []}";
  const Ran ran = shell("ulimit -v 4000000; ulimit -c 0; paceline data verify set");
  EXPECT_EQ(ran.code, 1) << ran.err;
  expect_parts(ran.out, {"names no classes"});
}

// A network of tokens reads it, and counts tokens.
TEST_F(CliData, TextOfKnownEntropy) {
  const Ran made = expect_success(shell("paceline data make text --tokens 3000 --out text"));
  expect_parts(made.out, {"entropy of a token: 1."});
  PACELINE_NEEDS_ENGINE();
  const Ran ran = expect_success(
      shell("paceline train gpt-tiny --data text --context-length 16 --cpus-per-task 1 "
            "--batch-per-replica 4 --steps 3 --json"));
  const auto record = nlohmann::json::parse(ran.out);
  EXPECT_EQ(record.at("throughput").at("unit"), "tokens");
  EXPECT_EQ(record.at("throughput").at("samples"), 3 * 4 * 16);
  EXPECT_EQ(record.at("plan").at("tokens_per_sample"), 16);
  expect_parts(ran.err, {"tokens/s"});
}

TEST_F(CliData, WhatCannotBeMade) {
  expect_refused("data make text --out x", 64, {"--tokens is required"});
  expect_refused("data make text --tokens 3 --out x", 64, {"--tokens", "1000"});
  expect_refused("data make text --images 3 --tokens 3000 --out x", 64, {"no images", "--tokens"});
  expect_refused("data make cifar10 --images 50 --tokens 5 --out x", 64,
                 {"--tokens is for set text"});
  expect_refused("data make cifar10 --images 50 --shards 2 --out x", 64, {"--shards", "cassava"});
  expect_refused("data make casava --images 1 --out x", 64, {"\"casava\"", "\"cassava\"?"});
  expect_refused("data make cassava --out x", 64, {"--images is required", "paceline data make"});
  expect_refused("data make cassava --images 0 --out x", 64, {"--images", "1 image at least"});
  expect_refused("data make cassava --images 5 --out x --size-min 0", 64, {"--size-min"});
  expect_refused("data make cassava --images 5 --out x --shards 6", 64, {"6 shards for 5 images"});
  expect_refused("data make cassava --images 99999999999 --out x", 64, {"--images"});
  std::ofstream(folder() / "file") << "mine";
  expect_refused(kMake + "file", 64, {"not empty", "--out"});
  expect_refused(kMake + "file/below", 65, {"file"});
  expect_refused(kMake + ".", 64, {"not empty"});
  EXPECT_EQ(file_text(folder() / "file"), "mine");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder()), {}), 1) << "something was left behind";
}

TEST_F(CliData, AFullDisk) {
  const Ran ran = shell("ulimit -f 8; trap '' XFSZ; paceline " + kMake + "set --shards 1");
  EXPECT_EQ(ran.code, 65) << ran.err;
  expect_parts(ran.err, {"cannot be written", "cassava-train"});
  EXPECT_EQ(std::distance(fs::directory_iterator(folder()), {}), 0) << "something was left behind";
}

TEST_F(CliData, NothingToVerify) {
  expect_refused("data verify no/such", 65, {"no/such"});
  expect_refused("data verify .", 65, {"no data set", "dataset_info.json"});
  std::ofstream(folder() / "file") << "mine";
  const Ran ran = paceline("data verify file");
  EXPECT_TRUE(contains(ran.err, "not a folder") && !contains(ran.err, "--data")) << ran.err;
}

TEST_F(CliData, NamesOfSetsCannotSteerATerminal) {
  succeed(kMake + "set --quiet");
  expect_success(
      shell(R"(sed -i 's/"name": "cassava"/"name": "cass\\u001b[31mava"/' set/dataset_info.json)"));
  for (const char* json : {"", " --json"}) {
    const Ran ran = paceline(std::string("data verify set") + json);
    EXPECT_FALSE(contains(ran.out + ran.err, "\x1b")) << ran.out << ran.err;
    EXPECT_TRUE(contains(ran.out + ran.err, "[31m")) << ran.out << ran.err;
  }
}

TEST_F(CliData, NestedVerbsHaveHelpAndNearestNames) {
  expect_refused("data", 64, {"paceline data --help"});
  expect_refused("data fech mnist", 64, {"unknown command fech", "did you mean fetch?"});
  expect_refused("data fetch mnist --out x --mirror not-a-url", 64, {"--mirror", "not a URL"});
  expect_refused("data fetch mnist --out x --miror y", 64, {"--miror", "did you mean --mirror?"});
  for (const char* verb : {"make", "fetch", "verify"}) {
    expect_parts(succeed(std::string("data ") + verb + " --help").out,
                 {std::string("  paceline data ") + verb});
  }
  const Ran offered = shell(
      "source <(paceline completion bash); COMP_WORDS=(paceline data ve); COMP_CWORD=2; _paceline; "
      "echo \"${COMPREPLY[*]}\"");
  EXPECT_EQ(offered.out, "verify\n");
}

TEST_F(CliData, ADryRunReportsWhatWouldCome) {
  expect_parts(succeed("data fetch cassava --out x --dry-run --mirror http://mirror.site/").out,
               {"http://mirror.site/cassavaleafdata.zip", "1354096203 bytes", "sha256 8ae6"});
  EXPECT_FALSE(fs::exists(folder() / "x"));
  expect_refused("data fetch cifar --out x --dry-run", 64, {"\"cifar\"", "\"cifar10\"?"});
  expect_refused("data fetch mnist --out x --dry-run --tfrecord", 64, {"--tfrecord"});
}

TEST_F(CliData, MnistFromAMirrorThatBreaksOff) {
  if (!can_fetch()) GTEST_SKIP() << "this build cannot download";
  auto files = mnist();
  files[kMnistFiles[0]].cuts = {5'000'000};
  HttpServer server(files);
  const Ran first = paceline(fetch_from(server) + " --retries 0");
  EXPECT_EQ(first.code, 65);
  expect_parts(first.err, {"5000000 of 9912422 bytes"});
  succeed(fetch_from(server));
  EXPECT_EQ(server.requests().at(1), std::string(kMnistFiles[0]) + " from 5000000");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder() / "got"), {}), 4);
  succeed("data verify got");
}

TEST_F(CliData, AMirrorWithOtherBytes) {
  if (!can_fetch()) GTEST_SKIP() << "this build cannot download";
  auto files = mnist();
  files[kMnistFiles[0]].body[1000] ^= 1;
  HttpServer server(files);
  const Ran ran = paceline(fetch_from(server));
  EXPECT_EQ(ran.code, 65);
  expect_parts(ran.err, {"sha256 differs", kMnistFiles[0]});
  EXPECT_FALSE(fs::exists(folder() / "got" / kMnistFiles[0]));
}

TEST_F(CliData, AProxyOfTheEnvironmentIsUsed) {
  if (!can_fetch()) GTEST_SKIP() << "this build cannot download";
  const std::map<std::string, HttpServer::File> none;
  HttpServer proxy(none);
  const Ran ran = shell("http_proxy=" + proxy.url() +
                        " paceline data fetch mnist --out got --mirror http://mirror.invalid/x");
  EXPECT_EQ(ran.code, 65) << ran.err;
  ASSERT_EQ(proxy.requests().size(), 1U) << "the request went to the proxy";
}

}  // namespace
}  // namespace paceline
