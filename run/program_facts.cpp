#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>

#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/facts/rank.h"
#include "engine/launch/program.h"
#include "results/run_record.h"
#include "results/step_samples.h"
#include "run/program_run.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

constexpr double kGitSeconds = 5;

// Frameworks and what they communicate and compute with.
bool matters(const std::string& package) {
  static const std::set<std::string> names = {
      "torch",   "torchvision",  "tensorflow", "tensorflow_cpu", "keras",         "jax",   "jaxlib",
      "horovod", "deepspeed",    "accelerate", "lightning",      "flax",          "numpy", "mpi4py",
      "triton",  "transformers", "mxnet",      "paddlepaddle",   "oneccl_bind_pt"};
  return names.contains(package) || package.starts_with("nvidia_nccl") ||
         package.starts_with("nvidia_cudnn");
}

// "torch 2.9.0, numpy 2.3.4", from the names of what is installed there.
std::string packages_in(const fs::path& environment) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& python : fs::directory_iterator(environment / "lib", ignored)) {
    if (!python.path().filename().string().starts_with("python3")) continue;
    for (const auto& entry : fs::directory_iterator(python.path() / "site-packages", ignored)) {
      const fs::path& path = entry.path();
      if (path.extension() != ".dist-info") continue;
      const std::string stem = path.stem().string();
      const auto dash = stem.find('-');
      if (dash == std::string::npos || !matters(to_lower(stem.substr(0, dash)))) continue;
      found.push_back(stem.substr(0, dash) + " " + stem.substr(dash + 1));
    }
  }
  std::sort(found.begin(), found.end());
  return join(found, ", ");
}

// Named by the spec, else the one that is active here.
fs::path python_environment(const UserProgram& program) {
  const Environment here = environment_of_process();
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    for (const auto& [name, value] : program.environment) {
      if (name == variable) return value;
    }
    if (const std::string value = environment_value(here, variable); !value.empty()) return value;
  }
  // ENVIRONMENT/bin/python
  const fs::path first = fs::path(program.directory) / program.command.front();
  const bool stands_in_bin = first.parent_path().filename() == "bin";
  const fs::path folder = first.parent_path().parent_path();
  std::error_code ignored;
  return stands_in_bin && fs::exists(folder / "pyvenv.cfg", ignored) ? folder : fs::path();
}

// Hashes the files that its commands name, and git's changes of tracked ones. Empty if there is
// neither.
std::string hash_of_files(const UserProgram& program, const std::string& changes) {
  constexpr std::uintmax_t kLargest = std::uintmax_t{16} << 20;  // larger ones are data
  std::set<fs::path> files;
  for (const auto& command : {program.setup, program.command}) {
    for (const std::string& part : command) {
      for (const std::string& word : program.shell ? split(part, ' ') : std::vector{part}) {
        const fs::path file = fs::path(program.directory) / word;
        std::error_code ignored;
        if (fs::is_regular_file(file, ignored) && fs::file_size(file, ignored) <= kLargest) {
          files.insert(file);
        }
      }
    }
  }
  Hash hash;
  for (const fs::path& file : files) hash.add(file.string()).add(hash_of_file(file));
  if (!changes.empty()) hash.add(changes);
  return files.empty() && changes.empty() ? "" : hash.hex();
}

std::optional<double> one(const ProgramReport& report, const char* name) {
  const auto found = report.numbers.find(name);
  return found == report.numbers.end() ? std::nullopt : std::optional(found->second.front());
}

// Samples of a step: as reported, or as the point's batches make them.
std::optional<double> samples_of_a_step(const RunRecord& record) {
  if (record.plan.global_batch) return record.plan.global_batch;
  if (const auto whole = record.parameters.real("global_batch")) return whole;
  const auto batch = record.parameters.real("batch_per_replica");
  if (!batch) return std::nullopt;
  return *batch * record.layout.gpus *
         record.parameters.real("gradient_accumulation_steps").value_or(1);
}

constexpr char kTokensOfAStep[] = "tokens_per_step";

// Which of the steps that a program prints tell its rate.
struct CountedSteps {
  double amount = 0, seconds = 0;
  std::size_t counted = 0, warm_up = 0, long_ones = 0, evaluating = 0;

