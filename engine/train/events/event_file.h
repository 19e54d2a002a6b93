// A TensorBoard event file: a TFRecord file of events, the first of which names the format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/train/events/event.h"

namespace paceline {

// Grows by whole records: each call of append() is one write of the operating system, so a process
// that is killed leaves a file that readers take, at most with a torn last record, which they leave
// out.
class EventFile {
 public:
  // "events.out.tfevents.<time>.<host>.<pid>.<number>.v2", as TensorFlow names it, in `folder`,
  // which exists. `number` tells the files of one process. Throws input if it cannot be made.
  EventFile(const std::filesystem::path& folder, int number);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // Throws input where not all could be written; what was of it is cut off again.
  void append(const Event& event);

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;  // of whole records
};

struct EventsRead {
  std::vector<Event> events;  // without the first, which names the format
  std::string damage;         // why there is nothing behind them; empty: the file ends there
};

// Takes a file that is being written, too. Throws input for one that is no event file.
EventsRead read_events(const std::filesystem::path& file);

}  // namespace paceline
