#include "slurm/submission.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "sweeps/runner.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

using RunKey = std::pair<std::string, int>;  // point folder, repeat

std::map<RunKey, const RunView*> index_runs(const std::vector<RunView>& runs) {
  std::map<RunKey, const RunView*> index;
  for (const RunView& run : runs) {
    index[{run.element.point_folder, run.element.repeat}] = &run;
  }
  return index;
}

// Slurm knows what a run without a record came to.
std::string why_again(const RunStatus& status, const RunView* view) {
  if (status.state == RunState::elsewhere) return kNoRecord;  // told as a sum
  const bool has_reason = view && view->phase == RunPhase::failed && !view->why.empty();
  return status.state == RunState::missing && has_reason ? view->why : status.why;
}

// "6 runs are"
std::string runs_are(std::size_t count) {
  return counted(count, "run") + (count == 1 ? " is" : " are");
}

std::size_t elements_in(const std::vector<JobArray>& arrays) {
  return summed(arrays, [](const JobArray& array) { return array.runs.size(); });
}

void add(Submission::Expected& expected, const Need& need, const JobShape& shape) {
  const double hours = need.expected_seconds / 3600;
  const bool is_known = need.expected_by != Expectation::none;
  (is_known ? expected.gpu_hours : expected.limit_gpu_hours) += hours * shape.gpus;
  (is_known ? expected.cpu_hours : expected.limit_cpu_hours) += hours * shape.cpus();
  switch (need.expected_by) {
    case Expectation::records:
      ++expected.by_records;
      break;
    case Expectation::published:
      ++expected.by_published;
      break;
    case Expectation::none:
      ++expected.by_limit;
  }
}

// "about 8.4 GPU-hours, 26.5 CPU-hours (by published times), at most 105.0 and 350.0"; with runs
// of unknown time "about ... (by records), and up to 180.0 and 360.0 for 30 runs of unknown time;
// at most ..."
std::string cost_text(const Submission& submission) {
  const Submission::Expected& expected = submission.expected;
  std::vector<std::string> sources;
  if (expected.by_records > 0) sources.emplace_back("records");
  if (expected.by_published > 0) sources.emplace_back("published times");
  if (sources.empty()) {
    return fmt::format("at most {:.1f} GPU-hours, {:.1f} CPU-hours", submission.gpu_hours(),
                       submission.cpu_hours());
  }
  std::string unknown = ",";
  if (expected.by_limit > 0) {
    unknown = fmt::format(", and up to {:.1f} and {:.1f} for {} of unknown time;",
                          expected.limit_gpu_hours, expected.limit_cpu_hours,
                          counted(expected.by_limit, "run"));
  }
  return fmt::format("about {:.1f} GPU-hours, {:.1f} CPU-hours (by {}){} at most {:.1f} and {:.1f}",
                     expected.gpu_hours, expected.cpu_hours, join(sources, ", "), unknown,
                     submission.gpu_hours(), submission.cpu_hours());
}

std::string whole_file(const StudyPlan& plan, const JobArray& array, const ScriptSetup& setup) {
  std::string text;
  for (const ScheduledRun& run : array.runs) text += points_line(plan, run, setup) + "\n";
  return text;
}

// What the study's journal does not know yet: waves of a large study would describe the same runs
// again and again.
std::vector<Element> not_in_journal(std::vector<Element> elements, const Journal& journal) {
  std::set<std::pair<std::string_view, int>> known;
  for (const SentArray& array : journal.arrays()) {
    for (const Element& each : array.elements) known.emplace(each.point_folder, each.repeat);
  }
  std::erase_if(elements, [&](const Element& each) {
    return known.contains({each.point_folder, each.repeat});
  });
  return elements;
}

std::string advice(const Site& site) {
  return fmt::format("check account, partition, qos and the requests in {}",
                     site.where.empty() ? "the site profile" : site.where);
}

[[noreturn]] void throw_no_job(const SbatchAnswer& answer, const fs::path& script,
                               const Site& site) {
  if (answer.is_refused) {
    throw usage_error("sbatch refused it: " + answer.why, script.string(), advice(site));
  }
  throw usage_error(
      "sbatch did not say whether it took the job, and the queue does not show it: " + answer.why,
      script.string(),
      "call submit again when Slurm answers: it looks for the job before it sends any");
}

