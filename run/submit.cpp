#include "run/submit.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "engine/launch/topology.h"
#include "results/shipped.h"
#include "run/resolve.h"
#include "slurm/site_plan.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

constexpr char kDataElsewhere[] = "or add --data-elsewhere if only the jobs see it";

// The site profile, as the options change it. Points are resolved with the data of the jobs.
Site load_site(SubmitOptions& options) {
  Site site = read_site(options.site);
  if (!options.data.empty()) site.data = fs::absolute(options.data).string();
  if (options.no_container) site.container.on = false;
  const auto data = find_data_folder(site, environment_of_process());
  options.data_elsewhere = options.data_elsewhere || !data;
  if (data && !data->empty()) setenv("PACELINE_DATA", data->c_str(), 1);
  return site;
}

// A dry run leaves nothing in the study. The folder is the same each time.
fs::path default_folder(const std::string& study) {
  std::error_code code;
  const fs::path parent = fs::temp_directory_path(code);
  return (code ? "/tmp" : parent) / fmt::format("paceline-{}-{}", study, geteuid());
}

}  // namespace

StudySubmitter::StudySubmitter(SubmitOptions options)
    : options_(std::move(options)),
      site_(load_site(options_)),
      environment_(environment_of_process()),
      slurm_(environment_) {
  plan_points();
  check_data_is_read(options_.data, plan_.spec.workload, plan_.expansion.points);
  resolved_ = resolve_points(plan_, AbsentData::like_any, &data_is_absent_,
                             absent_data_cure(site_, !options_.data.empty()));
  setup_.study = plan_.spec.name;
  setup_.folder = plan_.study;
  setup_.session = options_.dry_run ? kDryRunSession : new_session_id();
  setup_.program = this_program();
  setup_.fallback = options_.fallback;
  setup_.screen = options_.screen;
  setup_.device = Settings(plan_.expansion.points.front().parameters).text("device");
  for (const PlannedPoint& point : plan_.expansion.points) {
    const fs::path weights = point.parameters.text("weights").value_or("");
    if (weights.is_absolute()) setup_.reads.insert(weights.parent_path().string());
  }
}

void StudySubmitter::plan_points() {
  Spec& spec = plan_.spec;
  spec = read_spec(options_.spec);
  set_device(spec, site_);
  for (const std::string& assignment : options_.set) override_axis(spec, assignment);
  if (options_.repeats > 0) spec.repeats = options_.repeats;
  spec.control = spec.control || options_.control;
  precision_ = read_target_precision(options_, spec);
  precision_.in_waves = true;
  if (precision_.share > 0 && options_.smoke) {
    throw usage_error("a smoke test measures nothing", "--until-precision",
                      "leave out one of --smoke and --until-precision");
  }
  const bool on_cpus = options_.smoke && smokes_on_cpus(site_);
  const SiteMachine nodes =
      find_target_machine(site_, on_cpus, slurm_, topology_of_machine().usable_cores());
  warning_ = nodes.warning;
  if (on_cpus) setup_.services = list_services(spec, nodes.machine);
  if (options_.smoke) make_smoke_test(spec, site_);
  if (is_run_by_this_program(site_) && !engine_is_here() && !options_.dry_run) {
    throw usage_error("this build has no engine, so its jobs cannot train", site_.where,
                      "name the program of the compute nodes (\"program\"), or add --dry-run");
  }
  plan_.expansion = expand(spec, nodes.machine, Unbuilt::keep);
  plan_.study = fs::absolute(fs::path(options_.results) / spec.name).lexically_normal();
}

std::string StudySubmitter::dry_run() {
  plan_wave(Journal(plan_.study));
  const bool is_named = !options_.scripts.empty();
  const fs::path folder =
      fs::absolute(is_named ? fs::path(options_.scripts) : default_folder(plan_.spec.name));
  if (!submission_.arrays.empty()) {
    save_scripts(submission_, site_, plan_, folder.lexically_normal(), !is_named);
  }
  std::string text = plan_text();
  if (is_over_budget()) {
    text += fmt::format("warning: more than --max-gpu-hours {:g}: submit will refuse\n",
                        options_.max_gpu_hours);
  }
  for (const std::string& placeholder : list_placeholders(site_)) {
    text += fmt::format("warning: {}: {}; write your own before you submit\n", site_.where,
                        placeholder);
  }
  if (list_placeholders(site_).empty()) {
    for (const SiteFinding& refusal : find_refusals(site_, slurm_)) {
      text += fmt::format("warning: {}: {}; {}\n", site_.where, refusal.what, refusal.cure);
    }
  }
  if (!data_is_absent_.empty() && !options_.data_elsewhere) {
    text += fmt::format("warning: {}; {}\n", data_is_absent_, kDataElsewhere);
  }
  if (submission_.arrays.empty()) return text;
  return text +
         fmt::format("scripts, and a line for each run: {}/*.sbatch, *.points{}\n", folder.string(),
                     is_named ? "" : "; to send them by hand, --scripts a folder that nodes see");
}

// A study of which Slurm took nothing leaves none.
bool StudySubmitter::submit(const Print& print, const std::function<bool()>& confirm) {
  const bool is_new = !path_exists(plan_.study);
  try {
    return send(print, confirm);
  } catch (const Error&) {
    const auto may_be_there = [](const SentArray& array) {
      return array.job != 0 || (array.called && !array.refused);
    };
    if (is_new && std::ranges::none_of(Journal(plan_.study).arrays(), may_be_there)) {
      fs::remove_all(plan_.study);
    }
    throw;
  }
}

