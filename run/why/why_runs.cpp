#include "run/why/why_runs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/evidence/run.h"
#include "engine/core/clock.h"
#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "engine/launch/topology.h"
#include "results/names.h"
#include "run/diagnosis.h"
#include "run/plan_study.h"
#include "run/why/first_run.h"
#include "run/why/variants.h"
#include "run/why/working_copy.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr int kMostSteps = 400;  // measured
constexpr double kMeasuredSeconds = 3;
constexpr int kAfterSeconds = 20;  // steps of the first run, which others need not make
constexpr int kFirstRounds = static_cast<int>(kFewestRounds);
constexpr int kTriedRounds = 6, kProfiledSteps = 5;
// A run may take so many times as long as the first, and so many seconds more.
constexpr double kMostTimes = 4, kSlack = 60;

class WhyStudy {
 public:
  explicit WhyStudy(const WhyRequest& request)
      : request_(request),
        scratch_("paceline-why"),
        here_(fs::current_path()),
        study_(request.out.empty() ? fs::path() : fs::absolute(request.out)),
        started_(now_seconds()),
        timeout_(kSlack + 60 * request.minutes) {}

  ~WhyStudy() {
    std::error_code ignored;
    if (is_new_) fs::remove(study_, ignored);  // if nothing was written into it
  }
  WhyStudy(const WhyStudy&) = delete;
  WhyStudy& operator=(const WhyStudy&) = delete;

  WhyOutcome run() {
    check();
    make_launch();
    look();
    if (outcome_.stopped_by == 0) compare();
    return std::move(outcome_);
  }

 private:
  void check() {
    if (!engine_is_here()) {
      throw usage_error("this build has no engine, so it cannot run a program", "why",
                        "use one that has");
    }
    const std::string& program = request_.command.front();
    const bool is_path = program.find('/') != std::string::npos;
    if (is_path ? access(program.c_str(), X_OK) != 0
                : !find_program(program, environment_of_process())) {
      throw input_error(
          fmt::format("there is no program {} to run", program), "",
          is_path ? "check its path and its permissions" : "check its name and the PATH");
    }
    if (study_.string().find_first_of("\"\\") != std::string::npos) {
      throw usage_error("a quote or backslash in the name", "--out " + request_.out,
                        "name another one");
    }
    std::error_code ignored;
    if (!study_.empty() && fs::exists(study_, ignored) && !fs::is_empty(study_, ignored)) {
      throw usage_error("not an empty folder", "--out " + request_.out, "name a new one");
    }
    is_new_ = !fs::exists(study_, ignored);
    if (!study_.empty()) return make_folder(study_);
    std::string name = (fs::temp_directory_path() / "paceline-why-study.XXXXXX").string();
    if (!mkdtemp(name.data())) {
      throw input_error("a folder for the records cannot be created", name, "name one with --out");
    }
    study_ = name;
  }

  void make_launch() {
    launch_.hook = place_hook(scratch_.path() / "hook");
    launch_.scratch = scratch_.path() / "program";
    make_folder(launch_.scratch);
    launch_.copy = {here_,
                    launch_.scratch / "copy",
                    {},
                    {fs::canonical(scratch_.path()), fs::canonical(study_)}};
    for (const std::string& each : request_.linked) launch_.copy.link(each);
    launch_.copy.check_size();
    launch_.writes_ok = request_.writes_ok;
    launch_.cpus = usable_cpus();
    const std::string threads = environment_value(environment_of_process(), "OMP_NUM_THREADS");
    hook_settings_ = {{"warm", kWarmSteps},
                      {"steps", kWarmSteps + kMostSteps},
                      {"seconds", kMeasuredSeconds},
                      {"take", Json::array()},
                      {"threads", 0},
                      {"cpus", launch_.cpus},
                      {"bucket_mb", 0},
                      {"workers", 0},
                      {"batch", 0},
                      {"omp_num_threads", threads.empty() ? Json(nullptr) : Json(threads)}};
    save_settings();
    setenv(kLaunchVariable, launch_file().c_str(), 1);
    if (launch_.copy.is_on_other_storage()) {
      note("The copies were in TMPDIR, on another storage than this folder.");
    }
    if (!can_hold_writes() && !request_.writes_ok) {
      outcome_.evidence.warnings.emplace_back(
          "this kernel has no Landlock, so only what Python itself writes outside of the copy was "
          "refused");
    } else if (starts_containers(request_.command) && !request_.writes_ok) {
      outcome_.evidence.warnings.emplace_back(
          "of the processes in the container only Python's were kept from writing elsewhere");
    }
  }