// It is no part of the study: a queue that is full by now must not hide that all was sent.
void send_collector(const Submission& submission, const Site& site,
                    const std::set<std::int64_t>& jobs, const SlurmCommands& slurm,
                    const std::function<void(const std::string&)>& notify) {
  const ScriptSetup& setup = submission.setup;
  const fs::path name = file_of_array(setup.session, "collect", ".sbatch");
  const fs::path script = setup.folder / name;
  Folder(setup.folder).replace_file(name, collect_script_text(site, setup));
  const std::string after = fmt::format("--dependency=afterany:{}", fmt::join(jobs, ":"));
  const SbatchAnswer answer =
      slurm.submit(script, setup.folder, {after}, job_name("collect", setup));
  if (answer.job > 0) {
    notify(fmt::format("job {} collects the study after them", answer.job));
  } else if (!answer.is_refused) {
    notify(
        fmt::format("whether a job collects the study is not known (sbatch: {}): call paceline "
                    "collect {}",
                    answer.why, setup.folder.string()));
  } else if (is_refused_for_now(answer.why)) {
    notify(fmt::format("no job collects the study, as the queue is full: call paceline collect {}",
                       setup.folder.string()));
  } else {
    throw_no_job(answer, script, site);
  }
}

void make_private_folder(const fs::path& folder) {
  struct stat status {};
  const bool is_there = mkdir(folder.c_str(), 0700) != 0;
  if (is_there && (errno != EEXIST || lstat(folder.c_str(), &status) != 0 ||
                   !S_ISDIR(status.st_mode) || status.st_uid != geteuid())) {
    throw input_error("the folder cannot be created, or is not this user's", folder.string(),
                      "name another: --scripts FOLDER");
  }
  for (const auto& entry : fs::directory_iterator(folder)) fs::remove(entry.path());
}

// In a container there are no commands of Slurm: who starts its ranks itself starts none elsewhere.
void check_program_starts(const Spec& spec, const Site& site, const PlannedPoint& planned) {
  if (spec.programs.empty() || planned.layout.nodes == 1 || !site.container.on) return;
  const UserProgram& program = program_at(spec, planned.parameters, spec.where);
  if (program.processes != "one") return;
  throw usage_error(
      fmt::format("point {} needs {} nodes, and program {} in the container of the site "
                  "profile can start nothing on the others",
                  planned.point.text(), planned.layout.nodes, program.name),
      spec.where, "add \"processes\": \"node\" or \"replica\", or use points of one node");
}

// What is sent again, a line a point.
std::string again_lines(const Submission& submission, const StudyPlan& plan) {
  std::map<std::size_t, std::vector<RepeatReason>> reasons;  // by point
  for (const RunToSend& each : submission.runs) {
    if (each.why != kNoRecord) {
      reasons[each.run.point].push_back({each.run.repeat, each.why, each.element});
    }
  }
  std::string text;
  std::size_t has_reason = 0;
  for (const auto& [point, why] : reasons) {
    if (++has_reason > kShownPoints) break;
    text += fmt::format("again: {} {}\n", plan.expansion.points[point].point.text(),
                        summarize_reasons(why));
  }
  if (reasons.size() > kShownPoints) {
    text += fmt::format("again: {}\n", counted(reasons.size() - kShownPoints, "more point"));
  }
  return text;
}

}  // namespace

int max_array_size(const Site& site, const SlurmCommands& slurm) {
  constexpr int kSlurmsOwnMaxArraySize = 1001;
  constexpr int kMostElements = 10'000;  // each element reads the whole points file
  if (site.max_array_size > 0) return std::min(site.max_array_size, kMostElements);
  const auto configured = to_integer(slurm.configured("MaxArraySize"));
  return configured && *configured > 1
             ? static_cast<int>(std::min<std::int64_t>(*configured, kMostElements))
             : kSlurmsOwnMaxArraySize;
}

std::size_t Submission::left() const {
  return elements_in(later);
}

double Submission::gpu_hours() const {
  return summed(arrays, &JobArray::gpu_hours);
}

double Submission::cpu_hours() const {
  return summed(arrays, &JobArray::cpu_hours);
}

