// paceline submit SPEC --site SITE
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <memory>
#include <optional>
#include <set>

#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/clock.h"
#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "results/names.h"
#include "results/shipped.h"
#include "results/store.h"
#include "run/resolve.h"
#include "slurm/cluster_facts.h"
#include "slurm/submission.h"
#include "sweeps/expansion.h"
#include "sweeps/inventory.h"
#include "sweeps/program.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

constexpr char kSubmitFooter[] = R"(Examples:
  paceline submit sweeps/nyu-cassava.json --site slurm/sites/generic-gpu.json --dry-run
  paceline submit study.json --site my-site.json --smoke --yes     # same scripts, few steps
  paceline submit study.json --site my-site.json --max-gpu-hours 200
  paceline submit study.json --site my-site.json --until-precision 2%    # again for the next wave

Called again it sends only what is missing or failed and in no queue, and says why. --dry-run prints
the table, writes the scripts to a folder that it names, and sends nothing. Exit codes: 0 all is
sent or done, 1 not confirmed, 64 or 65 a bad spec, profile or request, or Slurm's refusal.)";

// Those that have a task a replica, as a Slurm step starts them.
std::vector<std::string> backends_of_ranks() {
  std::vector<std::string> names;
  for (const Name& backend : known_names().backends) {
    if (backend.tasks == "replica") names.push_back(backend.name);
  }
  return names;
}

constexpr char kDataElsewhere[] = "or add --data-elsewhere if only the jobs see it";

std::string cure_of_absent_data(const SubmitOptions& options, const Site& site) {
  if (!options.data.empty()) return "correct --data";
  return site.data.empty()
             ? fmt::format("name its folder by --data, or as \"data\" in {}", site.where)
             : fmt::format("correct \"data\" in {}", site.where);
}

class Submitter {
 public:
  Submitter(const SubmitOptions& options, Site& site, StudyPlan& plan,
            std::set<std::string> services, std::string warning, const TargetPrecision& precision)
      : options_(options),
        site_(site),
        plan_(plan),
        warning_(std::move(warning)),
        precision_(precision),
        slurm_(environment_of_process()),
        resolved_(resolve_points(plan, AbsentData::like_any, &data_is_absent_,
                                 cure_of_absent_data(options, site))) {
    setup_.study = plan.spec.name;
    setup_.folder = plan.study;
    setup_.session = options.dry_run ? kDryRunSession : new_session_id();
    setup_.program = this_program();
    setup_.fallback = options.fallback;
    setup_.services = std::move(services);
    setup_.device = Settings(plan.expansion.points.front().parameters).text("device");
    for (const PlannedPoint& point : plan.expansion.points) {
      const fs::path weights = point.parameters.text("weights").value_or("");
      if (weights.is_absolute()) setup_.reads.insert(weights.parent_path().string());
    }
  }

  int dry_run() {
    const Journal journal(plan_.study);
    prepare(journal);
    const std::string scripts = submission_.arrays.empty() ? "" : write_scripts();
    print_plan();
    if (is_over_budget()) {
      print("warning: more than --max-gpu-hours {:g}: submit will refuse\n",
            options_.max_gpu_hours);
    }
    for (const std::string& placeholder : list_placeholders(site_)) {
      print("warning: {}: {}; write your own before you submit\n", site_.where, placeholder);
    }
    if (!data_is_absent_.empty() && !options_.data_elsewhere) {
      print("warning: {}; {}\n", data_is_absent_, kDataElsewhere);
    }
    print("{}", scripts);
    return 0;
  }

  int submit() {
    const std::vector<std::string> placeholders = list_placeholders(site_);
    if (!placeholders.empty()) {
      throw Error(ErrorKind::usage, join(placeholders, ", "), site_.where,
                  "replace each with your centre's value");
    }
    bool is_first = true;
    std::size_t left = kAllPoints;
    while (true) {
      if (is_first || has_room_for(left)) {
        const StudyLock lock(plan_.study);
        if (!send_wave(is_first)) return 1;  // the user declined
        left = submission_.runs.size() - sent_in_wave_;
        is_first = false;
      }
      if (!options_.wait || left == 0) break;
      const timespec pause{options_.every, 0};
      nanosleep(&pause, nullptr);
    }
    if (!sent_once_.empty()) {
      print("watch it: paceline status {} --watch\n", shell_quote(plan_.study.string()));
    }
    return 0;
  }

