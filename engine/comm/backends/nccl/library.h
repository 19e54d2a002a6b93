// The NCCL functions that Paceline calls, from a library opened on demand.
#pragma once

#include <nccl.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/comm/rendezvous/socket.h"
#include "engine/core/environment.h"
#include "engine/core/shared_library.h"

namespace paceline::nccl {

// Non-blocking calls need 2.14; ncclMemAlloc and registration need 2.19.
inline constexpr int kLeastVersion = NCCL_VERSION(2, 19, 0);

struct Library {
  SharedLibrary library;
  int version = 0;

  PACELINE_FUNCTION(library, error_string, ncclGetErrorString);
  PACELINE_FUNCTION(library, last_error, ncclGetLastError);
  PACELINE_FUNCTION(library, get_unique_id, ncclGetUniqueId);
  PACELINE_FUNCTION(library, group_start, ncclGroupStart);
  PACELINE_FUNCTION(library, group_end, ncclGroupEnd);
  PACELINE_FUNCTION(library, init_rank, ncclCommInitRankConfig);
  PACELINE_FUNCTION(library, async_error, ncclCommGetAsyncError);
  PACELINE_FUNCTION(library, abort, ncclCommAbort);
  PACELINE_FUNCTION(library, finalize, ncclCommFinalize);
  PACELINE_FUNCTION(library, destroy, ncclCommDestroy);
  PACELINE_FUNCTION(library, allocate, ncclMemAlloc);
  PACELINE_FUNCTION(library, release, ncclMemFree);
  PACELINE_FUNCTION(library, register_buffer, ncclCommRegister);
  PACELINE_FUNCTION(library, deregister_buffer, ncclCommDeregister);
  PACELINE_FUNCTION(library, all_reduce, ncclAllReduce);

  std::string version_text() const;  // "NCCL 2.28.9"
};

// Throws usage with a cure if NCCL is missing or too old.
std::shared_ptr<const Library> open_library();

// What versions of NCCL get wrong, and is therefore done without.

// What a run does that a version may get wrong. By default all of it, as `paceline doctor` asks.
struct Situation {
  bool several_here = true;   // this process has several communicators
  bool between_nodes = true;  // ranks are on several nodes
  bool one_card = true;       // ranks are on one card, or on MIG slices of it
};

struct Quirks {
  bool no_registration = false;        // of gradients
  bool no_sums_in_graphs = false;      // they are queued between graphs
  bool blocking = false;               // communicators block
  bool no_graph_registration = false;  // NCCL_GRAPH_REGISTER=0, unless the user set it
  bool no_mig_slices = false;          // of one card
  bool no_shared_cards = false;
  std::string text;  // the same for users; empty: none
};

Quirks find_quirks(int version, const Situation& situation = {});

// Extracts the transports that NCCL chose from NCCL's debug log. NCCL has no function for that.
//
// NCCL reads its variables once, at the first call, and connects ranks at the first sum. So the log
// is configured before and read later, and only if the user did not configure one.

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