  double rate() const { return amount / seconds; }
  std::string text(std::string_view held) const {
    const std::size_t all = counted + warm_up + long_ones + evaluating;
    std::string text =
        fmt::format("{} over the mean of {} that it prints", held,
                    counted == all ? "the steps" : fmt::format("{} of the {} steps", counted, all));
    if (warm_up > 0) text += fmt::format(", without the first {} (warm-up)", warm_up);
    if (long_ones > 0) text += fmt::format(", without {} of over 3 times the median", long_ones);
    if (evaluating > 0) text += fmt::format(", without {} that evaluate (not_between)", evaluating);
    return text;
  }
};

// Left out are the first ten, or of fewer than thirteen those before the level of the second half
// is reached, as compilation is; and two single steps, or a tenth, that take over three times the
// median, as those in which a program also evaluates.
CountedSteps count_steps(const std::vector<double>& seconds, const std::vector<double>& amounts) {
  constexpr std::size_t kWarmUp = 10, kFewest = 3;
  constexpr double kAtLevel = 1.25, kLong = 3, kMostLong = 0.2;
  std::vector<double> costs;
  for (std::size_t i = 0; i < seconds.size(); ++i) costs.push_back(seconds[i] / amounts[i]);
  const std::size_t half = costs.size() / 2;
  const double level = median({costs.begin() + static_cast<std::ptrdiff_t>(half), costs.end()});
  CountedSteps result;
  while (result.warm_up < half && costs[result.warm_up] > kAtLevel * level) ++result.warm_up;
  if (costs.size() >= kWarmUp + kFewest) result.warm_up = std::max(result.warm_up, kWarmUp);
  const auto rest = static_cast<std::size_t>(
      std::ranges::count_if(costs.begin() + static_cast<std::ptrdiff_t>(result.warm_up),
                            costs.end(), [&](double cost) { return cost > kLong * level; }));
  const auto most = static_cast<double>(costs.size() - result.warm_up);
  const bool few = static_cast<double>(rest) <= std::min(kMostLong * most, std::max(2., most / 10));
  for (std::size_t i = result.warm_up; i < costs.size(); ++i) {
    if (few && costs[i] > kLong * level) {
      ++result.long_ones;
      continue;
    }
    ++result.counted;
    result.amount += amounts[i];
    result.seconds += seconds[i];
  }
  return result;
}

// What each step trains on: one number for all, or a number each. Throws input: it changes, and who
// knows when.
std::vector<double> amounts_of_steps(const ProgramReport& report, const char* name, double amount,
                                     std::size_t steps) {
  const auto each = report.each.find(name);
  if (each == report.each.end() || std::ranges::count(each->second, each->second.front()) ==
                                       static_cast<std::ptrdiff_t>(each->second.size())) {
    return std::vector<double>(steps, amount);
  }
  if (each->second.size() == steps) return each->second;
  throw input_error(
      fmt::format("result {} changes ({:g} to {:g}), and is found {} times beside {} steps", name,
                  each->second.front(), each->second.back(), each->second.size(), steps),
      "", "find both in the same lines, or train with one batch");
}

// Of a program that prints the time of its steps: its rate, where it states none. Throws input
// where the two contradict each other.
void set_rate_of_steps(RunRecord& record, const ProgramReport& report) {
  constexpr double kMostFactor = 1.5;
  Throughput& rate = *record.throughput;
  const auto steps = report.numbers.find("step_seconds");
  if (steps == report.numbers.end()) return;
  const auto tokens = one(report, kTokensOfAStep);
  const auto amount = tokens ? tokens : samples_of_a_step(record);
  const bool has_time = record.timing->fit_seconds || !record.timing->epoch_seconds.empty();
  if (!amount && (rate.samples_per_second || has_time)) return;
  const std::string unit = tokens ? "tokens" : amount ? "" : "steps";
  CountedSteps counted =
      count_steps(steps->second, amounts_of_steps(report, tokens ? kTokensOfAStep : "global_batch",
                                                  amount.value_or(1), steps->second.size()));
  const bool is_list = steps->second.size() > 1;  // else it may be picked
  if (is_list) counted.evaluating = report.steps_left_out;
  if (rate.samples_per_second) {
    const double factor = *rate.samples_per_second / counted.rate();
    if (rate.unit != unit || (factor < kMostFactor && factor > 1 / kMostFactor)) return;
    throw input_error(
        fmt::format("the rate is {:.4g} {}/s, and by its steps it is {:.4g}",
                    *rate.samples_per_second, tokens ? "tokens" : "samples", counted.rate()),
        "", "one of them counts something else, such as one replica's samples");
  }
  if (rate.samples) return;
  rate.unit = unit;
  rate.samples_per_second = counted.rate();
  record.provenance.rate_is = counted.text(tokens   ? "tokens of a step"
                                           : amount ? "samples of a step"
                                                    : "one");
}

