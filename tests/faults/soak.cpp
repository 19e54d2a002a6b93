// soak ROUNDS SEED: at a random moment a random rank, or the process that was started, gets a
// random signal. Each round must end in time, with a code that is not 0 and a line that says
// something, and leave no process, no temporary file, no broken record, no broken checkpoint.
// Prints what it did; the seed repeats it.
#include <fmt/format.h>

#include <csignal>
#include <random>
#include <thread>

#include "engine/core/text.h"
#include "results/names.h"
#include "tests/faults/victim.h"

namespace paceline::faults {
namespace {

struct Round {
  std::string backend;
  Starter starter;
  int victim;  // -1: what was started
  int signal_number;
  int milliseconds;  // from the start
  bool checkpoints;  // written all the time

  std::string text() const {
    const std::string who = victim < 0 ? "the starter" : fmt::format("task {}", victim);
    return fmt::format("{}{}{}: signal {} to {} after {} ms", backend,
                       starter == Starter::us ? "" : " by mpirun",
                       checkpoints ? " with checkpoints" : "", signal_number, who, milliseconds);
  }
};

std::vector<std::pair<std::string, Starter>> ways() {
  std::vector<std::pair<std::string, Starter>> ways{{"mirrored", Starter::us},
                                                    {"ring", Starter::us}};
  if (!find_name("backend", "mpi").built) return ways;
  ways.emplace_back("mpi", Starter::us);
  ways.emplace_back("mpi", Starter::mpirun);
  ways.emplace_back("mirrored/mpi", Starter::mpirun);
  return ways;
}

Round round_key(std::mt19937& random, bool deadlines) {
  const auto all = ways();
  const auto below = [&](std::size_t n) { return static_cast<int>(random() % n); };
  const auto& [backend, starter] = all[static_cast<std::size_t>(below(all.size()))];
  std::vector<int> signals{SIGKILL, SIGTERM};
  if (deadlines) signals.push_back(SIGSTOP);
  Round round{backend,
              starter,
              backend == "mirrored" ? -1 : below(2),
              signals[static_cast<std::size_t>(below(signals.size()))],
              below(5000),
              below(2) == 0};
  // Nobody could end what is stopped as a whole; a launcher killed by SIGKILL is not ours to judge.
  if (round.signal_number == SIGTERM && below(3) == 0) round.victim = -1;
  if (round.signal_number == SIGSTOP && backend == "mirrored") round.signal_number = SIGKILL;
  return round;
}

// What is in the folder of checkpoints under a name of its own is whole; the hidden rest of a
// killed writer is for the next run to remove, which shows in the next training.
std::string fault_in_checkpoints(const std::filesystem::path& folder) {
  const auto checkpoints = folder / "run" / "checkpoints";
  std::error_code ignored;
  bool any = false;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints, ignored)) {
    any = any || !entry.path().filename().string().starts_with(".");
  }
  if (!any) return "";
  Victim verify({PACELINE_BINARY, "checkpoint", "verify", (folder / "run").string()});
  if (const End end = verify.wait(60); end.code != 0) return "a damaged checkpoint: " + end.err;
  Victim next({PACELINE_BINARY, "train", "mnist-mlp", "--run-dir", (folder / "run").string(),
               "--resume", "latest", "--checkpoint-every", "1000000steps", "--steps", "1",
               "--quiet", "--evaluate", "none", "--gpus", "1", "--cpus-per-task", "1"});
  if (const End end = next.wait(60); end.code != 0) return "cannot go on: " + end.err;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints)) {
    if (contains(entry.path().filename(), ".tmp")) return "left: " + entry.path().string();
  }
  return "";
}

// Empty: all is as it should be.
std::string fault_in(const Round& round) {
  std::vector<std::string> more = deadline(5, 10);
  more.insert(more.end(), {"--record", "run.json"});
  if (round.checkpoints) {
    more.insert(more.end(),
                {"--checkpoint-every", "20steps", "--keep-checkpoints", "3", "--run-dir", "run"});
  }
  const auto command = training(round.backend, round.starter, more);
  const Scratch temporary;
  Victim run(command, {{"TMPDIR", temporary.path().string()}});
  std::this_thread::sleep_for(std::chrono::milliseconds(round.milliseconds));
  const auto target = round.victim < 0 ? run.started() : run.rank(round.victim, 20);
  if (!target) return "no such rank came: " + run.wait(0).last_line;
  run.send(*target, round.signal_number);
  const End end = run.wait(90);
  if (!end.in_time) return "did not end: " + end.last_line;
  if (end.code == 0) return "ended well: " + end.last_line;
  const bool ours = round.starter == Starter::us && round.backend != "mirrored";
  if (ours && !end.last_line.starts_with("paceline: "))
    return "no last line of ours: " + end.last_line;
  const bool stopped = end.code == 75;  // all ranks, as they were asked to
  if (ours && !stopped && round.victim >= 0 && !contains(end.last_line, "rank")) {
    return "the last line names no rank: " + end.last_line;
  }
  if (const auto left = run.left(); !left.empty()) return "still there: " + join(left, "; ");
  if (round.checkpoints) {
    if (const std::string fault = fault_in_checkpoints(run.folder()); !fault.empty()) return fault;
    std::filesystem::remove_all(run.folder() / "run");
  }
  if (const std::string disorder = run.disorder(); !disorder.empty()) return disorder;
  if (ours && temporary.files() > 0) return "files left in TMPDIR";
  return "";
}

int soak(int rounds, unsigned seed) {
  std::mt19937 random(seed);
  const bool deadlines = !deadline(5, 10).empty();
  int failures = 0;
  for (int i = 0; i < rounds; ++i) {
    const Round round = round_key(random, deadlines);
    const std::string fault = fault_in(round);
    fmt::print("{}: {}: {}\n", i + 1, round.text(), fault.empty() ? "well" : "FAULT: " + fault);
    std::fflush(stdout);
    failures += fault.empty() ? 0 : 1;
  }
  fmt::print("{} rounds of seed {}, {} with a fault\n", rounds, seed, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace paceline::faults

int main(int argc, char** argv) {
  const auto number = [&](int i) {
    return i < argc ? paceline::to_integer(argv[i]) : std::nullopt;
  };
  const auto rounds = number(1), seed = number(2);
  if (!rounds || !seed || *rounds < 1) {
    fmt::print(stderr, "soak ROUNDS SEED\n");
    return 64;
  }
  return paceline::faults::soak(static_cast<int>(*rounds), static_cast<unsigned>(*seed));
}
