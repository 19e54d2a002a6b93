// A TensorBoard event file: a TFRecord file of events. The first event names the format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/train/events/event.h"

namespace paceline {

// append() writes complete records with a single system call. So a killed process leaves a valid
// file, at worst with a torn last record, which readers skip.
class EventFile {
 public:
  // Creates "events.out.tfevents.<time>.<host>.<pid>.<number>.v2", TensorFlow's naming, in the
  // existing `folder`. `number` distinguishes files of one process. Throws input if that fails.
  EventFile(const std::filesystem::path& folder, int number);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // Throws input if the write fails; a partial record is removed.
  void append(const Event& event);

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;  // size of complete records
};

struct EventsRead {
  std::vector<Event> events;  // without the first one, which names the format
  std::string damage;         // why reading stopped; empty: at the end of the file
};

// Also reads files that are being written. Throws input for other files.
EventsRead read_events(const std::filesystem::path& file);

}  // namespace paceline
