// Which transports NCCL chose, told by the log that it writes itself: it has no function for it.
//
// NCCL reads its variables once, at the first call, and connects ranks when they first sum. So the
// log is asked for before, read later, and only where the user has not set up one of their own.
#pragma once

#include <string>
#include <string_view>

#include "engine/comm/rendezvous/socket.h"
#include "engine/core/environment.h"

namespace paceline::nccl {

class DebugLog {
 public:
  // Sets NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE (a private file in TMPDIR) unless one of
  // them is set. Before the first call of NCCL, and before threads that read the environment.
  explicit DebugLog(const Environment& environment);
  ~DebugLog();
  DebugLog(const DebugLog&) = delete;
  DebugLog& operator=(const DebugLog&) = delete;

  // Once NCCL has opened the file: it loses its name, so that no crash leaves it behind.
  void take();
  // "P2P/CUMEM x16, NET/IB x4", or why it is not known.
  std::string transports() const;

 private:
  void remove() noexcept;

  std::string folder_;  // empty: the user's own log, or none could be made
  Descriptor file_;
};

// Of the lines of a log: each transport and between how many pairs of channel and rank.
std::string transports_in(std::string_view log);

}  // namespace paceline::nccl
