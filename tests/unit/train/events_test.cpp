#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "engine/input/formats/tfrecord.h"
#include "engine/train/events/event_log.h"
#include "tests/support/expect_error.h"
#include "tests/support/read_events.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

Event scalar_event(std::int64_t step, double value) {
  Event event;
  event.step = step;
  event.scalars = {{"epoch_loss", value}};
  return event;
}

fs::path only_file(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  EXPECT_EQ(files.size(), 1U);
  return files.at(0);
}

TEST(Histogram, HasTensorFlowsBuckets) {
  // tf.summary.histogram of [0, 0.5, 1, 29.5, 30]: edges 0, 1, ..., 30.
  const std::vector<double> values = {0, 0.5, 1, 29.5, 30};
  const Histogram buckets = make_histogram(values);
  ASSERT_EQ(buckets.size(), 30U);
  EXPECT_EQ(buckets[0], (HistogramBucket{0, 1, 2}));
  EXPECT_EQ(buckets[1], (HistogramBucket{1, 2, 1}));
  EXPECT_EQ(buckets[2].count, 0);
  EXPECT_EQ(buckets[29], (HistogramBucket{29, 30, 2}));
}

TEST(Histogram, OfEqualValuesFillsTheLastBucket) {
  const Histogram buckets = make_histogram(std::vector<double>(7, 0.25));
  EXPECT_EQ(buckets[28], (HistogramBucket{0.25, 0.25, 0}));
  EXPECT_EQ(buckets[29], (HistogramBucket{0.25, 0.25, 7}));
}

TEST(Histogram, LeavesOutWhatIsNotFinite) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(make_histogram({}), Histogram(30));
  const Histogram buckets = make_histogram(std::vector<double>{1, inf, 2, -inf, std::nan("")});
  EXPECT_EQ(buckets.front(), (HistogramBucket{1, 1 + 1.0 / 30, 1}));
  EXPECT_EQ(buckets.back().right, 2);
  EXPECT_EQ(buckets.back().count, 1);
}

TEST(Event, IsReadAsItWasWritten) {
  Event event = scalar_event(-3, 0.5);
  event.wall_time = 1795293732.25;
  event.scalars.push_back({"phases/input_seconds", 1e-6});
  event.histograms.push_back({"dense/kernel/histogram", {{-1, 0, 3}, {0, 2, 1e9}}});
  const Event read = decode_event(encode(event), "test");
  EXPECT_EQ(read.step, -3);
  EXPECT_EQ(read.wall_time, 1795293732.25);
  ASSERT_EQ(read.scalars.size(), 2U);
  EXPECT_EQ(read.scalars[0].tag, "epoch_loss");
  EXPECT_EQ(read.scalars[0].value, 0.5);
  EXPECT_FLOAT_EQ(static_cast<float>(read.scalars[1].value), 1e-6F);
  ASSERT_EQ(read.histograms.size(), 1U);
  EXPECT_EQ(read.histograms[0].tag, "dense/kernel/histogram");
  EXPECT_EQ(read.histograms[0].histogram, event.histograms[0].histogram);
}

// The bytes of an Event that TensorFlow 2.21 wrote: tf.summary.scalar("epoch_loss", 0.5, step=7).
TEST(Event, IsReadAsTensorFlowWritesIt) {
  const std::string bytes(
      "\x09\x0A\x31\xCB\x18\x81\xC0\xDA\x41\x10\x07\x2A\x27\x0A\x25\x0A\x0A"
      "epoch_loss"
      "\x42\x0A\x08\x01\x12\x00\x22\x04\x00\x00\x00\x3F\x4A\x0B\x0A\x09\x0A\x07scalars",
      52);
  const Event event = decode_event(bytes, "test");
  EXPECT_EQ(event.step, 7);
  ASSERT_EQ(event.scalars.size(), 1U);
  EXPECT_EQ(event.scalars[0].tag, "epoch_loss");
  EXPECT_EQ(event.scalars[0].value, 0.5);
}

TEST(Event, RefusesWhatIsNone) {
  expect_error(ErrorKind::input, {"here", "not an event"},
               [] { decode_event("\xFF\xFF\xFF", "here"); });
}

TEST(EventFile, LosesOnlyATornRecord) {
  const Scratch scratch;
  fs::path path;
  {
    EventFile file(scratch.path(), 0);
    path = file.path();
    EXPECT_TRUE(path.filename().string().starts_with("events.out.tfevents."));
    for (int i = 0; i < 3; ++i) file.append(scalar_event(i, i));
  }
  EXPECT_EQ(read_events(path).events.size(), 3U);
  EXPECT_EQ(read_events(path).damage, "");
  const auto whole = fs::file_size(path);
  for (const std::uintmax_t cut : {1, 5, 40}) {
    fs::resize_file(path, whole - cut);
    const EventsRead read = read_events(path);
    EXPECT_EQ(read.events.size(), 2U) << cut;
    EXPECT_NE(read.damage, "") << cut;
  }
}

TEST(EventFile, RefusesAnotherFile) {
  const Scratch scratch;
  std::ofstream(scratch / "records") << framed_record("neither event nor version");
  std::ofstream(scratch / "text") << "a text that is long enough to be no header at all";
  std::ofstream(scratch / "empty");
  for (const char* name : {"records", "text", "empty"}) {
    EXPECT_THROW(read_events(scratch / name), Error) << name;
  }
}

TEST(EventLog, MakesKerasFolders) {
  const Scratch scratch;
  {
    EventLog log(scratch / "run", {});
    EXPECT_FALSE(fs::exists(scratch / "run/validation"));
    for (int i = 0; i < 100; ++i) log.add(EventSide::train, scalar_event(i, i));
    log.add(EventSide::train, Event{});
    log.add(EventSide::validation, scalar_event(1, 5));
    EXPECT_EQ(log.settle(), "");
    EXPECT_EQ(read_events(only_file(scratch / "run/train")).events.size(), 100U);
    log.add(EventSide::validation, scalar_event(2, 6));
  }
  const auto read = read_events(only_file(scratch / "run/validation")).events;
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[1].scalars.at(0).value, 6);
  EXPECT_GT(read[0].wall_time, 1e9);
  EXPECT_LE(read[0].wall_time, read[1].wall_time);
}

// In a child process whose files may not grow: as on a full disk.
TEST(EventLog, OnAFullDiskIsMarkedAndLeavesWholeRecords) {
  const Scratch scratch;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    EventLog log(scratch.path(), {});
    for (int i = 0; i < 100; ++i) {
      log.add(EventSide::train, scalar_event(i, i));
      const std::string failure = log.settle();
      if (failure.empty()) continue;
      _exit(failure.find("cannot be written") != std::string::npos && i > 2 ? 0 : 2);
    }
    _exit(1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const EventsRead read = read_events(only_file(scratch / "train"));
  EXPECT_GT(read.events.size(), 2U);
  EXPECT_EQ(read.damage, "");
}

TEST(EventLog, RefusesAFolderThatCannotBeMade) {
  const Scratch scratch;
  std::ofstream(scratch / "file") << "x";
  EXPECT_THROW(EventLog(scratch / "file", {}), Error);
}

}  // namespace
}  // namespace paceline