Submission prepare_submission(const SubmissionInput& input) {
  const StudyPlan& plan = *input.plan;
  const Site& site = *input.site;
  Submission submission;
  submission.setup = input.setup;
  submission.setup.own_program = !plan.spec.programs.empty();
  Needs needs(site, plan.expansion.points, *input.store, input.planned_bytes);
  if (input.published) {
    needs.expect_published(input.published->records, plan.spec.workload, input.epochs);
  }
  const auto views = index_runs(*input.submitted);
  for (const RunStatus& status : plan.runs) {
    const std::string folder = plan.expansion.points[status.run.point].point.folder();
    const auto found = views.find({folder, status.run.repeat});
    const RunView* view = found == views.end() ? nullptr : found->second;
    if (view && (view->phase == RunPhase::pending || view->phase == RunPhase::running)) {
      ++submission.in_queue;
      submission.jobs_in_queue.insert(view->slurm.job);
    } else if (status.state == RunState::done) {
      ++submission.done;
    } else if (!input.sent_once ||
               !input.sent_once->contains({status.run.point, status.run.repeat})) {
      if (view && view->timed_out) needs.timed_out(status.run.point, view->minutes);
      submission.runs.push_back({status.run, why_again(status, view),
                                 view && view->slurm.job > 0 ? view->slurm.text() : ""});
    }
  }
  std::vector<ScheduledRun> later, runs = mapped(submission.runs, &RunToSend::run);
  submission.room = input.room;
  if (const std::size_t room = submission.room.elements; runs.size() > room) {
    later.assign(runs.begin() + static_cast<std::ptrdiff_t>(room), runs.end());
    runs.resize(room);
  }
  if (!plan.spec.programs.empty() && !input.setup.fallback.empty()) {
    throw usage_error("a program of your own has no backend to fall back to", "--fallback",
                      "leave it out");
  }
  const auto norm_arrays = [&](const std::vector<ScheduledRun>& some) {
    std::vector<Need> each;
    each.reserve(some.size());
    for (const ScheduledRun& run : some) {
      each.push_back(needs.of(run.point));
      if (input.setup.screen) each.back().add_minutes(kScreenMinutes, site);
    }
    return group_runs(plan.expansion.points, some, each, input.max_array_size);
  };
  for (const ScheduledRun& run : runs) {
    check_program_starts(plan.spec, site, plan.expansion.points[run.point]);
  }
  submission.arrays = norm_arrays(runs);
  for (const ScheduledRun& run : runs) {
    add(submission.expected, needs.of(run.point),
        make_shape(plan.expansion.points[run.point].layout));
  }
  submission.later = norm_arrays(later);
  for (JobArray& array : submission.later) array.name += "-later";
  return submission;
}

std::string points_line(const StudyPlan& plan, const ScheduledRun& run, const ScriptSetup& setup) {
  const PlannedPoint& planned = plan.expansion.points[run.point];
  std::vector<std::string> words = run_words(plan.spec, planned, run, setup.folder, setup.session);
  const bool resumes = planned.parameters.find("checkpoint_every") &&
                       !Settings(planned.parameters).flag("save_weights_only");
  if (resumes) {
    const fs::path kept =
        setup.folder / "slurm" / "runs" / planned.point.folder() / std::to_string(run.repeat);
    words.insert(words.end(), {"--run-dir=" + kept.string(), "--resume=latest"});
  }
  return line_of_words(words);
}

std::vector<Element> list_elements(const StudyPlan& plan, const std::vector<Resolved>& resolved,
                                   const JobArray& array) {
  std::vector<Element> elements;
  for (const ScheduledRun& run : array.runs) {
    const PlannedPoint& planned = plan.expansion.points[run.point];
    elements.push_back({plan.spec.name, plan.spec.workload, planned.point.text(),
                        planned.point.folder(), planned.parameters, run.repeat,
                        resolved[run.point].identity, resolved[run.point].data_hash});
  }
  return elements;
}