  fs::path launch_file() const { return scratch_.path() / "launch.json"; }

  void save_settings() {
    launch_.settings = json_text(hook_settings_);
    save_launch(launch_file(), launch_);
  }

  // A plan of these programs, each a point, with its records in `folder`.
  StudyPlan make_plan(const std::vector<Variant>& variants, const fs::path& folder,
                      const Json& results) const {
    std::vector<std::string> words = {"{paceline}", "why", "--"};
    for (const std::string& word : request_.command) words.push_back(escape_placeholders(word));
    Json programs = Json::object(), names = Json::array(), sizes = Json::array();
    for (const Variant& each : variants) {
      Json settings = {{"out", "{out}"}, {"replicas", "{gpus}"}};
      settings.update(parse_json(each.changes));
      Json& program = programs[each.program()];
      names.push_back(each.program());
      sizes.push_back(each.replicas);
      if (!program.is_null()) continue;  // of one alone, which takes no turns
      program = {{"command", words},
                 {"directory", here_.string()},
                 {"environment", {{kHookVariable, json_text(settings)}}}};
      if (!results.is_null()) program["results"] = results;
    }
    const int most = std::ranges::max(sizes.get<std::vector<int>>()),
              cpus = std::max(1, static_cast<int>(launch_.cpus.size()) / most);
    const Json spec = {{"name", folder.filename().string()},
                       {"workload", kCommandWorkload},
                       {"programs", programs},
                       {"fixed",
                        {{"device", device_},
                         {"cpus_per_replica", cpus},
                         {"oversubscribe", most > static_cast<int>(launch_.cpus.size())}}},
                       {"zip", {{"program", names}, {"gpus", sizes}}},
                       {"repeats", kFirstRounds}};
    StudyPlan plan;
    plan.spec = parse_spec("why", json_text(spec, 2));
    plan.spec.sequential = true;
    plan.spec.timeout_seconds = timeout_;
    const TargetMachine machine{topology_of_machine().usable_cores(), true, reason_not_runnable};
    plan.expansion = expand(plan.spec, machine, Unbuilt::keep);
    plan.study = folder;
    resolve_points(plan, AbsentData::refused);
    return plan;
  }

  RunnerResult run_plan(const StudyPlan& plan, RunnerSetup setup,
                        const std::vector<RunStatus>& runs) {
    const StudyLock lock(plan.study);
    save_expected_runs(plan);
    Screen screen;
    setup.spec = &plan.spec;
    setup.points = &plan.expansion.points;
    setup.program = {this_program().string()};
    setup.line = [&](const std::string& text) { screen.line(text); };
    setup.status = [&](const std::string& text) { screen.status(text); };
    const RunnerResult result = run_study(setup, lock, runs);
    screen.clear();
    outcome_.stopped_by = result.stopped_by;
    return result;
  }

