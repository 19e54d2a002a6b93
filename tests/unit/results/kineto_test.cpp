// Traces of PyTorch's profiler as phases. Times of handmade events are microseconds.
#include "results/import/kineto.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/facts/rank.h"
#include "results/import/import.h"
#include "results/run_record.h"
#include "results/step_samples.h"
#include "results/store.h"
#include "tests/support/expect_error.h"
#include "tests/unit/results/sample_record.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 1e-10;  // steps are floats

std::string event(const std::string& category, const std::string& name, int thread, double begin,
                  double end, const std::string& args = "{}") {
  return fmt::format(
      R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": {}, "ts": {}, "dur": {}, "args": {}}},)",
      category, name, thread, begin, end - begin, args);
}

std::string mark(int number, double begin, double end) {
  return event("user_annotation", fmt::format("ProfilerStep#{}", number), 1, begin, end);
}

std::string launch(int correlation, int thread, double at) {
  return event("cuda_runtime", "cudaLaunchKernel", thread, at, at + 1,
               fmt::format(R"({{"correlation": {}}})", correlation));
}

std::string kernel(const std::string& name, int correlation, double begin, double end) {
  return event("kernel", name, 7, begin, end, fmt::format(R"({{"correlation": {}}})", correlation));
}

// With the metadata of a rank, if it is one of several.
std::string trace_text(std::string events, int rank = -1, int ranks = 0) {
  if (!events.empty()) events.pop_back();
  const std::string info =
      rank < 0 ? ""
               : fmt::format(
                     R"("distributedInfo": {{"backend": "gloo", "rank": {}, "world_size": {}}}, )",
                     rank, ranks);
  return "{" + info + "\"traceEvents\": [" + events + "]}";
}

class Kineto : public ::testing::Test {
 protected:
  std::string file(const std::string& text, const std::string& name = "t.json") const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  KinetoTrace read(const std::string& events) const {
    return read_kineto_trace(file(trace_text(events)));
  }
  std::string refused(const std::string& text) const {
    return catch_error(ErrorKind::input, [&] { read_kineto_trace(file(text)); });
  }
  std::string refused_run(const std::vector<std::string>& files) const {
    return catch_error(ErrorKind::input, [&] { read_kineto_run(files); });
  }

  Scratch folder_;
};

std::string sample(const std::string& name) {
  return (fs::path(PACELINE_SOURCE_DIR) / "tests/data/kineto" / name).string();
}

double us(const StepTimes& step, Phase phase) {
  return 1e6 * static_cast<double>(step.seconds[static_cast<std::size_t>(phase)]);
}

// Of a step, in the order of the phases.
void expect_phases(const StepTimes& step, const std::vector<double>& microseconds) {
  for (std::size_t p = 0; p < kPhases; ++p) {
    EXPECT_NEAR(us(step, static_cast<Phase>(p)), microseconds[p], 1e-3) << kPhaseNames[p];
  }
}