constexpr double kImportSeconds = 120;

struct Framework {
  const char* name;
  const char* script;  // prints its version and what it can communicate by
};

constexpr Framework kFrameworks[] = {
    {"PyTorch",
     "import torch, torch.distributed as d\n"
     "have = d.is_available()\n"
     "by = [n for n in ('gloo', 'nccl', 'mpi') if have and getattr(d, 'is_%s_available' "
     "% n)()]\n"
     "print(torch.__version__, 'with', ', '.join(by) or 'no backend', 'and',"
     " torch.cuda.device_count(), 'GPUs')"},
    {"TensorFlow",
     "import tensorflow as t\n"
     "print(t.__version__, 'with', len(t.config.list_physical_devices('GPU')),"
     " 'GPUs')"},
    {"Horovod",
     "import horovod\n"
     "print(horovod.__version__)"},
    {"JAX",
     "import jax\n"
     "print(jax.__version__, 'with', len(jax.devices()), jax.default_backend(),"
     " 'devices')"},
};

// The script's last line tells: a version, or the exception's name and text.
std::string answer(const std::string& python, const Framework& framework) {
  const std::string guarded =
      "import os, sys\n"
      "os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\n"
      "sys.stderr = open(os.devnull, 'w')\n"
      "try:\n exec(sys.argv[1])\n"
      "except ModuleNotFoundError as e:\n print('not installed')\n"
      "except BaseException as e:\n"
      " print('cannot be imported:', type(e).__name__, e)\n";
  const std::string text =
      capture_output({python, "-c", guarded, framework.script}, kImportSeconds);
  const std::vector<std::string> lines = split(trim(text), '\n');
  return lines.back().empty() ? "cannot be imported: python3 ended without a word" : lines.back();
}

}  // namespace

ProgramFacts program_facts(const UserProgram& program, double seconds) {
  ProgramFacts facts{.name = program.name, .directory = program.directory, .seconds = seconds};
  std::string changes;
  const auto git = find_program("git", environment_of_process());
  if (git) {
    const auto ask = [&](const std::vector<std::string>& words) {
      std::vector<std::string> command = {git->string(), "-C", program.directory};
      command.insert(command.end(), words.begin(), words.end());
      return std::string(trim(capture_output(command, kGitSeconds)));
    };
    const std::string commit = ask({"rev-parse", "--verify", "--quiet", "HEAD"});
    const bool is_commit =
        commit.size() >= 40 && commit.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (is_commit) {
      facts.commit = commit;
      facts.dirty = !ask({"status", "--porcelain", "--untracked-files=no"}).empty();
      if (*facts.dirty) changes = ask({"diff", "HEAD", "--no-ext-diff", "--no-color"});
    }
  }
  facts.files_hash = hash_of_files(program, changes);
  const fs::path environment = python_environment(program);
  if (!environment.empty()) {
    facts.python_environment = environment.string();
    facts.packages = packages_in(environment);
  }
  return facts;
}

