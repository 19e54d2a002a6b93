#include "engine/train/events/event_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/lane.h"
#include "engine/input/formats/tfrecord.h"

namespace paceline {

// The second one is made when there is something for it: TensorBoard shows no empty run.
struct EventLog::Files {
  explicit Files(const std::filesystem::path& folder) : folder(folder) {}

  EventFile& of(EventSide side) {
    auto& file = side == EventSide::train ? train : validation;
    if (!file) {
      const auto place = folder / (side == EventSide::train ? "train" : "validation");
      make_folder(place);
      file = std::make_unique<EventFile>(place, side == EventSide::train ? 0 : 1);
    }
    return *file;
  }

  std::filesystem::path folder;
  std::unique_ptr<EventFile> train, validation;
};

EventLog::EventLog(const std::filesystem::path& folder, std::vector<int> cpus)
    : files_(std::make_unique<Files>(folder)) {
  files_->of(EventSide::train);
  thread_ = std::jthread(
      [this, cpus = std::move(cpus)](const std::stop_token& stop) { work(stop, cpus); });
}

EventLog::~EventLog() = default;

void EventLog::add(EventSide side, Event event) {
  if (event.scalars.empty() && event.histograms.empty()) return;
  event.wall_time = unix_seconds();
  {
    std::lock_guard lock(mutex_);
    if (broken_) return;
    entries_.push_back({side, std::move(event)});
  }
  changed_.notify_all();
}

std::string EventLog::settle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return entries_.empty() && !writing_; });
  return std::exchange(failure_, {});
}

void EventLog::work(const std::stop_token& stop, const std::vector<int>& cpus) noexcept {
  name_this_thread("events");
  bind_to_cpus(cpus);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!changed_.wait(lock, stop, [this] { return !entries_.empty(); })) return;
    std::vector<Entry> entries;
    entries.swap(entries_);
    writing_ = true;
    lock.unlock();
    std::string failure;
    try {
      for (const Entry& entry : entries) files_->of(entry.side).append(entry.event);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    lock.lock();
    writing_ = false;
    if (!failure.empty()) {
      broken_ = true;
      failure_ = std::move(failure);
      entries_.clear();
    }
    changed_.notify_all();
  }
}

namespace {

constexpr char kVersion[] = "brain.Event:2";

std::string file_name(int number) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("events.out.tfevents.{:010}.{}.{}.{}.v2", std::time(nullptr), host.data(),
                     getpid(), number);
}

[[noreturn]] void fail(const std::filesystem::path& file, int why) {
  throw input_error(fmt::format("an event file cannot be written: {}", std::strerror(why)),
                    file.string(), "free some space, or give --tensorboard another folder");
}

}  // namespace

EventFile::EventFile(const std::filesystem::path& folder, int number)
    : path_(folder / file_name(number)) {
  descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(path_, errno);
  Event first;
  first.wall_time = static_cast<double>(std::time(nullptr));
  first.file_version = kVersion;
  append(first);
}

EventFile::~EventFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void EventFile::append(const Event& event) {
  const std::string record = framed_record(encode(event));
  std::size_t done = 0;
  while (done < record.size()) {
    const ssize_t written = write(descriptor_, record.data() + done, record.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int why = written < 0 ? errno : ENOSPC;
      if (ftruncate(descriptor_, static_cast<off_t>(size_)) == 0) {
        lseek(descriptor_, static_cast<off_t>(size_), SEEK_SET);
      }
      fail(path_, why);
    }
    done += static_cast<std::size_t>(written);
  }
  size_ += record.size();
}

}  // namespace paceline