TEST_F(Kineto, AGpusStepIsDividedWithoutGaps) {
  const KinetoTrace trace = read(
      mark(1, 0, 99) + mark(2, 100, 199) +
      event("user_annotation", "enumerate(DataLoader)#_SingleProcess.__next__", 1, 0, 8) +
      event("user_annotation", "enumerate(DataLoader)#_SingleProcess.__next__", 1, 100, 120) +
      event("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 2, 15, 25) +
      event("user_annotation", "Optimizer.step#SGD.step", 1, 38, 45) + launch(1, 1, 5) +
      launch(2, 2, 20) + launch(3, 1, 40) + launch(4, 1, 110) + kernel("gemm", 1, 10, 30) +
      kernel("wgrad", 2, 30, 60) + kernel("sgd", 3, 90, 95) + kernel("gemm", 4, 150, 160) +
      event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", 9, 50, 90,
            R"({"Collective name": "allreduce", "In msg nelems": 250, "dtype": "Float"})") +
      event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", 9, 155, 230) +
      event("gpu_memcpy", "Memcpy HtoD", 7, 96, 98) +
      event("cuda_sync", "Context Sync", 7, 0, 300) + event("kernel", "Event Sync", 7, 0, 300) +
      event("kernel", "Stream Wait Event", 7, 0, 300));
  EXPECT_TRUE(trace.on_gpu);
  ASSERT_EQ(trace.times.steps.size(), 2U);
  // input, forward, backward, communication, update, other
  expect_phases(trace.times.steps[0], {8, 20, 30, 30, 5, 7});
  // The last step ends with its last kernel, at 230.
  expect_phases(trace.times.steps[1], {20, 10, 0, 70, 0, 30});
  EXPECT_NEAR(sum_phases(trace.times).communication_hidden, 15e-6, kTolerance);
  EXPECT_NEAR(trace.device_seconds, 220e-6, kTolerance);
  EXPECT_NEAR(trace.compute_seconds, 65e-6, kTolerance);
  EXPECT_NEAR(trace.idle_seconds, 53e-6, kTolerance);
  EXPECT_NEAR(trace.communication_seconds, 115e-6, kTolerance);
  EXPECT_NEAR(trace.hidden_seconds, 15e-6, kTolerance);
  EXPECT_EQ(trace.bucket_bytes, std::vector<std::int64_t>{1000});
}

TEST_F(Kineto, ACpuComputesOutsideOfItsWaits) {
  const KinetoTrace trace =
      read(mark(1, 0, 99) + mark(2, 100, 200) +
           event("user_annotation", "enumerate(DataLoader)#_SingleProcess.__next__", 1, 0, 10) +
           event("cpu_op", "aten::select", 1, 2, 6) + event("cpu_op", "aten::linear", 1, 10, 30) +
           event("cpu_op", "aten::addmm", 1, 12, 28) +
           event("cpu_op", "autograd::engine::evaluate_function: AccumulateGrad", 1, 30, 60) +
           event("cpu_op", "c10d::allreduce_", 1, 50, 55) +
           event("user_annotation", "gloo:all_reduce", 5, 52, 80,
                 R"({"Input Dims": [[10, 25]], "Input type": ["float"]})") +
           event("cpu_op", "torch.distributed.ddp.reducer::copy_bucket_to_grad", 1, 80, 85) +
           event("user_annotation", "Optimizer.step#SGD.step", 1, 85, 95) +
           event("cpu_op", "aten::add_", 1, 87, 93) + event("cpu_op", "aten::linear", 1, 120, 130));
  EXPECT_FALSE(trace.on_gpu);
  ASSERT_EQ(trace.times.steps.size(), 2U);
  expect_phases(trace.times.steps[0], {10, 25, 25, 23, 6, 11});
  expect_phases(trace.times.steps[1], {0, 10, 0, 0, 0, 90});
  EXPECT_NEAR(sum_phases(trace.times).communication_hidden, 5e-6, kTolerance);
  EXPECT_EQ(trace.bucket_bytes, std::vector<std::int64_t>{1000});
  EXPECT_NEAR(trace.bytes_per_step, 500, 1e-9);
}

TEST_F(Kineto, CommunicationIsKnownByItsNames) {
  for (const char* name :
       {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", "ncclDevKernel_Broadcast_RING_LL",
        "nccldevkernel_generic", "rcclGenericKernel<1, false>(ncclDevComm*)",
        "void mscclKernel_Sum_float_LL<true>(ncclDevComm*)", "nvshmemi_barrier_kernel",
        "nccl:all_reduce", "barrier_kernel(unsigned int**)"}) {
    const KinetoTrace trace = read(kernel("gemm", 1, 0, 10) + kernel(name, 2, 20, 24));
    EXPECT_NEAR(trace.communication_seconds, 4e-6, kTolerance) << name;
    EXPECT_NEAR(trace.compute_seconds, 10e-6, kTolerance) << name;
  }
  // Other kernels only have such words among their arguments, or say so in their metadata.
  const KinetoTrace other =
      read(kernel("void cutlass::Kernel<cutlass::arch::NamedBarrier>(int)", 1, 0, 10) +
           event("kernel", "two_shot_kernel", 7, 20, 24, R"({"Collective name": "allreduce"})"));
  EXPECT_NEAR(other.compute_seconds, 10e-6, kTolerance);
  EXPECT_NEAR(other.communication_seconds, 4e-6, kTolerance);
}

