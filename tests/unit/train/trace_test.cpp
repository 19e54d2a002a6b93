#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/train/phase_clock.h"
#include "engine/train/trace/trace_file.h"
#include "engine/train/trace/tracer.h"
#include "tests/support/on_threads.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

TraceSpan span(const char* name, double begin, double end, std::uint64_t number = 0) {
  TraceRing ring(1);
  ring.note(name, begin, end, number, 1024);
  return ring.spans().at(0);
}

TEST(TraceRing, KeepsTheNewestAndCountsTheOthers) {
  TraceRing ring(3);
  for (int i = 0; i < 5; ++i) ring.note("a span", i, i + 1, 7);
  const auto spans = ring.spans();
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(spans[0].begin, 2);
  EXPECT_EQ(spans[2].begin, 4);
  EXPECT_EQ(spans[0].text(), "a span");
  EXPECT_EQ(ring.noted(), 5U);
  EXPECT_EQ(ring.dropped(), 2U);
}

TEST(TraceRing, HoldsTheNamesOfAWholeNetwork) {
  TraceRing ring(2);
  ring.note("conv5_block3_2_conv backward", 0, 1);
  ring.note(std::string(100, 'x'), 1, 2);
  EXPECT_EQ(ring.spans()[0].text(), "conv5_block3_2_conv backward");
  EXPECT_EQ(ring.spans()[1].text(), std::string(35, 'x'));
}

TEST(TraceRing, TakesNotesOfManyThreads) {
  TraceRing ring(10000);
  on_threads(4, [&](int) {
    for (int i = 0; i < 1000; ++i) ring.note("batch", i, i + 1);
  });
  EXPECT_EQ(ring.spans().size(), 4000U);
}

// Two ranks meet at barriers; the other's clock shows 100 s more, and it comes 1 ms late.
TEST(RankClock, FindsTheOffsetWithinItsBounds) {
  std::vector<RoundTrip> first, other;
  for (int i = 0; i < 5; ++i) {
    const double late = i == 3 ? 0.0001 : 0.001;
    first.push_back({i + 0.0, i + late + 0.00002});
    other.push_back({i + late + 100, i + late + 0.00003 + 100});
  }
  const ClockBounds bounds = clock_bounds(first, other);
  EXPECT_LE(bounds.low, -100);
  EXPECT_GE(bounds.high, -100);
  EXPECT_NEAR(bounds.high - bounds.low, 0.00015, 1e-9) << "the narrowest round trip counts";
  const RankClock clock({104, bounds}, {204, bounds});
  EXPECT_NEAR(clock.on_first(150), 50, clock.uncertainty());
  EXPECT_DOUBLE_EQ(clock.on_first(204) - clock.on_first(104), 100) << "no drift";
}

TEST(RankClock, IsLinearWhereTheOffsetMoved) {
  const RankClock clock({1000, {-1.0001, -0.9999}}, {2000, {-1.1001, -1.0999}});
  EXPECT_NEAR(clock.on_first(1000), 999, 1e-9);
  EXPECT_NEAR(clock.on_first(2000), 1998.9, 1e-9);
  EXPECT_NEAR(clock.on_first(1500), 1498.95, 1e-9);
  EXPECT_NEAR(clock.uncertainty(), 1e-4, 1e-9);
}

// Backward from 0 to 10, waiting to 14, update to 15; sums of 4..8, 9..14 and 20..21.
TEST(Overlap, OfAHandMadeStep) {
  const std::vector<TraceSpan> phases = {span("backward", 0, 10), span("communication", 10, 14),
                                         span("update", 14, 15), span("step", 0, 15)};
  const std::vector<TraceSpan> sums = {span("bucket 0", 4, 8), span("bucket 1", 9, 14),
                                       span("bucket 0", 20, 21)};
  const Overlap overlap = compute_overlap(sums, phases);
  EXPECT_DOUBLE_EQ(overlap.communication, 4 + 5 + 1);
  EXPECT_DOUBLE_EQ(overlap.hidden, 4 + 1);
  EXPECT_DOUBLE_EQ(overlap.share(), 0.5);
  EXPECT_EQ(compute_overlap({}, phases).share(), 0);
}

TEST(Overlap, LeavesOutWhatOneRingHasForgotten) {
  const std::vector<TraceSpan> phases = {span("forward", 10, 12)};
  const std::vector<TraceSpan> sums = {span("bucket 0", 4, 8), span("bucket 0", 11, 13)};
  EXPECT_DOUBLE_EQ(compute_overlap(sums, phases).communication, 2);
  EXPECT_DOUBLE_EQ(compute_overlap(sums, phases).hidden, 1);
}

TEST(PhaseClockTrace, NotesPhasesInsideTheirStep) {
  InlineLane lane;
  PhaseClock clock(2, lane);
  TraceRing ring(100);
  clock.trace(&ring, 8);
  for (int i = 0; i < 2; ++i) {
    clock.begin_step();
    clock.end(Phase::input);
    clock.end(Phase::forward);
    clock.end_step();
  }
  const auto spans = ring.spans();
  ASSERT_EQ(spans.size(), 8U);
  EXPECT_EQ(spans[0].text(), "input");
  EXPECT_EQ(spans[0].number, 8U);
  EXPECT_EQ(spans[3].text(), "step");
  EXPECT_EQ(spans[7].number, 9U);
  EXPECT_LE(spans[3].begin, spans[0].begin);
  EXPECT_EQ(spans[3].end, spans[2].end);
}