  // The program as it is and alone, once, for what has to be known before the rounds.
  void look() {
    print_note("paceline why: first runs show what has to be measured\n");
    int gpus = 1;  // that it sees, or replicas on cores
    for (const Name& each : known_names().devices) {
      const int count = each.gpus ? count_gpus(each.name) : 0;
      if (count > 0) device_ = each.name, gpus = count;
    }
    std::string reason;
    const auto seen = look_at(
        {"look",
         json_text({{"replicas", "0"}, {"profile", kProfiledSteps}, {"keeps_launch", true}}), gpus},
        reason);
    if (outcome_.stopped_by != 0) return;
    if (!seen) refuse(program(), reason, longest_ == 0);
    seen_ = *seen;
    check_steps(seen_, program());
    if (!seen_.is_on_gpu) device_ = "cpu";
    seen_.steps_in_all = std::max(std::min<double>(seen_.steps_in_all, kWarmSteps + kAfterSeconds),
                                  seen_.steps_in_all - kAfterSeconds);
    hook_settings_["steps"] = seen_.steps_in_all;
    hook_settings_["seconds"] = 0;
    if (hook_settings_.value("launches", 0) != seen_.ranks) hook_settings_.erase("launches");
    hook_settings_["lengths"] = parse_json(seen_.lengths);
    hook_settings_["threads"] = static_cast<int>(launch_.cpus.size()) / seen_.local_ranks;
    save_settings();
    if (seen_.local_ranks != seen_.ranks) {
      note("Ranks are on several nodes, so one replica alone is not measured.");
      return;
    }
    // A program that waits for the other ranks does so for long.
    timeout_ = kSlack + kMostTimes * longest_;
    reason = "it trained no step that the hook saw";
    seen_alone_ = look_at({"look-alone", "{}", 1}, reason, false);
    if (!seen_alone_ && outcome_.stopped_by == 0) {  // as Lightning below torchrun
      hook_settings_["keeps_sizes"] = true;
      save_settings();
      seen_alone_ = look_at({"look-alone-again", "{}", 1}, reason);
    }
    if (seen_alone_ && seen_alone_->ranks > 1) {
      reason = "the program starts its other ranks itself";
      seen_alone_.reset();
    }
    if (!seen_alone_ && outcome_.stopped_by == 0) {
      note(fmt::format("One replica alone is not measured: {}.", reason));
      outcome_.evidence.missing.insert(kAlone);
    }
  }

  // What the hook wrote in a run of this program alone. Empty: `reason` says why it wrote nothing.
  std::optional<MeasuredRun> look_at(const Variant& variant, std::string& reason,
                                     bool shows_log = true) {
    const StudyPlan plan = make_plan({variant}, scratch_.path() / variant.name, nullptr);
    RunnerSetup setup;
    setup.took = [&](const ScheduledRun&, double seconds) { keep_longest(seconds); };
    const RunnerResult result = run_plan(plan, setup, {{.run = {0, 1}}});
    if (result.stopped_by != 0) return std::nullopt;
    const fs::path out = run_folder(plan, 0, 1);
    if (path_exists(out)) {
      refuse_writes_elsewhere(out, program());
      if (variant.name == "look") warn_of_unheld(out, outcome_.evidence);
      read_profile(out, outcome_.evidence);
      find_launches(out, hook_settings_);
    }
    if (path_exists(out / "run.json")) return read_measured_run(out / "run.json");
    if (result.failed == 0) return std::nullopt;
    reason = load_store(plan.study).records.at(0)->reason;
    if (shows_log) print_logs(plan.study / "logs");
    return std::nullopt;
  }

  static fs::path run_folder(const StudyPlan& plan, std::size_t point, int repeat) {
    return plan.study / "runs" /
           fmt::format("{}.{}", plan.expansion.points[point].point.folder(), repeat);
  }

  void compare() {
    std::vector<Variant> variants = choose_variants(
        seen_, seen_alone_, static_cast<int>(launch_.cpus.size()), outcome_.evidence.notes);
    const auto source = [](const char* path) {
      return Json{{"json", path}, {"file", "{out}/run.json"}};
    };
    Json results = {{"steps", source("$.steps")}};
    if (seen_.samples > 0) {
      results["samples_per_second"] = source("$.samples_per_second");
      results["global_batch"] = source("$.global_batch");
    } else {
      results["steps_per_second"] = source("$.steps_per_second");
    }
    shorten_warm_up(variants, hook_settings_, seen_);
    save_settings();
    choose_turns(variants);
    if (outcome_.stopped_by != 0) return;
    for (const Variant& each : variants) {  // a setting that shows a cause is one to try
      if (!each.is_try() && !each.text.empty()) outcome_.evidence.tried[each.name] = each.text;
    }
    plan_ = make_plan(variants, study_, results);
    std::vector<RunStatus> runs;
    for (int repeat = 1; repeat <= kFirstRounds; ++repeat) add_round(runs, variants, repeat, false);
    RunnerSetup setup;
    setup.more = [&] { return next_round(variants); };
    setup.affordable = [&](const ScheduledRun& run) {
      return run.repeat == 1 || (!is_over() && !has_failed_twice(run));
    };
    setup.took = [&](const ScheduledRun&, double seconds) { keep_longest(seconds); };
    say_if_short(runs.size());
    outcome_.evidence.minutes_before = minutes();
    run_plan(plan_, setup, runs);
    load_rounds(variants);
    note_failures();
    if (given_up_.contains(kAsItIs)) refuse(program(), why_given_up_, false);
    outcome_.evidence.minutes = minutes();
    outcome_.verdict = judge_why(outcome_.evidence);
    outcome_.study = study_;
    save_made_runs(variants);
  }

