#include "engine/train/events/event_log.h"

#include <memory>
#include <utility>

#include "engine/core/binding.h"
#include "engine/core/clock.h"
#include "engine/core/file.h"
#include "engine/train/events/event_file.h"

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
  thread_ = std::thread([this, cpus = std::move(cpus)] { work(cpus); });
}

EventLog::~EventLog() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

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

void EventLog::work(const std::vector<int>& cpus) noexcept {
  name_this_thread("events");
  bind_to_cpus(cpus);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !entries_.empty(); });
    if (entries_.empty()) return;
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

}  // namespace paceline