std::size_t send_submission(const Submission& submission, const Site& site, const StudyPlan& plan,
                            const std::vector<Resolved>& resolved, Journal& journal,
                            const SlurmCommands& slurm, bool collect,
                            const std::function<void(const std::string&)>& notify) {
  const ScriptSetup& setup = submission.setup;
  const Folder study(setup.folder);
  std::vector<std::string> scripts;  // all of them first: what cannot be asked for stops it here
  for (const JobArray& array : submission.arrays) {
    scripts.push_back(script_text(site, array, setup));
  }
  journal.begin(setup.session, plan.spec.where, site.where);
  // All of them before the first is sent: whoever is cut off in between knows what is missing.
  std::vector<std::pair<const JobArray*, std::vector<Element>>> later;
  for (const JobArray& array : submission.later) {
    later.emplace_back(&array, not_in_journal(list_elements(plan, resolved, array), journal));
  }
  for (std::size_t i = 0; i < submission.arrays.size(); ++i) {
    const JobArray& array = submission.arrays[i];
    study.replace_file(file_of_array(setup.session, array.name, ".points"),
                       whole_file(plan, array, setup));
    study.replace_file(file_of_array(setup.session, array.name, ".sbatch"), scripts[i]);
    journal.planned(setup.session, array, list_elements(plan, resolved, array));
  }
  for (const auto& [array, elements] : later) {
    if (!elements.empty()) journal.planned(setup.session, *array, elements, true);
  }
  std::set<std::int64_t> jobs = submission.jobs_in_queue;
  std::size_t sent = 0;
  for (const JobArray& array : submission.arrays) {
    const fs::path script = setup.folder / file_of_array(setup.session, array.name, ".sbatch");
    journal.sending(setup.session, array.name);
    const SbatchAnswer answer = slurm.submit(script, setup.folder, {}, job_name(array.name, setup));
    if (answer.job == 0) {
      if (answer.is_refused) journal.refused(setup.session, array.name, answer.why);
      if (!answer.is_refused || jobs.empty() || !is_refused_for_now(answer.why)) {
        throw_no_job(answer, script, site);
      }
      notify(fmt::format("Slurm takes no more now: {} left for a later call ({})",
                         runs_are(elements_in(submission.arrays) - sent + submission.left()),
                         answer.why));
      return sent;
    }
    journal.sent(setup.session, array.name, answer.job);
    jobs.insert(answer.job);
    sent += array.runs.size();
    notify(fmt::format("job {}: {} ({}), {}", answer.job, array.name, array.shape.text(),
                       counted(array.runs.size(), "element")));
  }
  if (collect && sent > 0 && submission.left() == 0) {
    send_collector(submission, site, jobs, slurm, notify);
  }
  return sent;
}

void save_scripts(const Submission& submission, const Site& site, const StudyPlan& plan,
                  const fs::path& folder, bool is_private) {
  ScriptSetup setup = submission.setup;
  setup.by_hand = folder;
  std::vector<std::string> scripts = mapped(
      submission.arrays, [&](const JobArray& array) { return script_text(site, array, setup); });
  is_private ? make_private_folder(folder) : make_folder(folder);
  for (std::size_t i = 0; i < submission.arrays.size(); ++i) {
    const JobArray& array = submission.arrays[i];
    replace_file(folder / (array.name + ".sbatch"), scripts[i]);
    replace_file(folder / (array.name + ".points"), whole_file(plan, array, setup));
  }
}

void find_unanswered(Journal& journal, const SlurmCommands& slurm) {
  std::vector<SentArray> open;
  for (const SentArray& array : journal.arrays()) {
    const bool is_open = array.job == 0 && array.called && !array.refused;
    if (is_open && !array.elements.empty()) open.push_back(array);
  }
  for (const SentArray& array : open) {
    ScriptSetup then;
    then.study = array.elements.front().study;
    then.session = array.session;
    const std::int64_t job = slurm.find_job(job_name(array.name, then));
    if (job > 0) journal.sent(array.session, array.name, job);
  }
}

std::string submission_text(const Submission& submission, const StudyPlan& plan) {
  std::string text = again_lines(submission, plan);
  std::size_t width = 5;
  for (const JobArray& array : submission.arrays) width = std::max(width, array.name.size());
  if (!submission.arrays.empty()) {
    text += fmt::format("{:<{}} {:>8} {:>5} {:>6} {:>13} {:>4} {:>10} {:>9} {:>9}  {}\n", "array",
                        width, "elements", "nodes", "ntasks", "cpus-per-task", "gpus", "limit",
                        "GPU-hours", "CPU-hours", "limit from");
  }
  for (const JobArray& array : submission.arrays) {
    const JobShape& shape = array.shape;
    text += fmt::format("{:<{}} {:>8} {:>5} {:>6} {:>13} {:>4} {:>10} {:>9.1f} {:>9.1f}  {}\n",
                        array.name, width, array.runs.size(), shape.nodes, shape.ntasks,
                        shape.cpus_per_task, shape.gpus, time_text(array.need.minutes),
                        array.gpu_hours(), array.cpu_hours(),
                        array.need.is_cut          ? "most_minutes"
                        : array.need.time_is_known ? "records"
                                                   : "site profile");
  }
  const std::size_t elements = elements_in(submission.arrays);
  text += fmt::format("{}: {}, {}: {}; {} done, {} in the queue\n", plan.spec.name,
                      counted(submission.arrays.size(), "array"), counted(elements, "element"),
                      cost_text(submission), runs_are(submission.done), submission.in_queue);
  if (const std::size_t left = submission.left(); left > 0) {
    text += fmt::format(
        "{} left for a later call, or for --wait: the site takes no more at a time ({})\n",
        runs_are(left), submission.room.by);
  }
  return text;
}

}  // namespace paceline