// A stream: markers are a second apart, and reached at once.
class StreamOfSeconds final : public Lane {
 public:
  void submit(HostTask) override {}
  Marker mark() override { return {this, ++marks_}; }
  void after(Marker) override {}
  bool reached(Marker) const override { return true; }
  void drain() override {}
  bool is_inline() const override { return false; }
  void wait_for(Marker) const override {}
  bool keeps_time() const override { return true; }
  double seconds_between(Marker begin, Marker end) const override {
    return static_cast<double>(end.position - begin.position);
  }

 private:
  std::uint64_t marks_ = 0;
};

TEST(PhaseClockTrace, PlacesMarkersOfAStreamOnTheClock) {
  StreamOfSeconds lane;
  PhaseClock clock(3, lane);
  TraceRing ring(100);
  clock.trace(&ring, 1);
  const double before = now_seconds();
  clock.anchor();
  const double after = now_seconds();
  for (int i = 0; i < 2; ++i) {
    clock.begin_step();
    clock.end(Phase::forward);
    clock.end(Phase::update);
    clock.end_step();
  }
  ASSERT_EQ(clock.steps().size(), 2U);
  const auto spans = ring.spans();
  ASSERT_EQ(spans.size(), 8U);
  EXPECT_GE(spans[0].begin, before + 1);
  EXPECT_LE(spans[0].begin, after + 1);
  EXPECT_NEAR(spans[0].end - spans[0].begin, 1, 1e-9);
  EXPECT_EQ(spans[1].begin, spans[0].end);
  EXPECT_NEAR(spans[4].begin - spans[0].begin, 3, 1e-9)
      << "forward, update, other: a step begins where the last one ended";
}

class TraceFileTest : public testing::Test {
 protected:
  Scratch scratch_;
  const std::filesystem::path file_ = scratch_ / "trace.json";
  static RankTrace trace(int rank, std::vector<TraceSpan> sums) {
    RankTrace trace;
    trace.rank = rank;
    trace.host = "n\"1";
    trace.lanes[0] = {span("step", 1, 4, 1)};
    trace.lanes[2] = std::move(sums);
    return trace;
  }
  static inline const RankClock kSame{{0, {0, 0}}, {1, {0, 0}}};
};

TEST_F(TraceFileTest, LinksTheLastToComeWithThoseThatWaited) {
  TraceFile file(file_, 1);
  file.add(trace(0, {span("bucket 0", 2, 3, 5), span("bucket 1", 3, 3.5, 6)}), kSame);
  file.add(trace(1, {span("bucket 0", 102.5, 103, 5)}), {{0, {-100, -100}}, {1, {-100, -100}}});
  file.add(trace(2, {span("bucket 0", 2.25, 3, 5)}), kSame);
  file.finish({{"a \"fact\"", "x"}});
  EXPECT_EQ(file.arrows(), 2U);
  const JsonDocument document = read_json(file_);
  const Json& events = document.value()["traceEvents"];
  std::map<std::string, Json> starts, ends;
  for (const Json& event : events) {
    if (event["ph"] == "s") starts[event["id"]] = event;
    if (event["ph"] == "f") ends[event["id"]] = event;
    if (event["ph"] == "X" && event["pid"] == 1 && event["name"] == "bucket 0") {
      EXPECT_NEAR(event["ts"].get<double>(), 1.5e6, 1e-3);
      EXPECT_NEAR(event["dur"].get<double>(), 0.5e6, 1e-3);
      EXPECT_EQ(event["args"]["sequence"], 5);
    }
  }
  ASSERT_EQ(starts.size(), 2U);
  ASSERT_EQ(ends.size(), 2U);
  for (const auto& [id, start] : starts) {
    EXPECT_EQ(start["pid"], 1) << "rank 1 came last";
    ASSERT_TRUE(ends.count(id));
    EXPECT_GE(ends[id]["ts"], start["ts"]);
  }
  EXPECT_EQ(document.value()["otherData"]["a \"fact\""], "x");
}

// Perfetto drops a slice that overlaps another by a nanosecond.
TEST_F(TraceFileTest, SpansThatTouchDoNotOverlap) {
  std::vector<TraceSpan> sums;
  double at = 209.0;
  for (int i = 0; i < 1000; ++i) {
    const double end = at + 5.813e-7 * (1 + i % 7);
    sums.push_back(span("bucket 0", at, end, static_cast<std::uint64_t>(i)));
    at = end;
  }
  const RankClock drifting({100, {-0.10001, -0.1}}, {300, {-0.10003, -0.10002}});
  TraceFile file(file_, 1);
  file.add(trace(0, std::move(sums)), drifting);
  file.finish({});
  const auto nanoseconds = [](const Json& microseconds) {
    return std::llround(1e3 * microseconds.get<double>());
  };
  const JsonDocument document = read_json(file_);
  std::int64_t last = 0;
  int checked = 0;
  for (const Json& event : document.value()["traceEvents"]) {
    if (event["ph"] != "X" || event["name"] != "bucket 0") continue;
    const std::int64_t begin = nanoseconds(event["ts"]);
    EXPECT_GE(begin, last) << "span " << checked;
    last = begin + nanoseconds(event["dur"]);
    ++checked;
  }
  EXPECT_EQ(checked, 1000);
}

TEST_F(TraceFileTest, IsNotThereBeforeItIsWhole) {
  {
    TraceFile file(file_, 0);
    file.add(trace(0, {}), kSame);
    EXPECT_FALSE(std::filesystem::exists(file_));
  }
  EXPECT_EQ(scratch_.files(), 0U);
  EXPECT_THROW(TraceFile(scratch_ / "no/where.json", 0), Error);
}

TEST(Tracer, KnowsWhatASpellCosts) {
  const double seconds = measured_span_seconds();
  EXPECT_GT(seconds, 0);
  EXPECT_LT(seconds, 1e-3);
}

}  // namespace
}  // namespace paceline