  // Those that a short run shows to work.
  void choose_turns(std::vector<Variant>& variants) {
    std::string tried = variants.front().changes, ignored;
    for (const auto& alone : {seen_alone_, std::optional<MeasuredRun>()}) {
      const auto turns = take_turns(variants, seen_, alone);
      if (outcome_.stopped_by != 0 || turns.front().changes == tried) continue;
      tried = turns.front().changes;
      Json changes = parse_json(tried);
      changes["turns"]["rounds"] = kFewestTurns;
      const std::string name = fmt::format("look-turns{}", alone ? "" : "-again");
      const auto run = look_at({name, json_text(changes), seen_.ranks}, ignored, false);
      if (run && took_turns(*run, changes["turns"]["programs"].size(), alone)) {
        variants = turns;
        return;
      }
    }
    if (tried == variants.front().changes) return;
    note("Its steps cannot take turns, so each cost is taken away in runs of its own.");
  }

  double minutes() const { return (now_seconds() - started_) / 60; }
  bool is_over() const { return minutes() + longest_ / 60 > request_.minutes; }

  // One that hangs says nothing of the others.
  void keep_longest(double seconds) {
    if (seconds < timeout_) longest_ = std::max(longest_, seconds);
  }

  bool has_failed_twice(const ScheduledRun& run) const {
    int ended = 0;
    for (int repeat = 1; repeat < run.repeat; ++repeat) {
      const fs::path out = run_folder(plan_, run.point, repeat);
      if (path_exists(out / "run.json")) return false;
      ended += path_exists(out) ? 1 : 0;
    }
    return ended >= 2;
  }

  void say_if_short(std::size_t runs) const {
    const double end = minutes() + static_cast<double>(runs) * longest_ / 60;
    if (end <= request_.minutes) return;
    print_note(
        "paceline why: an interval needs {} rounds or more, which may take until minute {:.1f}; "
        "--minutes is {:g}\n",
        kFirstRounds, end, request_.minutes);
  }

  // Shuffled, as the order within a round must not favour one.
  void add_round(std::vector<RunStatus>& runs, const std::vector<Variant>& variants, int repeat,
                 bool is_of_tries) const {
    for (const ScheduledRun& run : schedule(variants.size(), repeat, true, plan_.spec.seed)) {
      const Variant& each = variants[run.point];
      if (each.name == kAloneOnce && repeat > 1) continue;
      const bool is_tried =
          is_of_tries ? run.point == 0 || tried_.contains(each.name) : !each.is_try();
      if (run.repeat != repeat || !is_tried || given_up_.contains(each.name)) continue;
      runs.push_back({.run = {run.point, repeat}});
    }
  }

  std::vector<RunStatus> next_round(const std::vector<Variant>& variants) {
    load_rounds(variants);
    const WhyVerdict verdict = judge_why(outcome_.evidence);
    const int last = static_cast<int>(outcome_.evidence.rounds.size());
    std::vector<RunStatus> runs;
    if (is_over() || last >= static_cast<int>(kMostCompared) || given_up_.contains(kAsItIs))
      return runs;
    if (!verdict.is_over && tried_.empty()) add_round(runs, variants, last + 1, false);
    if (!verdict.is_over || !tried_.empty() || !verdict.first) return runs;
    for (const Variant& each : variants) {
      if (each.is_try() && each.of_cause == verdict.causes[*verdict.first].key) {
        tried_.insert(each.name);
        outcome_.evidence.tried[each.name] = each.text;
      }
    }
    if (tried_.empty()) return runs;
    for (int i = 1; i <= kTriedRounds; ++i) add_round(runs, variants, last + i, true);
    return runs;
  }

