#include "analysis/gate/side.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "analysis/gate/render.h"
#include "analysis/study/comparison.h"
#include "analysis/study/run.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "results/names.h"

namespace paceline {

namespace {

// Whether a point may differ in this parameter from the one-replica point that is its base.
bool differs_by_size(std::string_view name) {
  return has_role(name, Role::layout) || has_role(name, Role::threads) ||
         find_parameter(name)->follows_size;
}

enum class Scope { point, series };  // a series: points that are alike but for their size

std::string parameters_text(const Point& parameters, Scope scope) {
  std::string text;
  for (const auto& [name, value] : parameters.values()) {
    if (has_role(name, Role::replication) || !find_parameter(name)->identity()) continue;
    if (scope == Scope::series && differs_by_size(name)) continue;
    text += name + '=' + to_text(value) + ',';
  }
  return text;
}

// Geometric mean of the training losses of all epochs; empty without any, NaN if one is NaN.
std::optional<double> mean_loss(const std::vector<EpochFacts>& epochs) {
  double sum = 0;
  std::size_t count = 0;
  for (const EpochFacts& epoch : epochs) {
    if (!epoch.train_loss) continue;
    if (std::isnan(*epoch.train_loss)) return std::nan("");
    sum += std::log(std::max(*epoch.train_loss, 1e-12));
    ++count;
  }
  return count > 0 ? std::optional(std::exp(sum / static_cast<double>(count))) : std::nullopt;
}

// "AMD EPYC 7B13" and each kind of GPU, where known.
void add_machine(const RunRecord& record, std::set<std::string>& machines) {
  if (!record.provenance.cpu_model.empty()) machines.insert(record.provenance.cpu_model);
  for (const GpuFacts& gpu : record.gpus) {
    if (!gpu.name.empty()) machines.insert(gpu.name);
  }
}

struct Member {
  Run run;
  std::optional<double> loss;

  double seconds(bool of_sample) const {
    return of_sample ? 1 / *run.samples_per_second : *run->timing.fit_seconds;
  }
  bool diverged() const { return loss && std::isnan(*loss); }
};

// Why the numbers of a run do not count; empty if it ended well.
std::string describe_failure(const Member& member) {
  const Run& run = member.run;
  if (run->status != "completed") return run->reason.empty() ? run->status : run->reason;
  if (member.diverged()) return "its loss is not a number";
  if (!run.goal.empty() && !run.goal_reached) return "it did not reach its goal, " + run.goal;
  return "";
}

bool all_have(const std::vector<Member>& members, const RunFact& fact) {
  return std::all_of(members.begin(), members.end(),
                     [&](const Member& member) { return fact(member.run).has_value(); });
}

std::string data_name(const Run& run) {
  for (const auto& [name, value] : run.origin) {
    if (name == "data") return value;
  }
  return "";
}

struct Group {
  Subject subject;
  std::vector<Member> members;     // runs whose numbers count
  std::vector<Run> ended, failed;  // ended well, whether or not their numbers count

  // Whether no attempt of a failed run ended well. Of its failed attempts only the last is lost.
  bool is_lost(const Run& run) const {
    return std::none_of(ended.begin(), ended.end(),
                        [&](const Run& other) { return is_retry_of(other, run); }) &&
           std::none_of(failed.begin(), failed.end(), [&](const Run& other) {
             return other->attempt > run->attempt && is_retry_of(other, run);
           });
  }
};

// Identifies a run. Two runs of one point may begin in the same second and differ only in results.
std::string run_id(const Run& run) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", run->study, run->session, run->workload,
                     run->point, run->repeat, run->provenance.started_at, run->status, run->build(),
                     run->provenance.cpu_model, run->timing.fit_seconds.value_or(0));
}

std::string counted_runs(std::size_t count) {
  return counted(count, "run");
}

std::string shared_note(const Side& side, const Side& other, const std::string& what) {
  return fmt::format("the {} has {} of the {} side in it: left out there", side.name, what,
                     other.name);
}

class SideBuilder {
 public:
  SideBuilder(const std::string& name, const Side& other) : other_(other) { side_.name = name; }