TEST_F(Kineto, WithoutMarksAllIsOneStep) {
  const KinetoTrace trace = read(kernel("gemm", 1, 5, 10) + kernel("gemm", 2, 20, 25));
  EXPECT_FALSE(trace.has_marks);
  ASSERT_EQ(trace.times.steps.size(), 1U);
  expect_phases(trace.times.steps[0], {0, 10, 0, 0, 0, 10});
  const auto notes = read_kineto_run({file(trace_text(kernel("gemm", 1, 5, 10)))}).notes;
  expect_parts(join(notes, "\n"), {"all of the trace is one step"});
}

// A float of seconds has no room for a microsecond beside sixteen seconds.
TEST_F(Kineto, ManyShortSpansAreSummedWhole) {
  std::string events = kernel("gemm", 1, 0, 20e6);
  for (int i = 0; i < 20000; ++i) events += kernel("gemm", i + 2, 20e6 + 2 * i, 20e6 + 2 * i + 1);
  const KinetoTrace trace = read(events);
  EXPECT_NEAR(us(trace.times.steps[0], Phase::forward), 20.02e6, 2);
}

TEST_F(Kineto, EventsWithoutAUsableTimeAreCounted) {
  const KinetoTrace trace =
      read(event("cpu_op", "aten::mm", 1, 10, 20) + event("cpu_op", "aten::mm", 1, 30, 25) +
           event("cpu_op", "aten::mm", 1, 0, 1e17) + event("cpu_op", "aten::mm", 1, 1e300, 1e300) +
           R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "tid": 1},)");
  EXPECT_EQ(trace.left_out, 4);
  EXPECT_NEAR(trace.compute_seconds, 10e-6, kTolerance);
  // Fractions of a microsecond survive times since 1970.
  const KinetoTrace late = read(event("cpu_op", "aten::mm", 1, 1.7e15 + 0.5, 1.7e15 + 2));
  EXPECT_NEAR(late.compute_seconds, 1.5e-6, kTolerance);
}

TEST_F(Kineto, WhatIsNoTraceIsRefused) {
  const std::string one = trace_text(event("cpu_op", "aten::mm", 1, 10, 20));
  EXPECT_EQ(refused(one), "");
  EXPECT_EQ(refused(gzip(one)), "");
  expect_parts(refused("hello"), {"not a trace of PyTorch's profiler"});
  expect_parts(refused("{\"a\": 1}"), {"not a trace of PyTorch's profiler"});
  expect_parts(refused(one.substr(0, 60)), {"cut off at byte 61"});
  for (const char* name : {"Library(\"my\", \"IMPL\")", "a\nb", "C:\\Users\\x", "a\x01", "\xff"}) {
    expect_parts(refused(trace_text(event("python_function", name, 1, 1, 2))),
                 {"the trace is not JSON at byte ", "with_stack=False"});
  }
  expect_parts(refused(" [{\"name\": \"aten::conv2d\", \"ph\": \"X\", \"ts\": 1}]"),
               {"a bare list of events", "torch.autograd.profiler", "torch.profiler.profile"});
  expect_parts(refused(gzip(one).substr(0, 40)), {"the gzip data is damaged or cut off"});
  expect_parts(refused("{\"traceEvents\": " + std::string(9999, '[')), {"nested too deeply"});
  expect_parts(refused(trace_text("")), {"the trace has no computing"});
  expect_parts(refused(trace_text(event("cpu_op", "aten::mm", 1, 1, 2) +
                                  event("user_annotation", "nccl:all_reduce", 1, 2, 3))),
               {"no kernels of a GPU; record it with ProfilerActivity.CUDA"});
  expect_error(ErrorKind::input, {"cannot be read"}, [] { read_kineto_trace("/nowhere"); });
  expect_parts(refused(trace_text(mark(1, 5, 5) + event("cpu_op", "aten::mm", 1, 1, 2))),
               {"its marks of steps have no length"});
  expect_parts(refused("{\"traceEvents\": [{\"ph\": \"X\", \"ts\": 1, \"dur\": 1e999}]}"),
               {"a number of the trace is larger than any that is read"});
  expect_parts(refused(gzip(std::string(40'000'000, ' ') + one)),
               {"would unpack to", "over 100 times its size", "t.json"});
}

