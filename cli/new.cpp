// paceline new my-study: a first spec, by questions or by flags.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/output.h"
#include "engine/core/terminal.h"
#include "engine/core/text.h"
#include "engine/launch/affinity.h"
#include "results/names.h"
#include "run/diagnosis.h"
#include "run/program_results.h"
#include "sweeps/new_spec.h"
#include "sweeps/spec.h"

namespace paceline {

namespace {

constexpr char kNewFooter[] =
    R"j(Writes NAME.json here, and replaces no file. Asks on a terminal for what is not given.
Examples:
  paceline new my-study
  paceline new my-study --program mnist-cnn --yes
  paceline new mine --program "torchrun --nproc-per-node {gpus} train.py" --throughput "rate: (\S+)"
  paceline new big --program resnet50-cassava --device cuda --gpus 1,2,4,8 --yes)j";

constexpr int kMostCores = 8;  // replicas on cores that are offered

struct NewArguments {
  std::string name, program, throughput, processes, device;
  std::vector<std::string> backends;
  std::vector<int> gpus;
  int repeats = 0;
  bool yes = false;
};

class Questions {
 public:
  explicit Questions(bool asks) : asks_(asks) {}

  // The answer; nothing typed: `otherwise`.
  std::string ask(const std::string& question, const std::string& otherwise) {
    if (!asks_) return otherwise;
    print("{} [{}]: ", question, otherwise.empty() ? "none" : otherwise);
    flush_output();
    std::string line;
    if (!std::getline(std::cin, line)) {
      throw Error(ErrorKind::usage, "the input ended before the last question", "paceline new",
                  "answer all, or use --yes");
    }
    const std::string_view answer = trim(line);
    return answer.empty() ? otherwise : std::string(answer);
  }

 private:
  bool asks_;
};

std::vector<int> counts_of(const std::string& text) {
  std::vector<int> counts;
  for (const std::string& part : split(text, ',')) {
    const auto count = to_integer(trim(part));
    if (!count || *count < 1 || *count > 1'000'000) {
      throw Error(ErrorKind::usage, fmt::format("\"{}\" is not a list of numbers above 0", text),
                  "replicas", "write 1,2,4");
    }
    counts.push_back(static_cast<int>(*count));
  }
  return counts;
}

bool is_workload(const std::string& program) {
  const auto& known = known_names().workloads;
  return std::any_of(known.begin(), known.end(),
                     [&](const Name& one) { return one.name == program; });
}

std::string first_backend(const std::string& device) {
  const std::vector<std::string> names = find_name("device", device).backends;
  for (const std::string& name : names) {
    if (find_name("backend", name).built) return name;
  }
  return names.empty() ? lone_backend() : names.front();  // of the program that will run it
}

// GPUs if there are any.
std::string device_here() {
  for (const Name& device : known_names().devices) {
    if (device.gpus && device.built && count_gpus(device.name) > 0) return device.name;
  }
  return "cpu";
}

int replicas_here(const std::string& device) {
  const int gpus = count_gpus(device);
  if (gpus > 0) return gpus;
  return std::clamp(static_cast<int>(usable_cpus().size()), 1, kMostCores);
}

// An option that says nothing about such a program.
void refuse_other(bool given, const char* option, const char* of) {
  if (!given) return;
  throw Error(ErrorKind::usage, fmt::format("{} is for {}", option, of), "paceline new",
              "leave it out");
}

NewSpec answers(const NewArguments& given, Questions& questions) {
  NewSpec spec;
  spec.name = given.name;
  std::string program = given.program;
  if (program.empty()) program = questions.ask("A workload, or your command line", "mnist-cnn");
  const bool ours = is_workload(program) && program != kCommandWorkload;
  (ours ? spec.workload : spec.command) = program;
  refuse_other(ours && !given.throughput.empty(), "--throughput", "a program of your own");
  refuse_other(ours && !given.processes.empty(), "--processes", "a program of your own");
  refuse_other(!ours && !given.backends.empty(), "--backend", "our workloads");
  if (!given.processes.empty()) spec.processes = given.processes;
  spec.device = given.device;
  if (spec.device.empty()) spec.device = questions.ask("Device (cpu, cuda)", device_here());
  find_name("device", spec.device, "--device");
  if (ours) {
    spec.backends = given.backends;
    if (spec.backends.empty()) {
      spec.backends = split(
          questions.ask("Backends (paceline list backends)", first_backend(spec.device)), ',');
    }
    for (std::string& backend : spec.backends) backend = std::string(trim(backend));
  } else {
    spec.throughput = given.throughput;
    if (spec.throughput.empty()) {
      spec.throughput = questions.ask("Its throughput, as a regular expression with one group", "");
    }
  }
  spec.gpus = given.gpus;
  if (spec.gpus.empty()) {
    const std::string offer =
        fmt::format("{}", fmt::join(doubling(replicas_here(spec.device)), ","));
    spec.gpus = counts_of(questions.ask("Numbers of replicas (GPUs, or groups of cores)", offer));
  }
  spec.repeats = given.repeats;
  if (spec.repeats == 0) spec.repeats = counts_of(questions.ask("Repeats", "5")).at(0);
  return spec;
}

int write_new(NewArguments given) {
  std::filesystem::path file = given.name;
  if (file.extension() != ".json") file += ".json";
  given.name = file.stem().string();
  if (std::filesystem::exists(file)) {
    throw Error(ErrorKind::usage, "the file exists already", file.string(), "choose another name");
  }
  const bool asks = !given.yes && can_ask();
  if (!asks && !given.yes) {
    throw Error(ErrorKind::usage, "there is no terminal to ask on", "paceline new",
                "add --yes, which takes what is offered for all that no option gives");
  }
  Questions questions(asks);
  const NewSpec spec = answers(given, questions);
  const std::string text = text_of(spec);
  for (const UserProgram& program : parse_spec(file.string(), text).programs)
    check_results(program);
  if (!create_file(file, text)) {
    throw Error(ErrorKind::usage, "the file exists already", file.string(), "choose another name");
  }
  const std::string name = file.string();
  print(
      "{0} is written. Next:\n  paceline sweep {0} --dry-run    shows its points\n"
      "  paceline sweep {0}              runs it here\n"
      "  paceline submit {0} --site NAME sends it to Slurm\n",
      name);
  return 0;
}

}  // namespace

void add_new(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("new", "Write a first spec of a study, by five questions");
  auto given = std::make_shared<NewArguments>();
  verb->add_option("name", given->name, "of the study, and of the file")->required();
  verb->add_option("--program", given->program, "a workload, or your own command line")
      ->type_name("COMMAND");
  verb->add_option("--throughput", given->throughput,
                   "of your own program: a regular expression, its group the samples per second")
      ->type_name("REGEX");
  verb->add_option("--processes", given->processes,
                   "of your own program: how often it is started [default: one]")
      ->check(CLI::IsMember({"one", "node", "replica"}));
  verb->add_option("--device", given->device, "cpu, cuda")->type_name("NAME");
  verb->add_option("--backend", given->backends, "of a workload: one or more")
      ->delimiter(',')
      ->type_name("NAME");
  verb->add_option("--gpus", given->gpus, "numbers of replicas")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->type_name("N,N");
  verb->add_option("--repeats", given->repeats, "of each point")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  verb->add_flag("--yes", given->yes, "ask nothing: take what is offered");
  verb->footer(kNewFooter);
  verb->callback([given, &action] { action = [given] { return write_new(*given); }; });
}

}  // namespace paceline
