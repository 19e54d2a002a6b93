#include "sweeps/run_log.h"

#include "engine/core/text.h"

namespace paceline {

RunLog::RunLog(std::filesystem::path file)
    : file_(std::move(file)), stream_(file_, std::ios::binary | std::ios::trunc) {}

void RunLog::append(std::string_view text) {
  stream_.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream_.flush();
  constexpr std::size_t kTail = 4096;
  tail_ += text;
  if (tail_.size() > 2 * kTail) tail_.erase(0, tail_.size() - kTail);
}

std::string RunLog::last_line() const {
  constexpr std::string_view kOwnName = "paceline: ";
  constexpr std::size_t kMaxLine = 500;
  std::string_view line = trim(tail_);
  if (const auto newline = line.rfind('\n'); newline != std::string_view::npos) {
    line.remove_prefix(newline + 1);
  }
  if (line.starts_with(kOwnName)) line.remove_prefix(kOwnName.size());
  return std::string(line.substr(0, kMaxLine));
}

}  // namespace paceline
