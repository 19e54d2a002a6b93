// Extracts the transports that NCCL chose from NCCL's debug log. NCCL has no function for that.
//
// NCCL reads its variables once, at the first call, and connects ranks at the first sum. So the log
// is configured before and read later, and only if the user did not configure one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/comm/rendezvous/socket.h"
#include "engine/core/environment.h"

namespace paceline::nccl {

class DebugLog {
 public:
  // Sets NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE (a private file in TMPDIR), unless any
  // of them is set. Call before the first NCCL call, and before other threads read the environment.
  explicit DebugLog(const Environment& environment);
  ~DebugLog();
  DebugLog(const DebugLog&) = delete;
  DebugLog& operator=(const DebugLog&) = delete;

  // Unlinks the file once NCCL has opened it, so that a crash cannot leave it behind.
  void take();
  // "P2P/CUMEM x16, NET/IB x4", or why it is unknown.
  std::string transports() const;
  // What NCCL warned of last, in a line; empty if nothing, or if the log is the user's.
  std::string warnings() const;
  // "ranks 0 and 1 by SHM": two ranks of a host (hosts[rank]) whose GPUs do not copy to each other
  // directly. Empty if all do.
  std::string detour(const std::vector<std::string>& hosts) const;

 private:
  void remove() noexcept;
  std::string text() const;

  std::string folder_;  // empty: the user's own log, or none
  Descriptor file_;
};

// Parses a log: each transport with the number of (channel, rank) pairs that use it.
std::string transports_in(std::string_view log);
std::string warnings_in(std::string_view log);
std::string detour_in(std::string_view log, const std::vector<std::string>& hosts);

}  // namespace paceline::nccl