  // What the runs so far measured, by round; a program that failed in every round is given up.
  void load_rounds(const std::vector<Variant>& variants) {
    const StoreContent records = load_store(study_);
    WhyEvidence& evidence = outcome_.evidence;
    evidence.rounds.clear();
    std::map<std::string, std::string> reasons;
    failures_.clear();
    std::size_t busy = 0;
    for (const Record& record : records.records) {
      const auto repeat = static_cast<std::size_t>(record->repeat);
      if (evidence.rounds.size() < repeat) evidence.rounds.resize(repeat);
      const fs::path folder = fs::path(record.where()).parent_path().filename();
      for (std::size_t i = 0; i < variants.size(); ++i) {
        if (folder != plan_.expansion.points[i].point.folder()) continue;
        if (!record->completed()) {
          reasons[variants[i].name] = record->reason;
          ++failures_[variants[i].name];
          continue;
        }
        MeasuredRun run = read_measured_run(run_folder(plan_, i, record->repeat) / "run.json");
        std::vector<MeasuredRun> all = std::move(run.turns);
        all.push_back(std::move(run));
        for (MeasuredRun& each : all) {
          const std::string& name = each.program.empty() ? variants[i].name : each.program;
          const std::string reason = why_not_counted(each, seen_, name, variants[i].changes);
          if (reason.empty()) {
            evidence.rounds[repeat - 1][name] = std::move(each);
          } else {
            reasons[name] = reason;
          }
        }
        busy += make_run(record).is_busy() ? 1 : 0;
      }
    }
    for (const auto& [name, reason] : reasons) {
      if (evidence.has(name) || !given_up_.insert(name).second) continue;
      if (name == kAsItIs) why_given_up_ = reason;
      if (!tried_.contains(name)) evidence.missing.insert(name);
      note(fmt::format("Run \"{}\" cannot be made: {}.", name, reason));
    }
    std::erase_if(evidence.warnings,
                  [](const std::string& text) { return text.find(kBusy) != text.npos; });
    if (busy == 0) return;
    evidence.warnings.push_back(fmt::format("{} in {} of {} runs, which widens intervals", kBusy,
                                            busy, records.records.size()));
  }

  void note_failures() {
    for (const auto& [name, count] : failures_) {
      if (given_up_.contains(name)) continue;
      note(fmt::format("Run \"{}\" failed {} and counts where it did not.", name,
                       counted(count, "time")));
    }
  }

  // What was never tried or cannot be made is no run that is missing.
  void save_made_runs(const std::vector<Variant>& variants) {
    std::vector<PlannedPoint> kept;
    std::map<std::string, int> made;
    for (const WhyRound& round : outcome_.evidence.rounds) {
      for (const auto& [name, run] : round) ++made[name];
    }
    plan_.spec.repeats = static_cast<int>(kMostCompared);
    for (std::size_t i = 0; i < variants.size(); ++i) {
      if (made[variants[i].name] == 0) continue;
      kept.push_back(plan_.expansion.points[i]);
      plan_.spec.repeats = std::min(plan_.spec.repeats, made[variants[i].name]);
    }
    plan_.expansion.points = kept;
    save_expected_runs(plan_);
  }

  const std::string& program() const { return request_.command.front(); }
  void note(const std::string& text) { outcome_.evidence.notes.push_back(text); }

  static constexpr char kBusy[] = "other processes used the CPUs";

  const WhyRequest& request_;
  const ScratchFolder scratch_;
  const fs::path here_;
  fs::path study_;
  bool is_new_ = false;  // it was made here
  const double started_;
  double timeout_, longest_ = 0;
  std::string device_ = "cpu";
  WhyLaunch launch_;
  Json hook_settings_;
  MeasuredRun seen_;  // by the first run
  std::optional<MeasuredRun> seen_alone_;
  StudyPlan plan_;
  std::set<std::string> tried_, given_up_;
  std::string why_given_up_;             // of the program as it is
  std::map<std::string, int> failures_;  // of a program's runs
  WhyOutcome outcome_;
};

}  // namespace

WhyOutcome run_why(const WhyRequest& request) {
  return WhyStudy(request).run();
}

}  // namespace paceline
