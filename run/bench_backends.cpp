#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "engine/core/child.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/log.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "results/names.h"
#include "results/store.h"
#include "run/bench.h"
#include "run/meter_record.h"
#include "run/outcome_record.h"

namespace paceline {

namespace {

struct Round {
  RunRecord record;
  int stopped_by = 0;     // a signal: there is no record
  std::string busy = {};  // its warning of busy CPUs
};

// One round of one backend, whose own processes are started by the called program.
Round bench_once(const BackendsBench& bench, const std::string& backend,
                 const std::filesystem::path& file) {
  ChildSetup setup;
  setup.command = bench.command;
  setup.command[0] = this_program().string();
  setup.command.insert(setup.command.end(), {"--backends", backend, "--rounds", "1", "--seconds",
                                             fmt::format("{}", bench.seconds / bench.rounds),
                                             "--record", file.string(), "--quiet"});
  setup.environment = environment_of_process();
  setup.capture_output = true;
  std::string output;
  const Watch watch = watch_child(setup, [&](std::string_view text) { output += text; });
  if (watch.stopped_by != 0) return {{}, watch.stopped_by};
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    const std::string last = last_line(output);
    throw usage_error(last.empty() ? fmt::format("exit code {}", watch.end.exit_code) : last,
                      fmt::format("backend {}", backend), "leave it out of --backends");
  }
  const std::size_t busy = std::min(output.find(kBusyCpus), output.size());
  return {*read_record(file), 0, output.substr(busy, output.find('\n', busy) - busy)};
}

void set_bandwidths(CollectiveRow& row, double ranks) {
  row.algbw_bytes_per_second = static_cast<double>(row.bytes) / row.seconds;
  row.busbw_bytes_per_second = *row.algbw_bytes_per_second * 2 * (ranks - 1) / ranks;
}

std::string note(std::int64_t rounds) {
  return fmt::format(
      "in place, each call on a buffer written before it; medians of samples taken in {} "
      "interleaved "
      "rounds, the slowest rank's time each",
      rounds);
}

CollectiveRow make_row(const BenchSize& size, const BenchRow& row, const BenchFacts& facts) {
  const std::size_t bytes = row.count * size_of(facts.type);
  CollectiveRow result;
  result.bytes = bytes;
  result.count = row.count;
  result.samples = row.samples;
  result.calls_per_sample = row.calls;
  result.seconds = row.all_reduce.median;
  result.seconds_min = row.all_reduce.least;
  result.seconds_p95 = row.all_reduce.p95;
  set_bandwidths(result, facts.layout.gpus);
  result.wrong = row.wrong;
  result.label = size.label;
  if (row.copy) result.memcpy_seconds = row.copy->median;
  if (row.reused) result.reused_seconds = row.reused->median;
  result.first_wrong = row.first_wrong;
  return result;
}

}  // namespace

std::vector<std::string> backends_to_compare() {
  const auto is_compared = [](const Name& each) {
    return each.built && !each.drifts && !each.alone && each.stand_in.empty();
  };
  return mapped_if(known_names().backends, is_compared, &Name::name);
}