TEST_F(Kineto, RanksAreOfOneRun) {
  const std::string op = event("cpu_op", "aten::mm", 1, 10, 20);
  const std::string two = mark(1, 0, 15) + mark(2, 15, 30) + op;
  const std::string a = file(trace_text(op, 1, 2), "a.json"),
                    b = file(trace_text(op, 0, 2), "b.json");
  const KinetoRun run = read_kineto_run({a, b});
  EXPECT_EQ(run.world_size, 2);
  EXPECT_EQ(run.ranks[0].file, b);
  expect_parts(refused_run({a, a}), {"the trace is of rank 1, as "});
  expect_parts(refused_run({a, file(trace_text(op, 0, 3), "c.json")}), {"of another run than"});
  expect_parts(refused_run({file(trace_text(op, 2, 2), "d.json")}), {"is of rank 2 of 2"});
  // Names give ranks where traces do not, else their order does.
  const KinetoRun named = read_kineto_run(
      {file(trace_text(op), "x-rank_1.json"), file(trace_text(two), "x-rank_0.json")});
  expect_parts(named.ranks[0].file, {"rank_0"});
  EXPECT_EQ(named.world_size, 2);
  EXPECT_EQ(named.steps(), 1U) << "of two steps and one";
  EXPECT_NEAR(named.seconds(), 15e-6, kTolerance);
}

// A rank that computes 20 % longer in each of 20 steps.
TEST_F(Kineto, ALateRankIsAStraggler) {
  std::vector<std::string> files;
  for (int rank = 0; rank < 2; ++rank) {
    std::string events;
    for (int step = 0; step < 20; ++step) {
      const double begin = 100.0 * step, end = begin + (rank == 1 ? 60 : 50);
      events += mark(step, begin, begin + 100) + event("cpu_op", "aten::mm", 1, begin, end) +
                event("user_annotation", "gloo:all_reduce", 5, end, begin + 70);
    }
    files.push_back(file(trace_text(events, rank, 2), fmt::format("{}.json", rank)));
  }
  RunRecord record;
  set_trace_facts(record, read_kineto_run(files));
  ASSERT_TRUE(*record.straggler);
  EXPECT_EQ((*record.straggler)->rank, 1);
  EXPECT_NEAR(*(*record.straggler)->excess_seconds_per_step, 10e-6, 1e-9);
  EXPECT_EQ((*record.profile)->ranks, 2);
  RunRecord scaled;
  set_trace_facts(scaled, read_kineto_run(files), 3);
  EXPECT_NEAR((*scaled.each_rank)[0].phases->forward, 3 * (*record.each_rank)[0].phases->forward,
              kTolerance);
}