  Side make(const StoreContent& content) {
    NewestRuns newest = newest_runs(content);
    for (Run& run : newest.runs) add(std::move(run));
    if (newest.older > 0) {
      side_.notes.push_back(side_.name + ": " + older_builds_note(newest.older));
    }
    for (const Rejected& rejected : content.rejected) {
      side_.notes.push_back(fmt::format("{}: ignored record: {}", side_.name, rejected.reason));
    }
    if (side_.shared > 0) {
      side_.notes.push_back(shared_note(side_, other_, counted_runs(side_.shared)));
    }
    for (Group& group : groups_) add_samples(group);
    find_one_replica_groups();
    for (Group& group : groups_) add_serial_fraction(group);
    for (Group& group : groups_) side_.subjects.push_back(std::move(group.subject));
    return std::move(side_);
  }

 private:
  void add(Run run) {
    const RunRecord& record = *run.record;
    Member member{std::move(run), mean_loss(record.quality.epochs)};
    const std::string id = run_id(member.run);
    if (other_.runs.contains(id)) {
      ++side_.shared;
      return;
    }
    side_.runs.insert(id);
    Group& group = find_group(record);
    Subject& subject = group.subject;
    if (const std::string why = describe_failure(member); !why.empty()) {
      ++subject.not_ended;
      const bool preempted = member.run->status == "preempted";
      if (!preempted || group.failed.empty()) subject.why = why;
      if (!preempted) group.failed.push_back(std::move(member.run));
      return;
    }
    group.ended.push_back(member.run);
    if (member.run->flags.resumed || member.run->flags.throttled || member.run->flags.traced) {
      ++subject.left_out;
      return;
    }
    add_machine(record, side_.machines);
    if (!member.run->build().empty()) side_.builds.insert(member.run->build());
    group.members.push_back(std::move(member));
  }

  Group& find_group(const RunRecord& record) {
    const Point parameters = record.parameters;
    const std::string key =
        record.workload + '|' + record.kind + '|' + parameters_text(parameters, Scope::point);
    const auto [it, first] = index_.emplace(key, groups_.size());
    if (first) {
      groups_.emplace_back();
      groups_.back().subject.name = unique_name(record);
      groups_.back().subject.workload = record.workload;
      groups_.back().subject.parameters = parameters;
    }
    if (!record.study.empty()) groups_[it->second].subject.studies.insert(record.study);
    return groups_[it->second];
  }

  // Points of two studies may have the same name.
  std::string unique_name(const RunRecord& record) {
    const std::string name = subject_name(record);
    if (names_.insert(name).second) return name;
    const std::string of_study = fmt::format("{} of {}", name, record.study);
    if (names_.insert(of_study).second) return of_study;
    for (int number = 2;; ++number) {
      const std::string numbered = fmt::format("{} ({})", of_study, number);
      if (names_.insert(numbered).second) return numbered;
    }
  }

  // Leaves out oversubscribed runs if there are others, and takes the samples of the rest.
  void add_samples(Group& group) {
    Subject& subject = group.subject;
    const auto is_clean = [](const Member& member) { return !member.run->flags.oversubscribed; };
    const bool any_clean = std::any_of(group.members.begin(), group.members.end(), is_clean);
    if (any_clean) {
      subject.left_out +=
          std::erase_if(group.members, [&](const Member& m) { return !is_clean(m); });
    } else if (!group.members.empty()) {
      side_.notes.push_back(
          fmt::format("{}: {} has only oversubscribed runs", side_.name, subject.name));
    }
    subject.runs = group.members.size();
    subject.lost =
        static_cast<std::size_t>(std::count_if(group.failed.begin(), group.failed.end(),
                                               [&](const Run& run) { return group.is_lost(run); }));
    const bool all_known =
        std::all_of(group.members.begin(), group.members.end(), [](const Member& member) {
          return member.run->throughput.samples && member.run.goal.empty();
        });
    add_times(group);
    for (const Member& member : group.members) {
      const Run& run = member.run;
      subject.sequential = subject.sequential || run->flags.sequential;
      if (run.is_busy()) {
        ++subject.busy;
        subject.busy_why = run->provenance.machine_load.why;
      }
      if (all_known) {
        subject.work += *run->throughput.samples / static_cast<double>(group.members.size());
      }
      if (const std::string data = data_name(run); !data.empty()) subject.data.insert(data);
      if (run.phase_sum.step > 0 && run->layout.gpus > 1) {
        add_sample(subject, Quantity::communication, run,
                   run.phase_sum.communication / run.phase_sum.step);
      }
      // A run that ends early at its goal has a higher mean loss, however well it learns.
      if (member.loss && run.goal.empty()) add_sample(subject, Quantity::loss, run, *member.loss);
      if (run->quality.test_accuracy)
        add_sample(subject, Quantity::accuracy, run, *run->quality.test_accuracy);
    }
  }

