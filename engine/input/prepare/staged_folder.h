// A folder that appears complete or not at all.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>

namespace paceline {

// Files are written to OUT.partial, which commit() renames to OUT. Removes leftovers of an
// interrupted call, but refuses a folder of that name that Paceline did not create. The destructor
// removes what was not committed.
class StagedFolder {
 public:
  // Throws usage if `out` exists and is not empty, input if it cannot be created or another process
  // is writing there.
  explicit StagedFolder(const std::filesystem::path& out);
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void commit();

 private:
  void claim();

  std::filesystem::path out_, path_;
  int lock_ = -1;
};

// Creates `file` and holds an advisory lock on it until close(). Throws input if another process
// has the lock.
int lock_file(const std::filesystem::path& file, const std::filesystem::path& what);

// Throws input if the file system of `folder` (or its nearest parent) has too little space.
void check_space(const std::filesystem::path& folder, std::uint64_t bytes);

// Unpacks downloaded archives (.tar.gz, .zip).

// Extracts regular files and folders only. Throws input naming archive and entry: a path outside of
// `folder`, a link or device, a duplicate name, more than `most_bytes` in total, a damaged archive,
// a full disk.
void unpack(const std::filesystem::path& archive, const std::filesystem::path& folder,
            std::uint64_t most_bytes, bool quiet);

// Progress of a long operation: a moving line on a terminal, else a line every 10 s.

class PrepareProgress {
 public:
  enum class Unit { bytes, images };

  // Writes to standard error, unless `quiet`. `before`: amount done by earlier calls.
  PrepareProgress(std::string what, double total, Unit unit, bool quiet, double before = 0);
  ~PrepareProgress();  // ends the terminal line
  PrepareProgress(const PrepareProgress&) = delete;
  PrepareProgress& operator=(const PrepareProgress&) = delete;

  // Reports `done` of `total`. Thread-safe.
  void at(double done);
  void add(double more);

 private:
  using Clock = std::chrono::steady_clock;

  void show(Clock::time_point now);

  std::string what_;
  double total_, done_, before_;
  Unit unit_;
  bool quiet_, terminal_, shown_ = false;
  Clock::time_point began_, last_;
  std::mutex mutex_;
};

// Runs independent tasks on several threads.

// Calls work(i) once for each i below `count`, on `threads` threads including the caller. After the
// first exception, the threads stop at their next task and the exception is rethrown.
void work_on(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace paceline
