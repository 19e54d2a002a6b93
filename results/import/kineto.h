// Traces of PyTorch's profiler (Kineto): Chrome trace events in JSON, plain or gzipped, a file a
// rank. Read event by event, so a trace may be larger than memory.
//
// A step begins where the host's ProfilerStep#N begins and ends where the next one does, so a GPU's
// kernels count where they run, not where they were launched. Its time is divided without gaps:
//
//   of a GPU   computing, else communication (exposed), else loading data, else other
//   of a CPU   loading data, else computing, else communication (exposed), else other
//
// Computing is the union of kernels that are no communication, or of the operators of a host
// without a GPU, outside of their waits. It is update below Optimizer.step, backward below autograd
// and else forward; a kernel is what launched it. Communication is kernels of NCCL and its
// relatives, and spans of Gloo, MPI and UCC. Copies and gaps are `other`. Events of synchronisation
// are none of these. HolisticTraceAnalysis counts in the same way, but over the whole trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/facts/step_times.h"

namespace paceline {

struct RunRecord;

struct KinetoTrace {
  std::string file;
  std::optional<int> rank, world_size;  // as the trace says
  std::string backend, gpu;             // "nccl", "NVIDIA A100"; empty: not said, no GPU
  bool on_gpu = false, has_marks = false, has_autograd = false;
  RankTimes times;
  // From the first to the last event of the device, as HolisticTraceAnalysis counts.
  double device_seconds = 0, compute_seconds = 0, idle_seconds = 0;
  double communication_seconds = 0, hidden_seconds = 0;
  std::vector<std::int64_t> bucket_bytes;  // all-reduces of a step, in their order
  double bytes_per_step = 0;               // of all its collectives; 0: sizes are not recorded
  std::int64_t spans = 0, left_out = 0;    // events that count; that have no usable time
};

// Throws input naming the file: it is damaged, cut off, not such a trace, has no computing.
KinetoTrace read_kineto_trace(const std::string& file);

// Traces of one run.
struct KinetoRun {
  std::vector<KinetoTrace> ranks;  // by rank, each of the same number of steps
  int world_size = 1;
  std::vector<std::string> notes;

  std::size_t steps() const { return ranks.front().times.steps.size(); }
  double seconds() const;  // of these steps, of the slowest rank
};

// Throws input as above, and if two files are of one rank, or of runs of different sizes.
KinetoRun read_kineto_run(const std::vector<std::string>& files);

// Sets the phases of each rank, times `scale`, and what else a trace says of a run's steps.
void set_trace_facts(RunRecord& record, const KinetoRun& trace, double scale = 1);

// Its steps as a record's sidecar has them.
std::string compressed_steps(const KinetoRun& trace);

}  // namespace paceline