BackendsOutcome bench_backends(const BackendsBench& bench) {
  const ScratchFolder folder("paceline-bench");
  std::vector<std::string> backends = bench.backends;
  std::map<std::string, std::vector<RunRecord>> records;
  bool has_warned = false;
  for (int round = 0; round < bench.rounds; ++round) {
    std::vector<std::string> left = backends;
    for (std::size_t i = 0; i < backends.size(); ++i) {
      const std::string& backend =
          backends[(i + static_cast<std::size_t>(round)) % backends.size()];
      log::info("round {} of {}: {}", round + 1, bench.rounds, backend);
      const std::string file = fmt::format("{}-{}.json", round, i);
      try {
        const Round one = bench_once(bench, backend, folder.path() / file);
        if (one.stopped_by != 0) return {{}, one.stopped_by};
        records[backend].push_back(one.record);
        if (!one.busy.empty() && !std::exchange(has_warned, true)) log::warning("{}", one.busy);
      } catch (const Error& error) {
        if (!bench.may_skip || round > 0) throw;
        log::warning("{} is left out: {}", backend, error.what());
        std::erase(left, backend);
      }
    }
    backends = left;
    if (backends.empty()) {
      throw usage_error("no backend serves here", "", "see: paceline doctor");
    }
  }
  BackendsOutcome outcome;
  for (const std::string& backend : backends) {
    outcome.records.push_back(merge_rounds(records[backend]));
    outcome.records.back().provenance.command =
        build_facts(bench.command).command;  // of all rounds
  }
  const auto busy = std::find_if(
      outcome.records.begin(), outcome.records.end(),
      [](const RunRecord& each) { return each.provenance.machine_load.busy.value_or(false); });
  if (busy != outcome.records.end()) warn_of_busy_machine(busy->provenance.machine_load);
  return outcome;
}

RunRecord bench_record(const BenchFacts& facts, const std::vector<BenchSize>& sizes,
                       const std::vector<BenchRow>& rows) {
  RunRecord record;
  record.kind = "collective";
  record.study = "bench";
  record.parameters = facts.parameters;
  record.layout = layout_facts(facts.layout, {});
  record.provenance = facts.provenance;
  record.provenance.backend_requested = facts.parameters.text("backend").value_or("");
  *record.each_rank = facts.each_rank;
  record.flags.oversubscribed = facts.oversubscribed;
  record.flags.synthetic = true;
  CollectiveFacts& block = record.collective.emplace();
  block.operation = "all_reduce";
  block.dtype = to_string(facts.type);
  block.rounds = facts.rounds;
  block.note = note(static_cast<std::int64_t>(facts.rounds));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    block.rows.push_back(make_row(sizes[i], rows[i], facts));
  }
  return record;
}

RunRecord merge_rounds(const std::vector<RunRecord>& rounds) {
  RunRecord merged = rounds.front();
  for (const RunRecord& round : rounds) {
    LoadFacts& busiest = merged.provenance.machine_load;
    const LoadFacts& load = round.provenance.machine_load;
    const auto rank = [](const LoadFacts& each) {
      return std::pair(each.busy.value_or(false), each.worst_other_cpu_share.value_or(0));
    };
    if (rank(load) > rank(busiest)) busiest = load;
  }
  CollectiveFacts& block = *merged.collective;
  block.rounds = static_cast<std::int64_t>(rounds.size());
  block.note = note(*block.rounds);
  for (std::size_t i = 0; i < block.rows.size(); ++i) {
    CollectiveRow& row = block.rows[i];
    const auto median = [&](const auto& member) {
      auto values = known_values(rounds, [&](const RunRecord& round) {
        return std::optional<double>(round.collective->rows[i].*member);
      });
      std::ranges::sort(values);
      return values.empty() ? std::nullopt : std::optional(values[(values.size() - 1) / 2]);
    };
    row.seconds = *median(&CollectiveRow::seconds);
    row.seconds_p95 = median(&CollectiveRow::seconds_p95);
    row.memcpy_seconds = median(&CollectiveRow::memcpy_seconds);
    row.reused_seconds = median(&CollectiveRow::reused_seconds);
    set_bandwidths(row, merged.layout.gpus);
    for (std::size_t round = 1; round < rounds.size(); ++round) {
      const CollectiveRow& other = rounds[round].collective->rows[i];
      row.samples = row.samples.value_or(0) + other.samples.value_or(0);
      row.seconds_min = std::min(row.seconds_min, other.seconds_min);
      row.wrong = row.wrong.value_or(0) + other.wrong.value_or(0);
      if (row.first_wrong.empty()) row.first_wrong = other.first_wrong;
    }
  }
  return merged;
}

}  // namespace paceline