  static void add_times(Group& group) {
    Subject& subject = group.subject;
    for (const Member& member : group.members) {
      const auto& program = member.run->provenance.program;
      const double whole = program ? program->seconds.value_or(0) : 0;
      subject.run_seconds += member.run->timing.fit_seconds.value_or(whole) /
                             static_cast<double>(group.members.size());
    }
    subject.is_rated = !all_have(group.members, &Run::fit_seconds);
    if (!group.members.empty()) subject.unit = find_unit(group.members.front().run);
    if (all_have(group.members, &Run::samples_per_second)) {
      for (const Member& member : group.members) {
        subject.rated.push_back(
            {member.seconds(true), member.run->session, member.run->round, member.run.is_busy()});
      }
    }
    if (subject.is_rated) {
      if (!subject.rated.empty()) subject.samples[Quantity::time] = subject.rated;
      return;
    }
    for (const Member& member : group.members) {
      add_sample(subject, Quantity::time, member.run, member.seconds(false));
    }
  }

  static void add_sample(Subject& subject, Quantity quantity, const Run& run, double value) {
    subject.samples[quantity].push_back({value, run->session, run->round, run.is_busy()});
  }

  // The same for a point and for the one-replica point that is its base.
  static std::string series_key(const Run& run) {
    const double cpus = run.replicas_are_cores()
                            ? run.cpus_per_replica().value_or(0)
                            : static_cast<double>(run->layout.cpus_per_task.value_or(0));
    return fmt::format("{}|{}|{:g}|{}", run->workload, run->kind, cpus,
                       parameters_text(run->parameters, Scope::series));
  }

  static bool is_base_run(const Run& single, const Run& run) {
    const auto known = single.samples(), samples = run.samples();
    return (single.backend == run.backend || single.backend == lone_backend()) && known &&
           samples && std::abs(*known / *samples - 1) < 0.01;
  }

  void find_one_replica_groups() {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const auto& members = groups_[i].members;
      if (members.empty() || members.front().run->layout.gpus != 1) continue;
      one_replica_groups_[series_key(members.front().run)].push_back(i);
    }
  }

  // Compares each run with the base's mean in its round, else with the base's mean.
  void add_serial_fraction(Group& group) {
    if (group.members.empty() || group.members.front().run->layout.gpus < 2) return;
    const Run& run = group.members.front().run;
    const Group* base = nullptr;
    for (const std::size_t i : one_replica_groups_[series_key(run)]) {
      const Run& single = groups_[i].members.front().run;
      if (!is_base_run(single, run)) continue;
      if (!base || single.backend == run.backend) base = &groups_[i];
    }
    if (!base) return;
    const bool rated = base->subject.is_rated || group.subject.is_rated;
    if (rated && (base->subject.rated.empty() || group.subject.rated.empty())) return;
    group.subject.base = base->subject.name;
    for (const Member& member : group.members) {
      const double speed_up = base_time(*base, member.run, rated) / member.seconds(rated);
      add_sample(group.subject, Quantity::serial_fraction, member.run,
                 karp_flatt(speed_up, member.run->layout.gpus));
      Sample& sample = group.subject.samples[Quantity::serial_fraction].back();
      sample.is_busy = sample.is_busy || is_base_busy(*base, member.run);
    }
  }

  static bool is_base_busy(const Group& base, const Run& run) {
    return std::any_of(base.members.begin(), base.members.end(), [&](const Member& member) {
      return member.run.is_busy() && run->round > 0 && member.run->round == run->round &&
             member.run->session == run->session;
    });
  }

  static double base_time(const Group& base, const Run& run, bool rated) {
    double sum = 0, count = 0, all = 0;
    for (const Member& member : base.members) {
      all += member.seconds(rated) / static_cast<double>(base.members.size());
      if (run->round < 1 || member.run->session != run->session ||
          member.run->round != run->round) {
        continue;
      }
      sum += member.seconds(rated);
      ++count;
    }
    return count > 0 ? sum / count : all;
  }

  const Side& other_;
  Side side_;
  std::vector<Group> groups_;
  std::unordered_map<std::string, std::size_t> index_;
  std::set<std::string> names_;
  std::unordered_map<std::string, std::vector<std::size_t>>
      one_replica_groups_;  // groups by series
};

