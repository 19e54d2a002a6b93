#include "engine/input/loading/page_cache.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "engine/input/loading/folder_files.h"

namespace paceline {

namespace {

enum class Answer { resident, absent, unknown };

Answer ask(int descriptor, std::uint64_t offset) {
  char byte = 0;
  iovec place{&byte, 1};
  const ssize_t n = preadv2(descriptor, &place, 1, static_cast<off_t>(offset), RWF_NOWAIT);
  if (n == 1) return Answer::resident;
  return n < 0 && errno == EAGAIN ? Answer::absent : Answer::unknown;
}

}  // namespace

std::optional<double> resident_share(const std::filesystem::path& folder) {
  constexpr std::uint64_t kPlaces = 256;
  const std::vector<FolderFile> files = files_of_set(folder);
  std::uint64_t total = 0;
  for (const FolderFile& file : files) total += file.size;
  if (total == 0) return std::nullopt;
  std::uint64_t before = 0, asked = 0, resident = 0, next = 0;
  for (const FolderFile& file : files) {
    const std::uint64_t end = before + file.size;
    const int descriptor = next * total / kPlaces < end
                               ? open((folder / file.path).c_str(), O_RDONLY | O_CLOEXEC)
                               : -1;
    for (; next < kPlaces && next * total / kPlaces < end; ++next) {
      const Answer answer =
          descriptor < 0 ? Answer::unknown : ask(descriptor, next * total / kPlaces - before);
      asked += answer != Answer::unknown;
      resident += answer == Answer::resident;
    }
    if (descriptor >= 0) close(descriptor);
    before = end;
  }
  if (asked == 0) return std::nullopt;
  return static_cast<double>(resident) / static_cast<double>(asked);
}

}  // namespace paceline