void set_results(RunRecord& record, const ProgramReport& report, double seconds) {
  Timing& timing = *record.timing;
  timing.fit_seconds = one(report, "fit_seconds");
  Throughput& rate = *record.throughput;
  rate.samples_per_second = one(report, "samples_per_second");
  rate.samples = one(report, "samples");
  rate.steps = one(report, "steps");
  for (const ResultName& name : result_names()) {
    const auto value = name.unit.empty() ? std::nullopt : one(report, name.name);
    if (!value || std::string_view(name.name) == kTokensOfAStep) continue;
    rate.unit = name.unit;
    const bool is_rate = std::string_view(name.name).ends_with("_per_second");
    (is_rate ? rate.samples_per_second : rate.samples) = value;
  }
  if (const ResultSource* own = report.rate) {
    rate.samples_per_second = one(report, own->name.c_str());
    rate.unit = own->unit;
    rate.better = own->better;
    if (own->name != "samples_per_second") {
      record.provenance.rate_is = fmt::format("{}, as the program reports it", own->name);
    }
  }
  if (rate.unit == "steps") rate.samples = rate.steps;
  if (const auto epochs = report.numbers.find("epoch_seconds"); epochs != report.numbers.end()) {
    timing.epoch_seconds = epochs->second;
    timing.first_epoch_seconds = epochs->second.front();
  }
  if (const auto steps = report.numbers.find("step_seconds"); steps != report.numbers.end()) {
    if (record.each_rank->empty()) record.each_rank->resize(1);
    record.each_rank->front().step_seconds = step_quantiles(steps->second);
  }
  record.plan.global_batch = one(report, "global_batch");
  const auto batch = samples_of_a_step(record);
  if (batch && rate.samples && !rate.steps && rate.unit.empty()) {
    rate.steps = *rate.samples / *batch;
  }
  set_rate_of_steps(record, report);
  if (const auto count = one(report, "parameter_count")) {
    record.plan.parameter_count = static_cast<std::int64_t>(*count);
  }
  if (const auto word = report.words.find("precision"); word != report.words.end()) {
    record.provenance.program->precision = word->second;
  }
  record.quality.test_accuracy = one(report, "test_accuracy");
  if (const auto loss = one(report, "train_loss")) {
    record.quality.epochs.emplace_back().train_loss = loss;
  }
  if (timing.fit_seconds) {
    if (seconds > *timing.fit_seconds) timing.setup_seconds = seconds - *timing.fit_seconds;
    return;
  }
  if (rate.samples_per_second) return;
  if (!timing.epoch_seconds.empty()) {
    timing.fit_seconds =
        std::accumulate(timing.epoch_seconds.begin(), timing.epoch_seconds.end(), 0.0);
    record.provenance.time_is = "the sum of its epochs";
    return;
  }
  timing.fit_seconds = seconds;
  record.provenance.time_is = "the whole program, from its start to its end";
}

std::string compressed_steps(const ProgramReport& report) {
  const auto steps = report.numbers.find("step_seconds");
  if (steps == report.numbers.end()) return "";
  fmt::memory_buffer lines;
  for (std::size_t s = 0; s < steps->second.size(); ++s) {
    fmt::format_to(std::back_inserter(lines), "{{\"rank\":0,\"step\":{},\"total\":{:.4g}}}\n", s,
                   steps->second[s]);
  }
  return gzip({lines.data(), lines.size()});
}

std::vector<std::string> find_traces(const std::string& pattern) {
  glob_t found{};
  const std::unique_ptr<glob_t, void (*)(glob_t*)> end(&found, globfree);
  if (glob(pattern.c_str(), 0, nullptr, &found) != 0 || found.gl_pathc == 0) {
    throw input_error("the program left no trace", pattern,
                      "let each rank write one, or name another place in \"trace\"");
  }
  return {found.gl_pathv, found.gl_pathv + found.gl_pathc};
}

std::string set_traced_phases(RunRecord& record, const KinetoRun& trace) {
  if (trace.world_size != record.layout.gpus) {
    throw input_error(fmt::format("the trace is of {}, and the point has {}",
                                  counted(trace.world_size, "rank"), record.layout.gpus),
                      trace.ranks.front().file, "start one rank for each replica");
  }
  Throughput& rate = *record.throughput;
  const auto traced = static_cast<double>(trace.steps());
  const auto fit = record.timing->fit_seconds;
  double scale = 1;
  if (rate.steps || fit) {
    const double most = fit.value_or(HUGE_VAL) / trace.seconds();
    scale = std::min(most, rate.steps ? *rate.steps / traced : most);
    // The profiler slows its steps down: the run is of use where these are few.
    record.flags.traced = rate.steps && 10 * traced > *rate.steps;
  } else {
    rate.steps = traced;
  }
  const auto batch = samples_of_a_step(record);
  if (rate.unit == "steps") rate.samples = rate.steps;
  if (batch && rate.steps && rate.unit.empty() && !rate.samples) {
    rate.samples = *rate.steps * *batch;
  }
  set_trace_facts(record, trace, scale);
  return scale == 1 ? compressed_steps(trace) : "";
}

DiagnosisSection frameworks_here(const Environment& environment) {
  DiagnosisSection section{"frameworks", {}};
  const auto python = find_program("python3", environment);
  if (!python) {
    section.facts.push_back({"python3", "not on the PATH"});
    return section;
  }
  section.facts.push_back({"python3", python->string()});
  for (const Framework& framework : kFrameworks) {
    section.facts.push_back({framework.name, answer(python->string(), framework)});
  }
  return section;
}

}  // namespace paceline