bool StudySubmitter::send(const Print& print, const std::function<bool()>& confirm) {
  refuse_placeholders(site_);
  bool is_first = true;
  std::size_t left = kAllPoints;
  while (true) {
    if (is_first || has_room_for(left)) {
      const StudyLock lock(plan_.study);
      if (!send_wave(is_first, print, confirm)) return false;
      left = submission_.runs.size() - sent_in_wave_;
      is_first = false;
    }
    if (!options_.wait || left == 0) break;
    const timespec pause{options_.every, 0};
    nanosleep(&pause, nullptr);
  }
  if (!sent_once_.empty()) {
    print(fmt::format("watch it: paceline status {} --watch\n", shell_quote(plan_.study.string())));
  }
  return true;
}

bool StudySubmitter::has_room_for(std::size_t left) const {
  const QueueRoom room = ask_queue_room(site_, slurm_, left);
  return !room.is_known() || room.elements >= std::min(left, room.most / 10 + 1);
}

bool StudySubmitter::send_wave(bool is_first, const Print& print,
                               const std::function<bool()>& confirm) {
  sent_in_wave_ = 0;
  if (!is_first) setup_.session = new_session_id();
  Journal journal(plan_.study);
  find_unanswered(journal, slurm_);
  plan_wave(journal);
  if (is_first) print(plan_text());
  const bool sends = !submission_.arrays.empty() || (options_.wait && submission_.left() > 0);
  if (is_first && sends) {
    check_affordable();
    if (!confirm()) return false;
    slurm_.need("sbatch");
    save_expected_runs(plan_);
  }
  if (submission_.arrays.empty()) return true;
  // In a container there are no commands of Slurm for the collector.
  const bool collect = !options_.no_collect && !site_.container.on;
  sent_in_wave_ = send_submission(submission_, site_, plan_, resolved_, journal, slurm_, collect,
                                  [&](const std::string& line) { print(line + "\n"); });
  std::size_t sent = 0;
  for (const JobArray& array : submission_.arrays) {
    for (const ScheduledRun& run : array.runs) {
      if (sent++ < sent_in_wave_) sent_once_.emplace(run.point, run.repeat);
    }
  }
  return true;
}

// Jobs without data would wait for hours and then fail one by one.
void StudySubmitter::check_affordable() const {
  if (!data_is_absent_.empty() && !options_.data_elsewhere) {
    throw input_error(data_is_absent_, "", kDataElsewhere);
  }
  if (!is_over_budget()) return;
  throw usage_error(fmt::format("{:.1f} GPU-hours are more than --max-gpu-hours {:g}", gpu_hours(),
                                options_.max_gpu_hours),
                    "", "raise it, choose fewer points by --set, or lower the profile's times");
}

// With --wait that of all waves.
double StudySubmitter::gpu_hours() const {
  double hours = submission_.gpu_hours();
  for (const JobArray& array : submission_.later) hours += options_.wait ? array.gpu_hours() : 0;
  return hours;
}

bool StudySubmitter::is_over_budget() const {
  return options_.max_gpu_hours >= 0 && gpu_hours() > options_.max_gpu_hours;
}

void StudySubmitter::plan_wave(const Journal& journal) {
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
  SubmissionInput input{
      .site = &site_, .plan = &plan_, .store = &store, .submitted = &now.runs, .setup = setup_};
  if (plan_.spec.programs.empty()) {
    input.planned_bytes = [this](std::size_t point) {
      return planned_replica_bytes(plan_.spec.workload, resolved_[point].parameters);
    };
  }
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

// "warning: ..." and "note: ..."
std::vector<std::string> StudySubmitter::notes() const {
  std::vector<std::string> notes;
  if (!warning_.empty()) notes.push_back("warning: " + warning_);
  for (const std::string& note : plan_.expansion.notes) {  // what is not built
    notes.push_back(is_run_by_this_program(site_)
                        ? fmt::format("warning: {}; the jobs run this program: name the one of the "
                                      "compute nodes (\"program\" in {}), or find out by --smoke",
                                      note, site_.where)
                        : "note: " + note);
  }
  add_plan_notes(plan_, notes);
  if (site_.gpu_form != GpuForm::none && submission_.gpu_hours() == 0 &&
      !submission_.arrays.empty()) {
    notes.push_back(fmt::format(
        "note: the points are of device cpu, so no GPUs are requested; for GPUs {}",
        site_.device.empty()
            ? fmt::format("write \"device\": \"cuda\" in {}, or add --set device=cuda", site_.where)
            : "add --set device=cuda"));
  }
  if (!data_is_absent_.empty() && options_.data_elsewhere) {
    notes.push_back("note: " + data_note(site_, environment_));
  }
  if (const std::string note = shell_note(); !note.empty()) notes.push_back("note: " + note);
  return notes;
}

std::string StudySubmitter::plan_text() const {
  std::string text;
  for (const std::string& note : notes()) text += note + "\n";
  for (const std::string& line : precision_lines_) text += line + "\n";
  return text + submission_text(submission_, plan_);
}

// What of the user's shell the jobs do not get.
std::string StudySubmitter::shell_note() const {
  if (submission_.arrays.empty()) return "";
  const std::vector<std::string> names = slurm_.overriding_variables(
      script_text(site_, submission_.arrays.front(), submission_.setup));
  if (names.empty()) return "";
  return fmt::format(
      "set aside of your shell, as sbatch would prefer {} to the scripts' lines: {}; what shall "
      "hold belongs in {}{}",
      names.size() == 1 ? "it" : "them", join(names, ", "), site_.where,
      options_.dry_run ? ", and sbatch by hand needs it unset" : "");
}

}  // namespace paceline
