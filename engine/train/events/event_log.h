// Writes a run's events for TensorBoard, with the folders and names of Keras' callback, so that
// dashboards are comparable:
//
//   FOLDER/train/events.out.tfevents.*         epoch_loss, epoch_accuracy, batch_loss, ...
//   FOLDER/validation/events.out.tfevents.*    epoch_loss, epoch_accuracy
//
// A background thread writes the events.
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

// The caller's settings.
struct EventSetup {
  std::filesystem::path folder;  // of this run; created if missing
  int histogram_every = 0;       // epochs between histograms of all parameters; 0: none
};

enum class EventSide { train, validation };

class EventLog {
 public:
  // The thread runs on `cpus`; empty: any. Throws input if the folder cannot be written.
  EventLog(const std::filesystem::path& folder, std::vector<int> cpus);
  // Writes pending events. Ignores errors that settle() did not return.
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  // Adds an event with the current time. Ignores events without values, and everything after a
  // write error.
  void add(EventSide side, Event event);

  // Waits until all events are written. Returns the error, once; empty: success.
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
