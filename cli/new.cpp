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
#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "engine/launch/topology.h"
#include "results/names.h"
#include "run/diagnosis.h"
#include "run/program_results.h"
#include "sweeps/spec.h"

namespace paceline {

namespace {

constexpr char kNewFooter[] =
    R"j(Writes NAME.json here, and replaces no file. Asks on a terminal for what is not given.
Examples:
  paceline new my-study
  paceline new my-study --program mnist-cnn --yes
  paceline new mine --program "torchrun --nproc-per-node {gpus} train.py" --throughput "rate: {number}"
  paceline new big --program resnet50-cassava --device cuda --gpus 1,2,4,8 --yes)j";

constexpr int kMostCores = 8;  // replicas on cores that are offered

struct NewArguments {
  std::string name, program, throughput, processes, device;
  std::vector<std::string> backends;
  std::vector<int> gpus;
  int repeats = 0;
  bool yes = false;
};

constexpr char kAnswer[] = "the answer";

class Questions {
 public:
  explicit Questions(bool asks) : asks_(asks) {}

  // What `parse` makes of the answer; nothing typed: of `otherwise`. Asks again if `parse` throws.
  // It is told what it reads: of an option, its name.
  template <typename Parse>
  auto ask(const std::string& question, const std::string& otherwise, const Parse& parse) const {
    while (asks_) {
      const std::string answer = read_answer(question, otherwise);
      try {
        return parse(answer, kAnswer);
      } catch (const Error& error) {
        print("  {}\n", error.what());
      }
    }
    return parse(otherwise, kAnswer);
  }

 private:
  static std::string read_answer(const std::string& question, const std::string& otherwise) {
    print("{} [{}]: ", question, otherwise.empty() ? "none" : otherwise);
    flush_output();
    std::string line;
    if (!std::getline(std::cin, line)) {
      throw Error(ErrorKind::usage, "the input ended before the last question", "",
                  "answer all, or use --yes");
    }
    const std::string_view answer = trim(line);
    return answer.empty() ? otherwise : std::string(answer);
  }

  bool asks_;
};

std::vector<int> parse_counts(const std::string& text, const std::string& where) {
  std::vector<int> counts;
  for (const std::string& part : split(text, ',')) {
    const auto count = to_integer(trim(part));
    if (!count || *count < 1 || *count > 1'000'000) {
      throw Error(ErrorKind::usage, fmt::format("\"{}\" is not a list of numbers above 0", text),
                  where, "write 1,2,4");
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
  throw Error(ErrorKind::usage, fmt::format("{} is for {}", option, of), "", "leave it out");
}

// A workload or a command line. A mistyped workload is no program.
std::string parse_program_line(const std::string& text, const std::string& where) {
  std::vector<std::string> workloads;
  for (const Name& workload : known_names().workloads) workloads.push_back(workload.name);
  const bool is_word = text.find_first_of(" /") == std::string::npos;
  if (is_word && !is_workload(text) && nearest(text, workloads) &&
      !find_program(text, environment_of_process())) {
    throw Error(ErrorKind::usage,
                fmt::format("\"{}\" is neither a workload nor a program here", text), where,
                suggestion(text, workloads));
  }
  return text;
}

std::string parse_device(const std::string& text, const std::string& where) {
  return find_name("device", text, where).name;
}

std::vector<std::string> parse_backends(const std::string& text, const std::string& where) {
  std::vector<std::string> backends;
  for (const std::string& part : split(text, ',')) {
    backends.emplace_back(trim(part));
    find_name("backend", backends.back(), where);
  }
  return backends;
}

int parse_repeats(const std::string& text, const std::string& where) {
  const std::vector<int> counts = parse_counts(text, where);
  if (counts.size() == 1) return counts.front();
  throw Error(ErrorKind::usage, fmt::format("\"{}\" is several numbers", text), where, "write one");
}

// Empty: none.
std::string parse_throughput(const std::string& text, const std::string& where) {
  UserProgram program;
  if (!text.empty()) {
    ResultSource& source = program.results.emplace_back();
    source.name = "samples_per_second";
    source.what = text;
    source.where = where;
  }
  check_results(program);
  return text;
}

NewSpec answers(const NewArguments& given, const Questions& questions) {
  NewSpec spec;
  spec.name = given.name;
  const std::string program =
      given.program.empty()
          ? questions.ask("A workload, or your command line", "mnist-cnn", parse_program_line)
          : parse_program_line(given.program, "--program");
  const bool ours = is_workload(program) && program != kCommandWorkload;
  (ours ? spec.workload : spec.command) = program;
  refuse_other(ours && !given.throughput.empty(), "--throughput", "a program of your own");
  refuse_other(ours && !given.processes.empty(), "--processes", "a program of your own");
  refuse_other(!ours && !given.backends.empty(), "--backend", "our workloads");
  if (!given.processes.empty()) spec.processes = given.processes;
  spec.device = given.device.empty()
                    ? questions.ask("Device (cpu, cuda)", device_here(), parse_device)
                    : parse_device(given.device, "--device");
  if (ours) {
    spec.backends = given.backends.empty()
                        ? questions.ask("Backends (paceline list backends)",
                                        first_backend(spec.device), parse_backends)
                        : parse_backends(join(given.backends, ","), "--backend");
  } else {
    spec.throughput = given.throughput.empty()
                          ? questions.ask("Its throughput, as a regular expression with one group",
                                          "", parse_throughput)
                          : parse_throughput(given.throughput, "--throughput");
  }
  spec.gpus = given.gpus;
  if (spec.gpus.empty()) {
    const std::string offer =
        fmt::format("{}", fmt::join(doubling(replicas_here(spec.device)), ","));
    spec.gpus =
        questions.ask("Numbers of replicas (GPUs, or groups of cores)", offer, parse_counts);
  }
  spec.repeats = given.repeats;
  if (spec.repeats == 0) spec.repeats = questions.ask("Repeats", "5", parse_repeats);
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
    throw Error(ErrorKind::usage, "there is no terminal to ask on", "",
                "add --yes, which takes what is offered for all that no option gives");
  }
  const Questions questions(asks);
  const NewSpec spec = answers(given, questions);
  const std::string text = to_text(spec);
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
  CLI::App* verb = app.add_subcommand("new", "Create a study spec interactively");
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
