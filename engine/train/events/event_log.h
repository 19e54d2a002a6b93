// Writes a run's events for TensorBoard, with the folders and names of Keras' callback, so that
// dashboards are comparable:
//
//   FOLDER/train/events.out.tfevents.*         epoch_loss, epoch_accuracy, batch_loss, ...
//   FOLDER/validation/events.out.tfevents.*    epoch_loss, epoch_accuracy
//
// A background thread writes the events.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace paceline {

// What TensorBoard shows for one step, and its wire format: TensorFlow's Event, with values as
// TensorFlow 2 writes them (tensors for the plugins "scalars" and "histograms").

// The distribution of a parameter's values, in the buckets of TensorFlow's tf.summary.histogram
// (tensorboard/plugins/histogram/summary_v2.py).

// Values in [left, right). The last bucket includes its right edge.
struct HistogramBucket {
  double left = 0, right = 0, count = 0;
  friend bool operator==(const HistogramBucket&, const HistogramBucket&) = default;
};

using Histogram = std::vector<HistogramBucket>;

constexpr std::size_t kHistogramBuckets = 30;

// kHistogramBuckets equal buckets from the minimum to the maximum. If all values are equal, all
// edges are equal and the last bucket has the values. Without values everything is zero. Ignores
// values that are not finite.
Histogram make_histogram(std::span<const double> values);

struct Event {
  struct Scalar {
    std::string tag;
    double value = 0;  // stored as 32 bits, as in Keras
  };
  struct Distribution {
    std::string tag;
    Histogram histogram;
  };

  double wall_time = 0;  // seconds since 1970
  std::int64_t step = 0;
  std::string file_version;  // in a file's first event only
  std::vector<Scalar> scalars;
  std::vector<Distribution> histograms;
};

std::string encode(const Event& event);

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
  void work(const std::stop_token& stop, const std::vector<int>& cpus) noexcept;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Entry> entries_;
  bool writing_ = false, broken_ = false;
  std::string failure_;
  struct Files;
  std::unique_ptr<Files> files_;
  std::jthread thread_;  // last: it ends first
};

// A TensorBoard event file: a TFRecord file of events. The first event names the format.

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

}  // namespace paceline
