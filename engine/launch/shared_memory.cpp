#include "engine/launch/shared_memory.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

std::filesystem::path shared_memory_folder(const Environment& environment) {
  const auto folder = environment.find("OMPI_MCA_osc_sm_backing_directory");
  return folder == environment.end() ? "/dev/shm" : folder->second;
}

std::int64_t free_bytes(const std::filesystem::path& folder) {
  struct statvfs info {};
  if (statvfs(folder.c_str(), &info) != 0) return -1;
  return static_cast<std::int64_t>(info.f_bavail) * static_cast<std::int64_t>(info.f_frsize);
}

void check_room(std::int64_t wanted, std::int64_t free, const std::filesystem::path& folder) {
  if (free < 0 || wanted <= free) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("the ranks of this node need a shared window of {}, {} are free",
                  format_bytes(static_cast<double>(wanted)),
                  format_bytes(static_cast<double>(free))),
      folder.string(),
      "enlarge it (mount -o remount,size=..., docker run --shm-size=...), point "
      "OMPI_MCA_osc_sm_backing_directory to a larger local folder, or use backend mirrored");
}

}  // namespace paceline