 private:
  bool has_room_for(std::size_t left) const {
    const QueueRoom room = ask_queue_room(site_, slurm_, left);
    return !room.is_known() || room.elements >= std::min(left, room.most / 10 + 1);
  }

  bool send_wave(bool is_first) {
    sent_in_wave_ = 0;
    if (!is_first) setup_.session = new_session_id();
    Journal journal(plan_.study);
    find_unanswered(journal, slurm_);
    prepare(journal);
    if (is_first) print_plan();
    const bool sends = !submission_.arrays.empty() || (options_.wait && submission_.left() > 0);
    if (is_first && sends) {
      need_data();
      if (!is_affordable()) return false;
      slurm_.need("sbatch");
      save_expected_runs(plan_);
    }
    if (submission_.arrays.empty()) return true;
    // In a container there are no commands of Slurm for the collector.
    const bool collect = !options_.no_collect && !site_.container.on;
    sent_in_wave_ = send_submission(submission_, site_, plan_, resolved_, journal, slurm_, collect,
                                    [](const std::string& line) { print("{}\n", line); });
    std::size_t sent = 0;
    for (const JobArray& array : submission_.arrays) {
      for (const ScheduledRun& run : array.runs) {
        if (sent++ < sent_in_wave_) sent_once_.emplace(run.point, run.repeat);
      }
    }
    flush_output();
    return true;
  }

  void prepare(const Journal& journal) {
    const JobPlace place{slurm_.configured("ClusterName"), site_.partition, site_.node};
    std::optional<Nodes> nodes;
    const StoreContent all = look_at_store(
        plan_, resolved_, options_.new_build,
        [&](const StoreContent& records) -> OtherMachine {
          nodes.emplace(journal, records, place);
          return [&](const Record& record) { return nodes->other_machine(record); };
        },
        precision_.share > 0 ? precision_.most : 0);
    if (precision_.share > 0) {
      UntilPrecise until(plan_, precision_);
      plan_.runs = until.next(plan_.runs, all);
      precision_lines_ = until.lines();
    }
    const StoreContent store = nodes->counted(all);
    const StudyNow now = look_at_study(plan_.study, journal, slurm_, place);
    SubmissionInput input;
    input.site = &site_;
    input.plan = &plan_;
    input.store = &store;
    input.submitted = &now.runs;
    input.setup = setup_;
    input.planned_bytes = [this](std::size_t point) {
      return planned_replica_bytes(plan_.spec.workload, resolved_[point].parameters);
    };
    StoreContent published;
    if (const fs::path tables = shipped_path("results/reference"); !tables.empty()) {
      published = load_store(tables);
    }
    input.published = &published;
    input.epochs = [this](std::size_t point) -> std::optional<double> {
      const Point& parameters = resolved_[point].parameters;
      if (parameters.find("steps") || parameters.find("until")) return std::nullopt;
      return parameters.real("epochs");
    };
    input.max_array_size = max_array_size(site_, slurm_);
    input.sent_once = &sent_once_;
    input.room = ask_queue_room(site_, slurm_, runs_to_make(plan_));
    submission_ = prepare_submission(input);
  }

  void print_plan() const {
    if (!warning_.empty()) print("warning: {}\n", warning_);
    for (const std::string& note : plan_.expansion.notes) print_unbuilt(note);
    for (const std::string& note : plan_.expansion.unseen) print("note: {}\n", note);
    for (const std::string& line : missing_bases(plan_.expansion.points)) {
      print("warning: {}\n", line);
    }
    for (const Rejected& rejected : plan_.rejected) {
      print("warning: a record is ignored: {}\n", rejected.reason);
    }
    for (const std::string& line : other_machine_lines(plan_)) print("note: {}\n", line);
    if (site_.gpu_form != GpuForm::none && submission_.gpu_hours() == 0 &&
        !submission_.arrays.empty()) {
      print("note: the points are of device cpu, so no GPUs are requested; for GPUs {}\n",
            site_.device.empty()
                ? fmt::format("write \"device\": \"cuda\" in {}, or add --set device=cuda",
                              site_.where)
                : "add --set device=cuda");
    }
    print_data_note();
    print_shell_note();
    for (const std::string& line : precision_lines_) print("{}\n", line);
    print("{}", submission_text(submission_, plan_));
  }

