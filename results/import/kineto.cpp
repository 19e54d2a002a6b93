#include "results/import/kineto.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/facts/json.h"
#include "engine/facts/rank.h"
#include "results/run_record.h"
#include "results/step_samples.h"

namespace paceline {

namespace {

// "rank3.json", "trace_rank-3.json.gz"
std::optional<int> rank_in_name(const std::string& file) {
  const std::string name = to_lower(std::filesystem::path(file).filename().string());
  std::size_t at = name.rfind("rank");
  if (at == name.npos) return std::nullopt;
  at = name.find_first_of("0123456789", at);
  if (at == name.npos) return std::nullopt;
  const std::string_view digits(
      name.data() + at, std::min(name.find_first_not_of("0123456789", at), name.size()) - at);
  const auto number = to_integer(digits);
  if (!number || *number >= static_cast<std::int64_t>(kMostOfAnInt)) return std::nullopt;
  return static_cast<int>(*number);
}

void number_ranks(std::vector<KinetoTrace>& ranks) {
  const auto is_numbered = [](const KinetoTrace& each) { return each.rank.has_value(); };
  if (!std::ranges::all_of(ranks, is_numbered)) {
    for (KinetoTrace& each : ranks) each.rank = rank_in_name(each.file);
  }
  if (std::ranges::all_of(ranks, is_numbered)) return;
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].rank = static_cast<int>(i);
}

void add_trace_notes(KinetoRun& trace, std::size_t most_steps) {
  std::vector<std::string>& notes = trace.notes;
  constexpr std::size_t kMostLines = 8;
  std::int64_t left_out = 0;
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
    const KinetoTrace& rank = trace.ranks[i];
    left_out += rank.left_out;
    if (i >= kMostLines) continue;
    const double compute = rank.compute_seconds / rank.device_seconds;
    const double idle = rank.idle_seconds / rank.device_seconds;
    std::string line =
        fmt::format("rank {}: {} of the {}: {:.1f} % computing, {:.1f} % idle, {:.1f} % only {}",
                    *rank.rank, format_seconds(rank.device_seconds), rank.on_gpu ? "GPU" : "CPU",
                    100 * compute, 100 * idle, 100 * std::max(0.0, 1 - compute - idle),
                    rank.on_gpu ? "communication or copies" : "communication or loading data");
    if (rank.communication_seconds > 0) {
      line += fmt::format("; {:.1f} % of the communication is hidden behind computing",
                          100 * rank.hidden_seconds / rank.communication_seconds);
    }
    notes.push_back(line);
  }
  const KinetoTrace& first = trace.ranks.front();
  if (trace.ranks.size() < static_cast<std::size_t>(trace.world_size)) {
    notes.push_back(fmt::format("traces of {} of {} ranks; nothing is known of the others",
                                trace.ranks.size(), trace.world_size));
  }
  if (most_steps > trace.steps()) {
    notes.push_back(fmt::format("ranks have up to {}, of which the first {} count",
                                counted(static_cast<double>(most_steps), "step"), trace.steps()));
  }
  if (!first.has_marks) {
    notes.emplace_back(
        "no marks of steps: all of the trace is one step; call step() of the profiler in each");
  }
  if (!first.has_autograd)
    notes.emplace_back("no backward of autograd is marked: what there is of it counts as forward");
  if (first.communication_seconds > 0 && first.bytes_per_step == 0) {
    notes.emplace_back("no sizes of messages; Gloo's are recorded with record_shapes=True");
  }
  if (left_out > 0) {
    notes.push_back(fmt::format("{} without a time, or of a negative or endless duration, left out",
                                counted(static_cast<double>(left_out), "event")));
  }
}

}  // namespace

double KinetoRun::seconds() const {
  double most = 0;
  for (const KinetoTrace& rank : ranks) most = std::max(most, sum_phases(rank.times).step);
  return most;
}

KinetoRun read_kineto_run(const std::vector<std::string>& files) {
  KinetoRun trace;
  for (const std::string& file : files) trace.ranks.push_back(read_kineto_trace(file));
  number_ranks(trace.ranks);
  std::ranges::stable_sort(trace.ranks, {}, &KinetoTrace::rank);
  const KinetoTrace& first = trace.ranks.front();
  std::size_t fewest = first.times.steps.size(), most = fewest;
  trace.world_size = first.world_size.value_or(static_cast<int>(files.size()));
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
    const KinetoTrace& rank = trace.ranks[i];
    if (rank.world_size != first.world_size || rank.on_gpu != first.on_gpu) {
      throw input_error("the trace is of another run than " + first.file, rank.file,
                        "give the traces of one run, a file a rank");
    }
    if (i > 0 && rank.rank == trace.ranks[i - 1].rank) {
      throw input_error(
          fmt::format("the trace is of rank {}, as {} is", *rank.rank, trace.ranks[i - 1].file),
          rank.file, "give one file a rank");
    }
    if (*rank.rank >= trace.world_size && first.world_size) {
      throw input_error(fmt::format("the trace is of rank {} of {}", *rank.rank, trace.world_size),
                        rank.file, "record it again");
    }
    fewest = std::min(fewest, rank.times.steps.size());
    most = std::max(most, rank.times.steps.size());
  }
  for (KinetoTrace& rank : trace.ranks) {
    rank.times.communication_busy *=
        static_cast<double>(fewest) / static_cast<double>(rank.times.steps.size());
    rank.times.steps.resize(fewest);
  }
  add_trace_notes(trace, most);
  return trace;
}

void set_trace_facts(RunRecord& record, const KinetoRun& trace, double scale) {
  ProfileFacts& facts = record.profile->emplace();
  facts.steps = static_cast<std::int64_t>(trace.steps());
  facts.ranks = static_cast<int>(trace.ranks.size());
  record.each_rank->resize(std::max(record.each_rank->size(), trace.ranks.size()));
  const bool has_quantiles = record.each_rank->front().step_seconds.has_value();
  std::vector<RankTimes> times;
  for (const KinetoTrace& rank : trace.ranks) {
    facts.spans += rank.spans;
    facts.left_out += rank.left_out;
    facts.device_seconds += rank.device_seconds;
    facts.compute_seconds += rank.compute_seconds;
    facts.idle_seconds += rank.idle_seconds;
    facts.communication_seconds += rank.communication_seconds;
    facts.hidden_seconds += rank.hidden_seconds;
    auto phases = to_numbers(sum_phases(rank.times));
    for (double& seconds : phases) seconds *= scale;
    RankFacts& measured = (*record.each_rank)[times.size()];
    measured.phases = from_numbers<PhaseSeconds>(phases);
    times.push_back(rank.times);
    if (!has_quantiles) measured.step_seconds = step_quantiles(rank.times.steps);
  }
  if (facts.communication_seconds > 0) {
    facts.overlap = facts.hidden_seconds / facts.communication_seconds;
    record.plan.overlapped = facts.hidden_seconds > 0;
  }
  const KinetoTrace& first = trace.ranks.front();
  if (first.bytes_per_step > 0) facts.communication_bytes = std::llround(first.bytes_per_step);
  record.plan.bucket_bytes = first.bucket_bytes;
  if (trace.ranks.size() == static_cast<std::size_t>(trace.world_size)) {
    *record.straggler = find_straggler(times, 0);
  }
}

std::string compressed_steps(const KinetoRun& trace) {
  std::string lines;
  for (const KinetoTrace& rank : trace.ranks) add_step_lines(*rank.rank, rank.times.steps, lines);
  return gzip(lines);
}

}  // namespace paceline
