#include "engine/comm/backends/nccl/library.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/shared_library.h"
#include "engine/core/text.h"

namespace paceline::nccl {

namespace {

constexpr char kCure[] = "load the module that has it, or name its folder in PACELINE_CUDA_LIBS";

std::string format_version(int version) {
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

constexpr std::array kVariables = {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"};
constexpr std::size_t kMostBytes = std::size_t{16} << 20;  // thousands of ranks

// "NET/IB/0/GDRDMA" and "NET/IB/1(3)/GDRDMA" are "NET/IB/GDRDMA": which of several adapters, and
// through whose, does not matter here.
std::string transport_kind(std::string_view transport) {
  std::vector<std::string> kept;
  for (const std::string& part : split(transport, '/')) {
    if (!part.empty() && part.find_first_of("0123456789") != 0) kept.push_back(part);
  }
  return join(kept, "/");
}

struct Row {
  bool Quirks::*quirk;
  int since, until;            // versions from `since` to before `until`
  bool Situation::*situation;  // null: in any
  const char* text;
};

constexpr Row kRows[] = {
    // Registered buffers crash beside those that graphs register.
    {&Quirks::no_registration, 0, NCCL_VERSION(2, 24, 3), nullptr, "gradients are not registered"},
    // Sums in graphs race with sums that are queued plainly, as those of the first steps are.
    {&Quirks::no_sums_in_graphs, 0, NCCL_VERSION(2, 27, 3), nullptr,
     "sums are queued between graphs"},
    // Non-blocking communicators hang now and then.
    {&Quirks::blocking, NCCL_VERSION(2, 26, 0), NCCL_VERSION(2, 27, 0), nullptr,
     "communicators block"},
    // Non-blocking communicators of one process race in the group in which they join.
    {&Quirks::blocking, 0, NCCL_VERSION(2, 27, 3), &Situation::several_here,
     "several communicators of a process block"},
    // With GPUDirect, the receiving side loses a flag of registered buffers, and all ranks hang.
    {&Quirks::no_graph_registration, 0, NCCL_VERSION(2, 32, 0), &Situation::between_nodes,
     "NCCL_GRAPH_REGISTER is 0 between nodes unless it is set"},
    // Cards are told apart by their PCI ids alone, which slices share.
    {&Quirks::no_mig_slices, 0, NCCL_VERSION(2, 30, 0), &Situation::one_card,
     "MIG slices of one card are refused"},
    // NCCL_MULTI_RANK_GPU_ENABLE is not known yet.
    {&Quirks::no_shared_cards, 0, NCCL_VERSION(2, 30, 3), &Situation::one_card,
     "ranks cannot share a card"}};

}  // namespace

std::string Library::version_text() const {
  return format_version(version);
}

std::shared_ptr<const Library> open_library() {
  const SharedLibrary opened({"libnccl.so.2"}, gpu_library_folders());
  if (!opened) throw usage_error("NCCL was not found: " + opened.problem(), "", kCure);
  const decltype(&ncclGetVersion) get_version = opened.function("ncclGetVersion");
  int version = 0;
  get_version(&version);
  if (version < kLeastVersion) {
    throw usage_error(fmt::format("{} is too old: {} is needed", format_version(version),
                                  format_version(kLeastVersion)),
                      opened.path(), kCure);
  }
  return std::make_shared<const Library>(Library{opened, version});
}

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

std::string DebugLog::text() const {
  std::string text;
  if (folder_.empty()) return text;
  Descriptor untaken;  // joining has not ended
  if (!file_) untaken = Descriptor(open((folder_ + "/log").c_str(), O_RDONLY | O_CLOEXEC));
  const Descriptor& file = file_ ? file_ : untaken;
  std::array<char, 65536> piece;
  while (file && text.size() < kMostBytes) {
    const ssize_t got =
        pread(file.number(), piece.data(), piece.size(), static_cast<off_t>(text.size()));
    if (got <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return text;
}

std::string DebugLog::transports() const {
  if (folder_.empty()) return "transports: see the log that NCCL_DEBUG asks for";
  const std::string found = transports_in(text());
  return found.empty() ? "transports not known" : "transports " + found;
}

std::string DebugLog::warnings() const {
  return warnings_in(text());
}

std::string DebugLog::detour(const std::vector<std::string>& hosts) const {
  return detour_in(text(), hosts);
}

std::string transports_in(std::string_view log) {
  std::map<std::string, int> counts;
  for (const std::string& line : split(log, '\n')) {
    if (line.find("NVLS comm ") != std::string::npos) counts["NVLS"] = 1;
    const std::size_t via = line.find(" via ");
    if (via == std::string::npos || line.find("Channel ") == std::string::npos) continue;
    const std::string_view rest = std::string_view(line).substr(via + 5);
    ++counts[transport_kind(rest.substr(0, rest.find(' ')))];
  }
  std::vector<std::string> parts;
  for (const auto& [kind, count] : counts) {
    parts.push_back(kind == "NVLS" ? kind : fmt::format("{} x{}", kind, count));
  }
  return join(parts, ", ");
}

// "host:pid:tid [0] transport/p2p.cc:219 NCCL WARN Cuda failure 'invalid device ordinal'"
std::string warnings_in(std::string_view log) {
  constexpr std::string_view kWarns = "NCCL WARN ";
  constexpr std::size_t kMost = 3;
  std::vector<std::string> last;
  for (const std::string& line : split(log, '\n')) {
    const std::size_t at = line.find(kWarns);
    if (at == std::string::npos) continue;
    const std::string warning(trim(std::string_view(line).substr(at + kWarns.size())));
    if (warning.empty() || std::find(last.begin(), last.end(), warning) != last.end()) continue;
    last.push_back(warning);
    if (last.size() > kMost) last.erase(last.begin());
  }
  return join(last, "; ");
}

// "Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct": ranks, and in brackets their devices.
std::string detour_in(std::string_view log, const std::vector<std::string>& hosts) {
  for (const std::string& line : split(log, '\n')) {
    const std::size_t via = line.find(" via "), arrow = line.find("] -> ");
    const std::size_t colon = line.find(" : ");
    if (via == std::string::npos || arrow == std::string::npos || colon == std::string::npos ||
        line.find("Channel ") == std::string::npos) {
      continue;
    }
    const auto from = std::strtoul(line.c_str() + colon + 3, nullptr, 10);
    const auto to = std::strtoul(line.c_str() + arrow + 5, nullptr, 10);
    if (from >= hosts.size() || to >= hosts.size() || hosts[from] != hosts[to]) continue;
    const std::string_view rest = std::string_view(line).substr(via + 5);
    const std::string kind = transport_kind(rest.substr(0, rest.find(' ')));
    if (kind.rfind("P2P", 0) == 0) continue;
    return fmt::format("ranks {} and {} by {}", from, to, kind);
  }
  return "";
}

Quirks find_quirks(int version, const Situation& situation) {
  Quirks quirks;
  for (const Row& row : kRows) {
    const bool happens = row.situation == nullptr || situation.*row.situation;
    if (!happens || version < row.since || version >= row.until || quirks.*row.quirk) continue;
    quirks.*row.quirk = true;
    quirks.text += (quirks.text.empty() ? "" : ", ") + std::string(row.text);
  }
  if (version < NCCL_VERSION(2, 27, 3)) quirks.text += "; 2.27.3 or newer is recommended";
  return quirks;
}

}  // namespace paceline::nccl