  // Jobs that wait for hours would fail one by one.
  void need_data() const {
    if (data_is_absent_.empty() || options_.data_elsewhere) return;
    throw Error(ErrorKind::input, data_is_absent_, "", kDataElsewhere);
  }

  // Where the jobs look for data that this machine does not have.
  void print_data_note() const {
    if (data_is_absent_.empty() || !options_.data_elsewhere) return;
    if (!filled_in(site_.data)) {
      print("note: data is {} in {}, and {} is not set here: only the jobs look there\n",
            site_.data, site_.where, leading_variable(site_.data));
    } else {
      print("note: the data set is not on this machine; the jobs look in {}\n",
            site_.data.empty() ? "$PACELINE_DATA and data"
                               : fmt::format("{} ({})", site_.data, site_.where));
    }
  }

  void print_shell_note() const {
    if (submission_.arrays.empty()) return;
    const std::string script = script_text(site_, submission_.arrays.front(), submission_.setup);
    const std::vector<std::string> names = slurm_.overriding_variables(script);
    if (names.empty()) return;
    print(
        "note: set aside of your shell, as sbatch would prefer {} to the scripts' lines: {}; "
        "what shall hold belongs in {}{}\n",
        names.size() == 1 ? "it" : "them", join(names, ", "), site_.where,
        options_.dry_run ? ", and sbatch by hand needs it unset" : "");
  }

  // Says where. What cannot be asked for stops it before there is a folder.
  std::string write_scripts() const {
    const bool is_named = !options_.scripts.empty();
    const fs::path folder = fs::absolute(is_named ? fs::path(options_.scripts) : default_folder());
    ScriptSetup setup = submission_.setup;
    setup.by_hand = folder.lexically_normal();
    std::vector<std::string> scripts;
    for (const JobArray& array : submission_.arrays) {
      scripts.push_back(script_text(site_, array, setup));
    }
    is_named ? make_folder(folder) : make_private_folder(folder);
    for (std::size_t i = 0; i < submission_.arrays.size(); ++i) {
      const JobArray& array = submission_.arrays[i];
      std::string points;
      for (const ScheduledRun& run : array.runs) points += points_line(plan_, run, setup_) + "\n";
      replace_file(folder / (array.name + ".sbatch"), scripts[i]);
      replace_file(folder / (array.name + ".points"), points);
    }
    return fmt::format("scripts, and a line for each run: {}/*.sbatch, *.points{}\n",
                       folder.string(),
                       is_named ? "" : "; to send them by hand, --scripts a folder that nodes see");
  }

  // A dry run leaves nothing in the study. The folder is the same each time.
  fs::path default_folder() const {
    std::error_code code;
    const fs::path parent = fs::temp_directory_path(code);
    return (code ? "/tmp" : parent) / fmt::format("paceline-{}-{}", plan_.spec.name, geteuid());
  }

  // Others can write to its parent, too. What an earlier dry run left goes.
  static void make_private_folder(const fs::path& folder) {
    struct stat status {};
    const bool is_there = mkdir(folder.c_str(), 0700) != 0;
    if (is_there && (errno != EEXIST || lstat(folder.c_str(), &status) != 0 ||
                     !S_ISDIR(status.st_mode) || status.st_uid != geteuid())) {
      throw Error(ErrorKind::input, "the folder cannot be created, or is not this user's",
                  folder.string(), "name another: --scripts FOLDER");
    }
    for (const auto& entry : fs::directory_iterator(folder)) fs::remove(entry.path());
  }

  // What counts is the program that runs in the jobs.
  void print_unbuilt(const std::string& note) const {
    if (!is_run_by_this_program(site_)) return print("note: {}\n", note);
    print(
        "warning: {}; the jobs run this program: name the one of the compute nodes (\"program\" in "
        "{}), or find out by --smoke\n",
        note, site_.where);
  }

