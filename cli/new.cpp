// paceline new my-study: a first spec, by questions or by flags.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "run/new_study.h"
#include "sweeps/expansion.h"

namespace paceline {

namespace {

constexpr char kNewFooter[] =
    R"j(Writes NAME.json here, and replaces no file. Asks on a terminal for what is not given.
Examples:
  paceline new my-study
  paceline new my-study --program mnist-cnn --yes
  paceline new mine --program "torchrun --nproc-per-node {gpus} train.py" --throughput "rate: {number}"
  paceline new --try train.log                    # which preset reads it; or --throughput REGEX
  paceline new big --program resnet50-cassava --device cuda --gpus 1,2,4,8 --yes)j";

std::string read_answer(const std::string& question, const std::string& offer) {
  print("{} [{}]: ", question, offer.empty() ? "none" : offer);
  flush_output();
  std::string line;
  if (!std::getline(std::cin, line)) {
    throw usage_error("the input ended before the last question", "", "answer all, or use --yes");
  }
  const std::string_view answer = trim(line);
  return answer.empty() ? offer : std::string(answer);
}

int write_new(NewStudy given, bool yes) {
  if (given.name.empty()) {
    throw usage_error("no name is given", "", "write paceline new my-study");
  }
  std::filesystem::path file = given.name;
  if (file.extension() != ".json") file += ".json";
  given.name = file.stem().string();
  const auto refuse_existing = [&](bool is_there) {
    if (!is_there) return;
    throw usage_error("the file exists already", file.string(), "choose another name");
  };
  refuse_existing(std::filesystem::exists(file));
  if (!yes && !can_ask()) {
    throw usage_error("there is no terminal to ask on", "",
                      "add --yes, which takes what is offered for all that no option gives");
  }
  Dialog dialog;
  if (!yes) {
    dialog = {read_answer, [](const std::string& error) { print("  {}\n", error); }};
  }
  const std::string text = to_text(make_new_spec(given, dialog));
  refuse_existing(!create_file(file, text));
  for (const std::string& note :
       expand(parse_spec(file.string(), text), 1 << 20, Unbuilt::keep).unseen) {
    print_note("note: {}\n", note);
  }
  print(
      "{0} is written. Next:\n  paceline sweep {0} --dry-run    shows its points\n"
      "  paceline sweep {0}              runs it here\n"
      "  paceline submit {0} --site NAME sends it to Slurm\n",
      file.string());
  return 0;
}

}  // namespace

void add_new(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("new", "Create a study spec interactively");
  auto given = std::make_shared<NewStudy>();
  auto yes = std::make_shared<bool>(false);
  auto log = std::make_shared<std::string>();
  verb->add_option("name", given->name, "of the study, and of the file");
  add_value(*verb, "--program COMMAND", given->program, "a workload, or your own command line");
  add_value(*verb, "--throughput REGEX", given->throughput,
            "of your own program: a regular expression, its group the number; or a preset, as "
            "nanogpt");
  add_value(*verb, "--try LOG", *log,
            "write nothing: show what --throughput, or each preset, reads from this log");
  add_value(*verb, "--unit UNIT", given->unit,
            "of its throughput, as tokens/s [default: samples/s]");
  verb->add_option("--better", given->better, "of its throughput: more or less [default: more]")
      ->check(CLI::IsMember({"more", "less"}));
  verb->add_option("--work", given->work,
                   "of a run of your own program: the same at every size, or on each replica")
      ->check(CLI::IsMember({"fixed", "grows"}));
  verb->add_option("--processes", given->processes,
                   "of your own program: how often it is started [default: one]")
      ->check(CLI::IsMember({"one", "node", "replica"}));
  add_value(*verb, "--device NAME", given->device, "cpu, cuda");
  add_value(*verb, "--backend NAME", given->backends, "of a workload: one or more")->delimiter(',');
  add_value(*verb, "--gpus N,N", given->gpus, "numbers of replicas")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  add_value(*verb, "--repeats N", given->repeats, "of each point")->check(CLI::PositiveNumber);
  verb->add_flag("--yes", *yes, "ask nothing: take what is offered");
  verb->footer(kNewFooter);
  verb->callback([given, yes, log, &action] {
    action = [given, yes, log] {
      if (log->empty()) return write_new(*given, *yes);
      print_text(try_results(*log, *given));
      return 0;
    };
  });
}

}  // namespace paceline
