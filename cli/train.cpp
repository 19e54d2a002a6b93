// paceline train WORKLOAD

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "cli/run_options.h"
#include "cli/verb.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/log.h"
#include "engine/core/output.h"
#include "engine/failure/rank_status.h"
#include "run/checkpoints.h"
#include "run/outcome_record.h"
#include "run/program_run.h"
#include "run/training_run.h"
#include "sweeps/program.h"

namespace paceline {

namespace {

constexpr char kTrainFooter[] = R"(Examples:
  paceline train mnist-cnn                                    # one replica on all cores
  paceline train mnist-cnn --gpus 2 --backend mpi             # two ranks, started by us
  paceline train mnist-mlp --gpus 2 --backend mirrored --cpus-per-task 2 --record run.json
  mpirun -np 2 paceline train mnist-cnn --gpus 2 --backend mpi --cpus-per-task 1
  paceline train mnist-cnn --epochs 20 --checkpoint-every 1epoch --resume latest
  srun --mpi=pmix -n 2 -c 4 paceline train mnist-cnn --gpus 2 --backend mpi --cpus-per-task 4

On the cpu device a replica (--gpus counts them) is a group of cores.)";

struct TrainOptions : RunRequest {
  std::string context;
  ParameterTexts parameter_texts;
  DeadlineTexts deadline_texts;
};

// What the sweep says of this run (see sweeps/README.md).
void read_context(const std::string& context, RecordTarget& target) {
  target.session = new_session_id();
  if (!context.empty()) static_cast<RunPlace&>(target) = parse_run_context(context);
}

// Below a run folder that the user named, unless the status folder is named too. In the
// environment, where this process's ranks look for it, and those that it starts; no thread was
// started yet.
void place_status(const std::filesystem::path& run, const std::filesystem::path& store) {
  if (run.empty()) return;
  const auto status = std::filesystem::absolute(run) / "status";
  const auto name = store.empty() ? std::filesystem::path("..")
                                  : status.lexically_relative(std::filesystem::absolute(store));
  if (*name.begin() == "..") {
    make_folder(run);
  } else {
    Folder(store).make_folder(name);
  }
  setenv(kStatusFolderVariable, status.c_str(), 0);
}

// The last line is the last that is printed.
int start(const RunRequest& request, const LaunchSpec& launch) {
  const RunVerdict verdict = spawn(launch, request.command);
  write_failed_record(request, verdict.exit_code, verdict.line);
  if (!verdict.line.empty()) print_note("paceline: {}\n", verdict.line);
  return verdict.exit_code;
}

// A study's run of somebody's own program.
int train_by_program(const TrainOptions& options, const std::vector<std::string>& command) {
  const std::string definition =
      options.context.empty() ? "" : parse_run_context(options.context).program;
  if (definition.empty() || options.target.store.empty())
    make_workload(kCommandWorkload);  // throws
  ProgramRequest request =
      make_program_request(options.parameter_texts.parse(), definition, command);
  request.target = options.target;
  read_context(options.context, request.target);
  return run_program(request);
}

int train(TrainOptions& request, const std::vector<std::string>& command) {
  log::Setup logging;
  logging.level = request.verbose ? log::Level::debug : log::Level::info;
  log::set_up(logging);
  if (request.workload == kCommandWorkload) return train_by_program(request, command);
  const Point given = request.parameter_texts.parse();
  request.parameters = resolve_parameters(make_workload(request.workload), given);
  request.config = make_config(request.parameters);
  request.events = event_places(request.config.events, request.workload, given);
  check_places(request.config.input, request.places);
  request.deadlines = parse_deadlines(request.deadline_texts, environment_of_process());
  request.command = command;
  read_context(request.context, request.target);
  if (!request.target.point_folder.empty()) request.events.name = request.target.point_folder;
  place_status(request.state.run, request.target.store);
  const Environment environment = environment_of_process();
  const ProcessRank process = find_process_rank(environment);
  LaunchSpec launch = make_launch_spec(request.config);
  launch.deadlines = request.deadlines;
  try {
    if (must_spawn(launch, process)) {
      check_state(request.workload, request.config.checkpoints, request.state);
      return start(request, launch);
    }
    return run_rank(environment, process, [&] { return run_training(request); });
  } catch (const Error& error) {  // of ranks that a starter of ours did not start
    if (process.rank == 0) write_failed_record(request, exit_code(error.kind()), error.what());
    throw;
  }
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("train", "Train a workload and write its record");
  auto options = std::make_shared<TrainOptions>();
  verb->add_option("workload", options->workload, "see paceline list workloads")->required();
  options->parameter_texts.add_to(*verb);
  const std::string input(group_title(Group::input)), state(group_title(Group::checkpoints)),
      output(group_title(Group::output));
  add_value(*verb, "--data FOLDER", options->places.data,
            "the data set, or the folder that holds it")
      ->group(input);
  add_value(*verb, "--stage FOLDER", options->places.stage,
            "copy the data set to this folder first, once a node")
      ->group(rarely_used(input));
  add_value(*verb, "--cache-dir FOLDER", options->places.cache, "cache overflow folder")
      ->group(rarely_used(input));
  add_value(*verb, "--run-dir FOLDER", options->state.run,
            "write checkpoints and the final model here [default: runs/WORKLOAD; in a Slurm "
            "job, the job's number below its folder]")
      ->group(state);
  add_value(*verb, "--resume CHECKPOINT", options->state.resume,
            "resume from a checkpoint, a job's number, or latest (of the run's folder; "
            "starts anew if there is none)")
      ->group(state);
  add_value(*verb, "--record FILE", options->target.file, "write the run record to this new file")
      ->group(output);
  verb->add_flag("--json", options->json, "print the record to standard output")->group(output);
  CLI::Option* quiet = verb->add_flag("--quiet", options->quiet, "print only warnings and errors");
  quiet->group(output);
  verb->add_flag("--verbose", options->verbose, "also print which kernel runs each operation")
      ->excludes(quiet)
      ->group(output);
  add_value(*verb, "--trace FILE", options->trace,
            "write a timeline of all ranks to this new file, for ui.perfetto.dev; the run is "
            "marked as traced and excluded from intervals")
      ->group(rarely_used(output));
  verb->add_flag("--log-ranks", options->log_ranks, "let every rank print, not only rank 0")
      ->group(rarely_used(output));
  add_value(*verb, "--log-dir FOLDER", options->log_folder,
            "write a log file of each rank to this folder")
      ->group(rarely_used(output));
  verb->add_option("--store", options->target.store)->group("");
  verb->add_option("--context", options->context)->group("");
  add_deadlines(*verb, options->deadline_texts, true);
  add_help_all(*verb);
  verb->footer(kTrainFooter);
  verb->callback([options, &action] {
    action = [options, command = action.command] { return train(*options, command); };
  });
}

}  // namespace paceline
