#include "run/bench_backends.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "engine/core/child.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/log.h"
#include "engine/core/text.h"
#include "engine/launch/process_rank.h"
#include "engine/launch/program.h"
#include "results/names.h"
#include "results/record.h"
#include "run/bench_record.h"
#include "run/record_parts.h"

namespace paceline {

namespace {

// Without "paceline: ".
std::string last_line(std::string_view output) {
  constexpr std::string_view kOwnName = "paceline: ";
  output = trim(output);
  output.remove_prefix(output.rfind('\n') + 1);  // npos + 1 is 0
  if (output.starts_with(kOwnName)) output.remove_prefix(kOwnName.size());
  return std::string(output);
}

struct Round {
  RunRecord record;
  int stopped_by = 0;  // a signal: there is no record
};

// One round of one backend, whose own processes are started by the called program.
Round bench_once(const BackendsBench& bench, const std::string& backend,
                 const std::filesystem::path& file) {
  ChildSetup setup;
  setup.command = bench.command;
  setup.command[0] = this_program().string();
  for (const std::string& word :
       {std::string("--backends"), backend, std::string("--rounds"), std::string("1"),
        std::string("--seconds"), fmt::format("{}", bench.seconds / bench.rounds),
        std::string("--record"), file.string(), std::string("--quiet")}) {
    setup.command.push_back(word);
  }
  setup.environment = environment_of_process();
  setup.capture_output = true;
  std::string output;
  const Watch watch = watch_child(setup, [&](std::string_view text) { output += text; });
  if (watch.stopped_by != 0) return {{}, watch.stopped_by};
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    const std::string last = last_line(output);
    throw Error(ErrorKind::usage,
                last.empty() ? fmt::format("exit code {}", watch.end.exit_code) : last,
                fmt::format("backend {}", backend), "leave it out of --backends");
  }
  return {*read_record(file), 0};
}

}  // namespace

std::vector<std::string> backends_to_compare() {
  std::vector<std::string> names;
  for (const Name& each : known_names().backends) {
    if (each.built && !each.drifts && !each.alone && each.stand_in.empty())
      names.push_back(each.name);
  }
  return names;
}

BackendsOutcome bench_backends(const BackendsBench& bench) {
  const ScratchFolder folder("paceline-bench");
  std::vector<std::string> backends = bench.backends;
  std::map<std::string, std::vector<RunRecord>> records;
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
      } catch (const Error& error) {
        if (!bench.may_skip || round > 0) throw;
        log::warning("{} is left out: {}", backend, error.what());
        std::erase(left, backend);
      }
    }
    backends = left;
    if (backends.empty()) {
      throw Error(ErrorKind::usage, "no backend serves here", "", "see: paceline doctor");
    }
  }
  BackendsOutcome outcome;
  for (const std::string& backend : backends) {
    outcome.records.push_back(merge_rounds(records[backend]));
    outcome.records.back().provenance.command =
        build_facts(bench.command).command;  // of all rounds
  }
  return outcome;
}

}  // namespace paceline
