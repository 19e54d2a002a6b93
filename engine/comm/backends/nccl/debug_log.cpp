#include "engine/comm/backends/nccl/debug_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>
#include <vector>

#include "engine/core/text.h"

namespace paceline::nccl {

namespace {

constexpr std::array kVariables = {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"};
constexpr std::size_t kMostBytes = std::size_t{16} << 20;  // thousands of ranks

// "NET/IB/0/GDRDMA" and "NET/IB/1(3)/GDRDMA" are "NET/IB/GDRDMA": which of several adapters, and
// through whose, does not matter here.
std::string kind_of(std::string_view transport) {
  std::vector<std::string> kept;
  for (const std::string& part : split(transport, '/')) {
    if (!part.empty() && part.find_first_of("0123456789") != 0) kept.push_back(part);
  }
  return join(kept, "/");
}

}  // namespace

DebugLog::DebugLog(const Environment& environment) {
  for (const char* variable : kVariables) {
    if (environment.count(variable) != 0) return;
  }
  std::error_code failed;
  std::string folder =
      (std::filesystem::temp_directory_path(failed) / "paceline-nccl-XXXXXX").string();
  if (failed || mkdtemp(folder.data()) == nullptr) return;
  folder_ = folder;
  setenv("NCCL_DEBUG", "INFO", 1);
  setenv("NCCL_DEBUG_SUBSYS", "INIT,NET,NVLS", 1);
  setenv("NCCL_DEBUG_FILE", (folder_ + "/log").c_str(), 1);
}

DebugLog::~DebugLog() {
  remove();
}

void DebugLog::remove() noexcept {
  if (folder_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void DebugLog::take() {
  if (folder_.empty() || file_) return;
  file_ = Descriptor(open((folder_ + "/log").c_str(), O_RDONLY | O_CLOEXEC));
  remove();
}

std::string DebugLog::transports() const {
  if (folder_.empty()) return "transports: see the log that NCCL_DEBUG asks for";
  std::string text;
  std::array<char, 65536> piece;
  while (file_ && text.size() < kMostBytes) {
    const ssize_t got =
        pread(file_.number(), piece.data(), piece.size(), static_cast<off_t>(text.size()));
    if (got <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  const std::string found = transports_in(text);
  return found.empty() ? "transports not known" : "transports " + found;
}

std::string transports_in(std::string_view log) {
  std::map<std::string, int> counts;
  for (const std::string& line : split(log, '\n')) {
    if (line.find("NVLS comm ") != std::string::npos) counts["NVLS"] = 1;
    const std::size_t via = line.find(" via ");
    if (via == std::string::npos || line.find("Channel ") == std::string::npos) continue;
    const std::string_view rest = std::string_view(line).substr(via + 5);
    ++counts[kind_of(rest.substr(0, rest.find(' ')))];
  }
  std::vector<std::string> parts;
  for (const auto& [kind, count] : counts) {
    parts.push_back(kind == "NVLS" ? kind : fmt::format("{} x{}", kind, count));
  }
  return join(parts, ", ");
}

}  // namespace paceline::nccl
