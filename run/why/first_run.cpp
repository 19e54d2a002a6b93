#include "run/why/first_run.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "run/why/variants.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr int kFewestSteps = 20;         // measured
constexpr std::size_t kShownLog = 4000;  // bytes

}  // namespace

void refuse_writes_elsewhere(const fs::path& out, const std::string& program) {
  std::set<std::string> places;
  for (const fs::directory_entry& entry : fs::directory_iterator(out)) {
    if (!entry.path().filename().string().starts_with("refused.")) continue;
    std::ifstream lines(entry.path());
    for (std::string line; std::getline(lines, line);) places.insert(line);
  }
  if (places.empty()) return;
  throw input_error(fmt::format("the program writes outside of its folder: {}",
                                join_first(3, {places.begin(), places.end()})),
                    program, "let it write to a path in its folder, or allow it with --writes-ok");
}

void warn_of_unheld(const fs::path& out, WhyEvidence& evidence) {
  if (!path_exists(out / "unheld")) return;
  evidence.warnings.emplace_back(
      "the kernel could not hold every process, so of some only what Python itself writes outside "
      "of the copy was refused");
}

void read_profile(const fs::path& out, WhyEvidence& evidence) {
  std::vector<std::string> traces;
  for (const fs::directory_entry& entry : fs::directory_iterator(out)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("trace_rank")) traces.push_back(entry.path());
  }
  if (traces.empty()) return;
  try {
    evidence.profile = describe_profile(read_kineto_run(traces));
  } catch (const Error& error) {
    evidence.notes.push_back(fmt::format("Its profiled steps cannot be read: {}.", error.what()));
  }
}

void find_launches(const fs::path& out, Json& settings) {
  int ranks = 0;
  while (path_exists(out / fmt::format("launch{}.json", ranks))) ++ranks;
  if (ranks > 0) settings.update({{"launched", out.string()}, {"launches", ranks}});
}

void print_logs(const fs::path& folder) {
  for (const fs::directory_entry& log : fs::directory_iterator(folder)) {
    std::string text = read_text(log.path());
    if (text.size() > kShownLog) text.erase(0, text.find('\n', text.size() - kShownLog) + 1);
    print_note("{}\n", text);
  }
}

void check_steps(const MeasuredRun& seen, const std::string& program) {
  if (seen.steps < kFewestSteps) {
    throw input_error(fmt::format("the program ended after {:g} steps, and {} are needed",
                                  seen.steps_in_all, kWarmSteps + kFewestSteps),
                      program, "let it train longer, and not go on from a checkpoint near its end");
  }
  if (seen.ratio == 0) {
    throw input_error(
        "steps of its first optimizer and forward passes of DDP make no constant ratio, "
        "so its steps are not known",
        program, "see docs/why.md for what can be measured");
  }
  if (seen.ranks < 2) {
    throw input_error("it trains one replica, so there is no speed-up", program,
                      "start at least two, as with --nproc-per-node 2");
  }
}

void refuse(const std::string& program, const std::string& reason, bool is_slow) {
  if (is_slow) throw input_error("its first run " + reason, program, "give more with --minutes");
  if (!reason.empty()) {
    throw Error(
        ErrorKind::failed, fmt::format("the program fails as it is: {}", reason), program,
        "see whether it runs by itself, and give --minutes or --writes-ok if it needs them");
  }
  throw input_error(
      "no process with a rank stepped an optimizer of PyTorch, so the program's steps are not "
      "known",
      program,
      "start two ranks or more, as with torchrun --nproc-per-node 2; each builds "
      "DistributedDataParallel or has RANK set (docs/why.md)");
}

}  // namespace paceline
