#include "engine/train/checkpoint/folder.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <compare>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/lane.h"
#include "engine/core/pattern.h"
#include "engine/core/text.h"
#include "engine/train/checkpoint/format.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr char kCheckpoints[] = "checkpoints";
constexpr char kLockFile[] = ".lock";

bool is_hidden(const fs::path& path) {
  return path.filename().string().starts_with(".");
}

// A checkpoint that was being written (format.cpp) or removed (prune()).
bool is_leftover(const std::string& name) {
  thread_local const Pattern pattern(R"(\..+-\d{4,9}(?:-step-\d{8,18})?\.(?:\d+\.tmp|old))");
  return pattern.match(name).has_value();
}

// What a checkpoint is newer by: epochs, then steps where it is within one.
struct Age {
  int epoch = 0;
  std::size_t step = 0;
  auto operator<=>(const Age&) const = default;
};

// The age of a checkpoint whose manifest cannot be read, from its name (checkpoint_path()). If the
// name does not tell, the newest, so that it is never passed over silently.
Age age_by_name(const std::string& name) {
  thread_local const Pattern pattern(R"(.+?-(\d{4,9})(?:-step-(\d{8,18}))?)");
  const auto parts = pattern.match(name);
  if (!parts) return {std::numeric_limits<int>::max(), std::numeric_limits<std::size_t>::max()};
  return {std::stoi(parts->at(1)), parts->at(2).empty() ? 0 : std::stoul(parts->at(2))};
}

std::vector<FoundCheckpoint> checkpoints_in(const fs::path& folder) {
  std::vector<std::pair<Age, FoundCheckpoint>> aged;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    if (!entry.is_directory(code) || is_hidden(entry.path())) continue;
    FoundCheckpoint one{entry.path(), 0, ""};
    Age age;
    try {
      const TrainingProgress progress = read_manifest(entry.path()).progress;
      one.step = progress.step;
      age = {progress.epoch, progress.step};
    } catch (const Error& error) {
      one.damage = error.what();
      age = age_by_name(entry.path().filename().string());
    }
    aged.emplace_back(age, std::move(one));
  }
  std::ranges::sort(aged, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second.folder < b.second.folder;
  });
  return mapped(aged, [](auto& one) { return std::move(one.second); });
}

// The newest whose files are what they were.
std::optional<fs::path> newest_whole(const fs::path& folder, std::vector<std::string>& skipped) {
  const auto found = checkpoints_in(folder);
  for (auto one = found.rbegin(); one != found.rend(); ++one) {
    try {
      verify_checkpoint(one->folder, read_manifest(one->folder));
      return one->folder;
    } catch (const Error& error) {
      skipped.emplace_back(error.what());
    }
  }
  return std::nullopt;
}

[[noreturn]] void no_whole_one(const fs::path& folder, const std::vector<std::string>& skipped) {
  throw input_error(
      skipped.empty() ? "there is no checkpoint" : "no checkpoint is complete: " + skipped[0],
      folder.string(), "use --resume with a checkpoint, or start from scratch without it");
}

}  // namespace

std::vector<FoundCheckpoint> find_checkpoints(const fs::path& run) {
  return checkpoints_in(run / kCheckpoints);
}

std::vector<fs::path> named_checkpoints(const fs::path& path) {
  if (fs::exists(path / kManifestFile)) return {path};
  std::vector<fs::path> folders = mapped(find_checkpoints(path), &FoundCheckpoint::folder);
  if (!folders.empty()) return folders;
  throw input_error("there is no checkpoint", path.string(),
                    "name the folder of a checkpoint, or of a run that has checkpoints");
}

fs::path find_resumed(const std::string& text, const fs::path& run,
                      std::vector<std::string>& skipped) {
  const fs::path given = text;
  if (fs::exists(given / kManifestFile)) return given;
  for (const fs::path& folder : {given / kCheckpoints, run.parent_path() / given / kCheckpoints}) {
    if (!fs::is_directory(folder)) continue;
    if (auto newest = newest_whole(folder, skipped)) return *newest;
    no_whole_one(folder, skipped);
  }
  if (fs::is_directory(given)) {
    if (auto newest = newest_whole(given, skipped)) return *newest;
    no_whole_one(given, skipped);
  }
  throw input_error(
      "there is no checkpoint to resume from", text,
      "give latest, a checkpoint's folder, a run's, or a job's number beside " + run.string());
}

std::optional<fs::path> find_latest(const fs::path& run, std::vector<std::string>& skipped) {
  auto newest = newest_whole(run / kCheckpoints, skipped);
  if (!newest && !skipped.empty()) no_whole_one(run / kCheckpoints, skipped);
  return newest;
}

CheckpointFolder::CheckpointFolder(const fs::path& run, std::string workload)
    : folder_(run / kCheckpoints), workload_(std::move(workload)) {
  Folder(run).make_folder(kCheckpoints);  // no link: what is removed below is this run's
  lock_ = open_lock_file(folder_ / kLockFile);
  if (lock_ < 0) {
    throw input_error(std::string("checkpoints cannot be written: ") + std::strerror(errno),
                      folder_.string(), "give another --run-dir");
  }
  // Where a file system has no locks, the user has to see to it.
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(lock_);
    throw input_error("another run writes its checkpoints here", folder_.string(),
                      "wait for it, or give another --run-dir");
  }
  std::error_code ignored;
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    if (is_leftover(entry.path().filename().string())) leftovers.push_back(entry.path());
  }
  for (const fs::path& leftover : leftovers) fs::remove_all(leftover, ignored);
}

CheckpointFolder::~CheckpointFolder() {
  close(lock_);
}

fs::path CheckpointFolder::checkpoint_path(const TrainingProgress& progress) const {
  const std::string epochs = fmt::format("{}-{:04}", workload_, progress.epoch);
  if (progress.position_in_epoch == 0) return folder_ / epochs;
  return folder_ / fmt::format("{}-step-{:08}", epochs, progress.step);
}

void CheckpointFolder::prune(int keep) const {
  if (keep == 0) return;
  std::vector<FoundCheckpoint> whole = checkpoints_in(folder_);
  std::erase_if(whole, [](const FoundCheckpoint& one) { return !one.damage.empty(); });
  if (whole.size() <= static_cast<std::size_t>(keep)) return;
  for (std::size_t i = 0; i < whole.size() - static_cast<std::size_t>(keep); ++i) {
    // Hidden first: a folder that is half removed is no checkpoint.
    const fs::path hidden = folder_ / ("." + whole[i].folder.filename().string() + ".old");
    std::error_code code;
    fs::rename(whole[i].folder, hidden, code);
    if (!code) fs::remove_all(hidden, code);
  }
}

Background::~Background() {
  join();
}

void Background::join() noexcept {
  if (!thread_.joinable()) return;
  thread_.join();
  seconds_ += std::exchange(last_seconds_, 0);
}

void Background::wait() {
  join();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

bool Background::is_done_within(double seconds) {
  std::unique_lock lock(mutex_);
  return done_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return !busy_; });
}

void Background::start(std::function<void()> job) {
  wait();
  busy_ = true;
  thread_ = std::thread([this, job = std::move(job)] {
    const double start = now_seconds();
    try {
      name_this_thread("checkpoint");
      bind_to_cpus(cpus_);
      job();
    } catch (...) {
      error_ = std::current_exception();
    }
    last_seconds_ = now_seconds() - start;
    {
      std::lock_guard lock(mutex_);
      busy_ = false;
    }
    done_.notify_all();
  });
}

}  // namespace paceline
