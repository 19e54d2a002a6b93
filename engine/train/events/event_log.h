// What a run writes for TensorBoard, in the folders and under the names that Keras' callback uses,
// so that dashboards line up:
//
//   FOLDER/train/events.out.tfevents.*         epoch_loss, epoch_accuracy, batch_loss, ...
//   FOLDER/validation/events.out.tfevents.*    epoch_loss, epoch_accuracy
//
// Events are handed over and written by a thread of its own.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/train/events/event.h"

namespace paceline {

// What the run's caller decides.
struct EventSetup {
  std::filesystem::path folder;  // of this run; made where it is missing
  int histogram_every = 0;       // epochs between histograms of all parameters; 0: none
};

enum class EventSide { train, validation };

class EventLog {
 public:
  // The thread runs on any of `cpus`; empty: anywhere. Throws input if the folder cannot be
  // written.
  EventLog(const std::filesystem::path& folder, std::vector<int> cpus);
  // Writes what was handed over. An error that nobody asked for is lost.
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  // The event gets the time of the call. After a file could not be written all else is dropped. An
  // event without values is none.
  void add(EventSide side, Event event);

  // Everything handed over is written. Returns why not all could be, once; empty: all is well.
  std::string settle();

 private:
  struct Entry {
    EventSide side;
    Event event;
  };
  void work(const std::vector<int>& cpus) noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Entry> entries_;
  bool stop_ = false, writing_ = false, broken_ = false;
  std::string failure_;
  struct Files;
  std::unique_ptr<Files> files_;
  std::thread thread_;
};

}  // namespace paceline
