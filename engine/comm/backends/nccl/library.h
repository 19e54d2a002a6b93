// The NCCL functions that Paceline calls, from a library opened on demand.
#pragma once

#include <nccl.h>

#include <memory>
#include <string>

namespace paceline::nccl {

// Non-blocking calls need 2.14; ncclMemAlloc and registration need 2.19.
inline constexpr int kLeastVersion = NCCL_VERSION(2, 19, 0);

struct Library {
  std::string path;
  int version = 0;

  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclCommInitRankConfig) init_rank = nullptr;
  decltype(&ncclCommGetAsyncError) async_error = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclCommFinalize) finalize = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclMemAlloc) allocate = nullptr;
  decltype(&ncclMemFree) release = nullptr;
  decltype(&ncclCommRegister) register_buffer = nullptr;
  decltype(&ncclCommDeregister) deregister_buffer = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;

  std::string version_text() const;  // "NCCL 2.28.9"
};

// Throws usage with a cure if NCCL is missing or too old.
std::shared_ptr<const Library> open_library();

}  // namespace paceline::nccl
