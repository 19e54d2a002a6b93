#include "engine/comm/backends/nccl/library.h"

#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/core/shared_library.h"

namespace paceline::nccl {

namespace {

constexpr char kCure[] = "load the module that has it, or name its folder in PACELINE_CUDA_LIBS";

std::string format_version(int version) {
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

std::string Library::version_text() const {
  return format_version(version);
}

std::shared_ptr<const Library> open_library() {
  const SharedLibrary opened({"libnccl.so.2"}, gpu_library_folders());
  if (!opened) throw Error(ErrorKind::usage, "NCCL was not found: " + opened.problem(), "", kCure);
  auto library = std::make_shared<Library>();
  library->path = opened.path();
  decltype(&ncclGetVersion) get_version = nullptr;
  opened.find("ncclGetVersion", get_version);
  get_version(&library->version);
  if (library->version < kLeastVersion) {
    throw Error(ErrorKind::usage,
                fmt::format("{} is too old: {} is needed", library->version_text(),
                            format_version(kLeastVersion)),
                library->path, kCure);
  }
  opened.find("ncclGetErrorString", library->error_string);
  opened.find("ncclGetLastError", library->last_error);
  opened.find("ncclGetUniqueId", library->get_unique_id);
  opened.find("ncclGroupStart", library->group_start);
  opened.find("ncclGroupEnd", library->group_end);
  opened.find("ncclCommInitRankConfig", library->init_rank);
  opened.find("ncclCommGetAsyncError", library->async_error);
  opened.find("ncclCommAbort", library->abort);
  opened.find("ncclCommFinalize", library->finalize);
  opened.find("ncclCommDestroy", library->destroy);
  opened.find("ncclMemAlloc", library->allocate);
  opened.find("ncclMemFree", library->release);
  opened.find("ncclCommRegister", library->register_buffer);
  opened.find("ncclCommDeregister", library->deregister_buffer);
  opened.find("ncclAllReduce", library->all_reduce);
  return library;
}

}  // namespace paceline::nccl