void append(Side& side, Side more) {
  for (Subject& subject : more.subjects) {
    Subject* known = nullptr;
    for (Subject& mine : side.subjects) {
      if (subject.workload.empty() && mine.workload.empty() && mine.name == subject.name) {
        known = &mine;
      }
    }
    if (!known) {
      side.subjects.push_back(std::move(subject));
      continue;
    }
    known->runs += subject.runs;
    known->busy += subject.busy;
    known->sequential = known->sequential || subject.sequential;
    known->left_out += subject.left_out;
    known->not_ended += subject.not_ended;
    known->lost += subject.lost;
    if (!subject.why.empty()) known->why = subject.why;
    for (auto& [quantity, samples] : subject.samples) {
      auto& all = known->samples[quantity];
      all.insert(all.end(), samples.begin(), samples.end());
    }
  }
  side.machines.merge(more.machines);
  side.builds.merge(more.builds);
  side.runs.merge(more.runs);
  side.shared += more.shared;
  side.notes.insert(side.notes.end(), more.notes.begin(), more.notes.end());
}

}  // namespace

const Subject* Side::find(const std::string& subject) const {
  const auto it = std::find_if(subjects.begin(), subjects.end(),
                               [&](const Subject& mine) { return mine.name == subject; });
  return it == subjects.end() ? nullptr : &*it;
}

std::string subject_name(const std::string& study, const std::string& workload,
                         const Point& parameters, const std::string& point) {
  const std::string program = name_of_program(parameters.text("program").value_or(""));
  const bool is_own = !program.empty() && workload == kCommandWorkload;
  const bool is_in_point = ("," + point).find(",program=") != std::string::npos;
  std::vector<std::string> words = {is_own ? study : workload};
  if (words.front() != program && !is_in_point) words.push_back(program);
  words.push_back(point);
  std::erase(words, "");
  return join(words, " ");
}

std::string subject_name(const RunRecord& record) {
  const Point parameters = record.parameters;
  std::string point = record.point;
  if (point.empty()) {
    Point shown;
    for (const auto& [name, value] : parameters.values()) {
      if (has_role(name, Role::layout)) shown.set(name, value);
    }
    point = shown.text();
  }
  return subject_name(record.study, record.workload, parameters, point);
}

Side load_side(const std::string& name, const StoreContent& content, const Side& other) {
  return SideBuilder(name, other).make(content);
}

Side read_side(const std::string& name, const std::vector<std::filesystem::path>& places,
               const Side& other) {
  Side side;
  side.name = name;
  std::vector<std::filesystem::path> stores;
  for (const std::filesystem::path& place : places) {
    const auto files = google_benchmark_files(place);
    if (files.empty()) stores.push_back(place);
    for (const auto& file : files) {
      Side more = read_google_benchmark(name, file);
      if (!more.runs.empty() && other.runs.contains(*more.runs.begin())) {
        side.notes.push_back(shared_note(side, other, file.string()));
        ++side.shared;
        continue;
      }
      append(side, std::move(more));
    }
  }
  if (!stores.empty()) append(side, load_side(name, load_stores(stores), other));
  const bool has_runs = std::any_of(side.subjects.begin(), side.subjects.end(),
                                    [](const Subject& s) { return s.runs > 0 || s.not_ended > 0; });
  if (has_runs) return side;
  std::vector<std::string> names;
  for (const auto& place : places) names.push_back(place.string());
  if (side.shared > 0) {
    throw Error(ErrorKind::usage, fmt::format("{} and {} are the same runs", name, other.name),
                join(names, ", "), "name the runs of another build or day");
  }
  const bool disturbed = std::any_of(side.subjects.begin(), side.subjects.end(),
                                     [](const Subject& s) { return s.left_out > 0; });
  throw Error(ErrorKind::input, fmt::format("the {} has no run to compare", name),
              join(names, ", "),
              !side.notes.empty() ? side.notes.front()
              : disturbed         ? "all of them are resumed, throttled or traced: run them again"
                                  : "run the study first, or name another folder");
}

}  // namespace paceline
