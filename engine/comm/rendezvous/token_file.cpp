#include "engine/comm/rendezvous/token_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "engine/comm/rendezvous/socket.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

struct Found {
  std::filesystem::path file;
  std::string text;
  timespec time;
};

// Opening the folder makes a network file system look anew.
std::vector<Found> find_all(const std::filesystem::path& prefix) {
  std::vector<Found> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(prefix.parent_path(), error)) {
    if (!entry.path().filename().string().starts_with(prefix.filename().string())) continue;
    const Descriptor file(
        open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat info {};
    if (!file || fstat(file.number(), &info) != 0 || !S_ISREG(info.st_mode) ||
        info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
      continue;
    }
    std::array<char, 64> text{};
    const ssize_t size = read(file.number(), text.data(), text.size());
    if (size >= 0) {
      all.push_back({entry.path(), {text.data(), static_cast<std::size_t>(size)}, info.st_mtim});
    }
  }
  return all;
}

}  // namespace

TokenFile::TokenFile(const std::filesystem::path& prefix, const Content& content) {
  std::error_code ignored;
  for (const Found& left : find_all(prefix)) std::filesystem::remove(left.file, ignored);
  std::filesystem::create_directories(prefix.parent_path(), ignored);
  std::string name = prefix.string() + "XXXXXX";
  const Descriptor file(mkostemp(name.data(), O_CLOEXEC));
  const std::string text = fmt::format("{} {}\n", content.token, content.port);
  if (file) file_ = name;
  if (!file ||
      write(file.number(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    const int cause = errno;
    std::filesystem::remove(file_, ignored);
    throw input_error(
        fmt::format("the ranks' token cannot be written: {}", std::strerror(cause)), name,
        "set PACELINE_TOKEN for all ranks, or PACELINE_STATUS_DIR to a folder that they "
        "share");
  }
}

TokenFile::~TokenFile() {
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
}

std::optional<TokenFile::Content> TokenFile::read(const std::filesystem::path& prefix) {
  std::optional<Content> newest;
  timespec time{};
  for (const Found& found : find_all(prefix)) {
    const std::vector<std::string> words = split(trim(found.text), ' ');
    const auto port = words.size() == 2 ? to_port(words[1]) : std::nullopt;
    const bool is_older =
        newest && (found.time.tv_sec < time.tv_sec ||
                   (found.time.tv_sec == time.tv_sec && found.time.tv_nsec < time.tv_nsec));
    if (!port || is_older) continue;
    newest = {words[0], *port};
    time = found.time;
  }
  return newest;
}

}  // namespace paceline