  // With --wait that of all waves.
  double gpu_hours() const {
    double hours = submission_.gpu_hours();
    for (const JobArray& array : submission_.later) hours += options_.wait ? array.gpu_hours() : 0;
    return hours;
  }

  bool is_over_budget() const {
    return options_.max_gpu_hours >= 0 && gpu_hours() > options_.max_gpu_hours;
  }

  // Throws usage over the budget; false where the user says no.
  bool is_affordable() const {
    if (is_over_budget()) {
      throw Error(ErrorKind::usage,
                  fmt::format("{:.1f} GPU-hours are more than --max-gpu-hours {:g}", gpu_hours(),
                              options_.max_gpu_hours),
                  "", "raise it, choose fewer points by --set, or lower the profile's times");
    }
    if (options_.yes) return true;
    if (!can_ask()) {
      throw Error(ErrorKind::usage, "there is no terminal to confirm the cost on", "", "add --yes");
    }
    print("submit? [y/N] ");
    flush_output();
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "y" || answer == "yes";
  }

  const SubmitOptions& options_;
  Site& site_;
  StudyPlan& plan_;
  std::string warning_;  // of the nodes; empty: they are known
  TargetPrecision precision_;
  std::vector<std::string> precision_lines_;  // what --until-precision has reached
  SlurmCommands slurm_;
  std::string data_is_absent_;  // what says so; empty: it is here, or none is needed
  std::vector<Resolved> resolved_;
  ScriptSetup setup_;
  Submission submission_;
  std::size_t sent_in_wave_ = 0;                     // runs
  std::set<std::pair<std::size_t, int>> sent_once_;  // point, repeat: by this call
};

int submit(SubmitOptions options) {
  Site site = load_site(options);
  const std::optional<std::string> data = filled_in(site.data);
  options.data_elsewhere = options.data_elsewhere || !data;
  if (data && !data->empty()) setenv("PACELINE_DATA", data->c_str(), 1);
  std::set<std::string> services;
  std::string warning;
  TargetPrecision precision;
  StudyPlan plan = make_plan(options, site, services, warning, precision);
  Submitter submitter(options, site, plan, std::move(services), std::move(warning), precision);
  return options.dry_run ? submitter.dry_run() : submitter.submit();
}

}  // namespace

void add_submit(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("submit", "Submit the missing runs of a study to Slurm");
  auto options = std::make_shared<SubmitOptions>();
  add_study_options(*verb, *options);
  verb->add_option("--site", options->site, "a site profile: a file, or the name of one that ships")
      ->type_name("NAME")
      ->required();
  verb->add_option("--max-gpu-hours", options->max_gpu_hours,
                   "refuse to submit if the study may cost more")
      ->type_name("HOURS")
      ->check(CLI::NonNegativeNumber);
  verb->add_option(
          "--fallback", options->fallback,
          "backend to try in the same job if the run's own cannot connect; the record says so")
      ->check(CLI::IsMember(backends_of_ranks()));
  verb->add_flag("--dry-run", options->dry_run,
                 "print job arrays and cost, write the scripts, submit nothing");
  verb->add_option("--scripts", options->scripts,
                   "with --dry-run, write the scripts here [default: a folder in /tmp]")
      ->type_name("FOLDER");
  verb->add_flag("--data-elsewhere", options->data_elsewhere,
                 "the data set is not on this machine, but the jobs see it");
  verb->add_flag(
      "--smoke", options->smoke,
      "submit a test instead: each shape once, two steps, on GPUs if the profile has some");
  CLI::Option* wait = verb->add_flag(
      "--wait", options->wait, "submit in waves, as the queue has room, until all runs are sent");
  verb->add_option("--every", options->every, "interval at which --wait checks the queue")
      ->needs(wait)
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(CLI::Range(10, 86400));
  verb->add_flag("--yes", options->yes, "do not ask for confirmation");
  verb->add_flag("--no-container", options->no_container, "ignore the profile's container");
  verb->add_flag("--no-collect", options->no_collect,
                 "do not submit the job that collects the study");
  verb->footer(kSubmitFooter);
  verb->callback([options, &action] { action = [options] { return submit(*options); }; });
}

}  // namespace paceline
