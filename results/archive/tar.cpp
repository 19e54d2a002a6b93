#include "results/archive/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/file.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kTarBlock = std::size_t{1} << 16;

struct TarFilter {
  const char *ending, *name;
  int (*add)(archive*);
};

constexpr std::array<TarFilter, 3> kTarFilters = {{
    {".tar.zst", "zstd", archive_write_add_filter_zstd},
    {".tar.gz", "gzip", archive_write_add_filter_gzip},
    {".tar.xz", "xz", archive_write_add_filter_xz},
}};

const TarFilter& choose_filter(const fs::path& file) {
  for (const TarFilter& filter : kTarFilters) {
    if (file.filename().string().ends_with(filter.ending)) return filter;
  }
  throw Error(ErrorKind::usage, "an archive's name must end in .tar.zst, .tar.gz or .tar.xz",
              file.string(), "give another name");
}

fs::path temporary_path(const fs::path& file) {
  choose_filter(file);
  std::error_code none;
  if (fs::exists(fs::symlink_status(file, none))) {
    throw Error(ErrorKind::input, "the file exists already", file.string(),
                "an archive never replaces a file: give another name");
  }
  return file.string() + fmt::format(".{}.tmp", getpid());
}

struct Sink {
  NewFile& file;
  std::exception_ptr& thrown;
};

// No exception may pass through a library in C.
la_ssize_t write_part(archive* writer, void* sink, const void* data, std::size_t bytes) {
  auto& to = *static_cast<Sink*>(sink);
  try {
    to.file.write(data, bytes);
    return static_cast<la_ssize_t>(bytes);
  } catch (...) {
    to.thrown = std::current_exception();
    archive_set_error(writer, EIO, "the file cannot be written");
    return -1;
  }
}

int free_sink(archive*, void* sink) {
  delete static_cast<Sink*>(sink);
  return ARCHIVE_OK;
}

using TarEntry = std::unique_ptr<archive_entry, decltype(&archive_entry_free)>;

}  // namespace

TarWriter::TarWriter(fs::path file)
    : file_(std::move(file)),
      temporary_(temporary_path(file_)),
      output_(temporary_),
      writer_(archive_write_new(), archive_write_free) {
  const TarFilter& filter = choose_filter(file_);
  // A warning: it would call a program, which may not be there.
  if (filter.add(writer_.get()) != ARCHIVE_OK) {
    throw Error(ErrorKind::usage,
                fmt::format("libarchive cannot write {} on this machine", filter.name),
                file_.string(), "give a name that ends otherwise (.tar.zst, .tar.gz, .tar.xz)");
  }
  archive_write_set_filter_option(writer_.get(), "gzip", "timestamp", nullptr);
  check(archive_write_set_format_pax_restricted(writer_.get()));
  check(archive_write_set_bytes_in_last_block(writer_.get(), 1));  // nothing after the last byte
  auto sink = std::make_unique<Sink>(Sink{output_, thrown_});
  check(
      archive_write_open2(writer_.get(), sink.release(), nullptr, write_part, nullptr, free_sink));
}

void TarWriter::check(int code) {
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  if (code == ARCHIVE_OK) return;
  const char* why = archive_error_string(writer_.get());
  throw Error(ErrorKind::input,
              std::string("the archive cannot be written: ") + (why ? why : "unknown reason"),
              file_.string(), "choose another place");
}

void TarWriter::add(const std::string& name, std::string_view content) {
  const TarEntry entry(archive_entry_new(), archive_entry_free);
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0644);
  archive_entry_set_mtime(entry.get(), 0, 0);
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(content.size()));
  check(archive_write_header(writer_.get(), entry.get()));
  while (!content.empty()) {
    const la_ssize_t done = archive_write_data(writer_.get(), content.data(), content.size());
    if (done <= 0) check(ARCHIVE_FATAL);
    content.remove_prefix(static_cast<std::size_t>(done));
  }
}

void TarWriter::finish() {
  check(archive_write_close(writer_.get()));
  output_.finish();
  if (give_name(temporary_, file_)) return;
  fs::remove(temporary_);
  temporary_path(file_);  // throws
}

TarReader::TarReader(fs::path file)
    : file_(file.string()), where_(file_), reader_(archive_read_new(), archive_read_free) {
  std::error_code none;
  if (!path_exists(file)) throw Error(ErrorKind::input, "no such file", file_, "check the path");
  if (!fs::is_regular_file(file, none)) {  // it is read twice
    throw Error(ErrorKind::input, "this is not a regular file", file_,
                "name a file of paceline archive");
  }
  archive_read_support_filter_zstd(reader_.get());
  archive_read_support_filter_gzip(reader_.get());
  archive_read_support_filter_xz(reader_.get());
  archive_read_support_format_tar(reader_.get());
  if (archive_read_open_filename(reader_.get(), file_.c_str(), kTarBlock) != ARCHIVE_OK) fail();
  buffer_.resize(kTarBlock);
}

void TarReader::fail() const {
  const char* why = archive_error_string(reader_.get());
  throw Error(ErrorKind::input,
              std::string("the archive cannot be read: ") + (why ? why : "unknown format"), where_,
              "check the path, or get it again");
}

std::optional<std::string> TarReader::next() {
  archive_entry* entry = nullptr;
  where_ = file_;
  const int code = archive_read_next_header(reader_.get(), &entry);
  if (code == ARCHIVE_EOF) return std::nullopt;
  if (code != ARCHIVE_OK) fail();
  const char* name = archive_entry_pathname(entry);
  where_ += fmt::format(", entry {}", name ? name : "without a name");
  if (name && archive_entry_filetype(entry) == AE_IFREG && !archive_entry_hardlink(entry)) {
    return name;
  }
  throw Error(ErrorKind::input, "the archive holds a link, a folder or a device", where_,
              "do not trust it: get it again from who made it");
}

std::string TarReader::content(std::size_t limit) {
  std::string text;
  while (true) {
    const la_ssize_t got = archive_read_data(reader_.get(), buffer_.data(), buffer_.size());
    if (got < 0) fail();
    if (got == 0) return text;
    text.append(buffer_.data(), static_cast<std::size_t>(got));
    if (text.size() <= limit) continue;
    throw Error(ErrorKind::input, fmt::format("the entry is larger than {} bytes", limit), where_,
                "do not trust it: get it again from who made it");
  }
}

}  // namespace paceline
