#include "run/program_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "engine/core/environment.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "results/step_samples.h"

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
    if (const std::string value = value_of(here, variable); !value.empty()) return value;
  }
  // ENVIRONMENT/bin/python
  const fs::path first = fs::path(program.directory) / program.command.front();
  const bool stands_in_bin = first.parent_path().filename() == "bin";
  const fs::path folder = first.parent_path().parent_path();
  std::error_code ignored;
  return stands_in_bin && fs::exists(folder / "pyvenv.cfg", ignored) ? folder : fs::path();
}

std::optional<double> one(const ProgramNumbers& numbers, const char* name) {
  const auto found = numbers.find(name);
  return found == numbers.end() ? std::nullopt : std::optional(found->second.front());
}

StepQuantiles quantiles_of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(seconds.size() - 1);
    const auto low = static_cast<std::size_t>(place);
    const std::size_t high = std::min(low + 1, seconds.size() - 1);
    return seconds[low] + (place - static_cast<double>(low)) * (seconds[high] - seconds[low]);
  };
  return {at(0.05), at(0.5), at(0.95), at(0.99), at(1)};
}

}  // namespace

ProgramFacts program_facts(const UserProgram& program, double seconds) {
  ProgramFacts facts;
  facts.name = program.name;
  facts.directory = program.directory;
  facts.seconds = seconds;
  const auto git = find_program("git", environment_of_process());
  if (git) {
    const auto ask = [&](const std::vector<std::string>& words) {
      std::vector<std::string> command = {git->string(), "-C", program.directory};
      command.insert(command.end(), words.begin(), words.end());
      return std::string(trim(output_of(command, kGitSeconds)));
    };
    const std::string commit = ask({"rev-parse", "--verify", "--quiet", "HEAD"});
    const bool is_commit =
        commit.size() >= 40 && commit.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (is_commit) {
      facts.commit = commit;
      facts.dirty = !ask({"status", "--porcelain", "--untracked-files=no"}).empty();
    }
  }
  const fs::path environment = python_environment(program);
  if (!environment.empty()) {
    facts.python_environment = environment.string();
    facts.packages = packages_in(environment);
  }
  return facts;
}

void set_numbers(RunRecord& record, const ProgramNumbers& numbers, double seconds) {
  Timing& timing = record.timing;
  timing.fit_seconds = one(numbers, "fit_seconds");
  Throughput& rate = record.throughput;
  rate.samples_per_second = one(numbers, "samples_per_second");
  rate.samples = one(numbers, "samples");
  rate.steps = one(numbers, "steps");
  if (const auto epochs = numbers.find("epoch_seconds"); epochs != numbers.end()) {
    timing.epoch_seconds = epochs->second;
    timing.first_epoch_seconds = epochs->second.front();
  }
  if (const auto steps = numbers.find("step_seconds"); steps != numbers.end()) {
    timing.step_seconds = {quantiles_of(steps->second)};
  }
  record.plan.global_batch = one(numbers, "global_batch");
  if (const auto count = one(numbers, "parameter_count")) {
    record.plan.parameter_count = static_cast<std::int64_t>(*count);
  }
  record.quality.test_accuracy = one(numbers, "test_accuracy");
  if (const auto loss = one(numbers, "train_loss")) {
    record.quality.epochs.emplace_back().train_loss = loss;
  }
  if (timing.fit_seconds) {
    if (seconds > *timing.fit_seconds) timing.setup_seconds = seconds - *timing.fit_seconds;
    return;
  }
  if (rate.samples_per_second) return;
  timing.fit_seconds = seconds;
  record.provenance.time_is = "the whole program, from its start to its end";
}

std::string compressed_steps(const ProgramNumbers& numbers) {
  const auto steps = numbers.find("step_seconds");
  if (steps == numbers.end()) return "";
  fmt::memory_buffer lines;
  for (std::size_t s = 0; s < steps->second.size(); ++s) {
    fmt::format_to(std::back_inserter(lines), "{{\"rank\":0,\"step\":{},\"total\":{:.4g}}}\n", s,
                   steps->second[s]);
  }
  return gzip({lines.data(), lines.size()});
}

}  // namespace paceline