// Of HolisticTraceAnalysis 0.5.0, as docs/import.md says.
TEST_F(Kineto, FiguresAreThoseOfHolisticTraceAnalysis) {
  const KinetoTrace nccl = read_kineto_trace(sample("hta-nccl-data.json.gz"));
  EXPECT_NEAR(1e6 * nccl.idle_seconds, 503050.991, 0.01);
  EXPECT_NEAR(1e6 * nccl.compute_seconds, 115655.847, 0.01);
  EXPECT_NEAR(1e6 * nccl.device_seconds, 660551.006, 0.01);
  EXPECT_NEAR(100 * nccl.hidden_seconds / nccl.communication_seconds, 15.61, 0.005);
  EXPECT_EQ(nccl.bucket_bytes,
            (std::vector<std::int64_t>{8196000, 31502336, 26255360, 26550272, 9724160}));
  EXPECT_NEAR(nccl.bytes_per_step, 102441032, 0.5) << "with broadcasts, in floats and longs";
  const KinetoTrace amd = read_kineto_trace(sample("hta-amd.json.gz"));
  EXPECT_NEAR(1e6 * amd.idle_seconds, 8762.845, 0.01);
  EXPECT_NEAR(1e6 * amd.compute_seconds, 110.881, 0.01);
  EXPECT_NEAR(1e6 * amd.device_seconds, 8911.887, 0.01);
  // It takes 2 us of Stream Wait Event for computing: 371 us, 19132 us idle.
  const KinetoTrace sync = read_kineto_trace(sample("hta-event-sync.json.gz"));
  EXPECT_NEAR(1e6 * sync.compute_seconds, 369, 0.01);
  EXPECT_NEAR(1e6 * sync.idle_seconds, 19134, 0.01);
  EXPECT_NEAR(1e6 * sync.device_seconds, 19506, 0.01);
}

// Two ranks of PyTorch's DDP over Gloo on CPUs.
TEST_F(Kineto, RealTracesBecomeOneRecord) {
  const std::vector<std::string> files = {sample("ddp-gloo-rank1.json.gz"),
                                          sample("ddp-gloo-rank0.json.gz")};
  const auto request = [&](const std::string& study, const std::vector<std::string>& set) {
    return ImportRequest{"kineto", files, study, folder_.path(), set, {}, "0.1.0"};
  };
  Import(request("s", {"batch_per_replica=16", "workload=mlp"})).write(false);
  const StoreContent content = load_store(folder_ / "s");
  ASSERT_EQ(content.records.size(), 1U);
  const Record& record = content.records[0];
  EXPECT_EQ(record->workload, "mlp");
  EXPECT_EQ(record->layout.gpus, 2);
  EXPECT_EQ(record->layout.replicas_are, "cores");
  EXPECT_EQ(*record->throughput->samples, 3 * 2 * 16);
  EXPECT_EQ(*record->plan.global_batch, 32);
  EXPECT_EQ(record->plan.bucket_bytes, (std::vector<std::int64_t>{1059880, 1052672}));
  EXPECT_EQ((*record->profile)->steps, 3);
  EXPECT_EQ((*record->profile)->communication_bytes, 1059880 + 1052672);
  ASSERT_EQ(record->each_rank->size(), 2U);
  for (const RankFacts& facts : *record->each_rank) {
    const PhaseSeconds& rank = facts.phases.value();
    EXPECT_GT(rank.input, 0);
    EXPECT_GT(rank.forward, 0);
    EXPECT_GT(rank.backward, 0);
    EXPECT_GT(rank.update, 0);
    EXPECT_GT(rank.communication, 0);
    EXPECT_GT(rank.communication_hidden, 0);
    EXPECT_NEAR(
        rank.input + rank.forward + rank.backward + rank.communication + rank.update + rank.other,
        rank.step, 1e-5 * rank.step);
  }
  EXPECT_NEAR((*record->each_rank)[0].phases->communication, 0.0195, 0.0001);
  EXPECT_TRUE(summed_steps(*record, record.where())) << "the sidecar has every step";
  const auto again = Import(request("s", {"batch_per_replica=16", "workload=mlp"})).write(false);
  EXPECT_FALSE(again.front().records.front().is_new);
  // Without a batch, steps are counted.
  Import(request("t", {})).write(false);
  const StoreContent steps = load_store(folder_ / "t");
  EXPECT_EQ(steps.records.at(0)->throughput->unit, "steps");
  EXPECT_EQ(*steps.records.at(0)->throughput->samples, 3);
}

}  // namespace
}  // namespace paceline
