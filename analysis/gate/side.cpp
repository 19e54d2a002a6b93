#include "analysis/gate/side.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "analysis/evidence/run.h"
#include "analysis/gate/render.h"
#include "analysis/study/comparison.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/facts/timing.h"
#include "results/names.h"

namespace paceline {

namespace {

// "AMD EPYC 7B13" and each kind of GPU, where known.
void add_machine(const RunRecord& record, std::set<std::string>& machines) {
  if (!record.provenance.cpu_model.empty()) machines.insert(record.provenance.cpu_model);
  for (const GpuFacts& gpu : record.gpus) {
    if (!gpu.name.empty()) machines.insert(gpu.name);
  }
}

double seconds(const Run& run, bool of_sample) {
  return of_sample ? 1 / *run.samples_per_second : *run.fit_seconds();
}

bool all_have(const std::vector<Run>& runs, const RunFact& fact) {
  return std::ranges::all_of(runs, [&](const Run& run) { return fact(run).has_value(); });
}

struct Group : EvidencePoint {
  Subject subject;
};

// Identifies a run. Two runs of one point may begin in the same second and differ only in results.
std::string run_id(const Run& run) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", run->study, run->session, run->workload,
                     run->point, run->repeat, run->provenance.started_at, run->status, run->build(),
                     run->provenance.cpu_model, run.fit_seconds().value_or(0));
}

std::string shared_note(const Side& side, const Side& other, const std::string& what) {
  return fmt::format("the {} has {} of the {} side in it: left out there", side.name, what,
                     other.name);
}

class SideBuilder {
 public:
  SideBuilder(const std::string& name, const Side& other) : other_(other) { side_.name = name; }

  Side make(Evidence evidence, const std::vector<Rejected>& rejected) {
    std::erase_if(evidence.runs, [&](const Run& run) { return is_shared(run); });
    if (evidence.older_builds > 0) {
      side_.notes.push_back(side_.name + ": " + older_builds_note(evidence.older_builds));
    }
    for (const Rejected& each : rejected) {
      side_.notes.push_back(fmt::format("{}: ignored record: {}", side_.name, each.reason));
    }
    if (side_.shared > 0) {
      side_.notes.push_back(shared_note(side_, other_, counted(side_.shared, "run")));
    }
    for (EvidencePoint& point :
         group_points(std::move(evidence.runs), EvidencePolicy::gate().point)) {
      groups_.push_back({{std::move(point)}, {}});
    }
    for (Group& group : groups_) describe(group);
    for (Group& group : groups_) add_samples(group);
    find_one_replica_groups();
    for (Group& group : groups_) add_serial_fraction(group);
    for (Group& group : groups_) {
      group.subject.members = std::move(group.runs);
      side_.subjects.push_back(std::move(group.subject));
    }
    return std::move(side_);
  }

 private:
  bool is_shared(const Run& run) {
    const std::string id = run_id(run);
    const bool is_shared = other_.runs.contains(id);
    side_.shared += is_shared ? 1 : 0;
    if (!is_shared) side_.runs.insert(id);
    return is_shared;
  }

  // Who made the point, and what became of its runs.
  void describe(Group& group) {
    Subject& subject = group.subject;
    const Run& first = group.first();
    subject.name = unique_name(*first.record);
    subject.workload = first->workload;
    subject.parameters = first->parameters;
    for (const std::vector<Run>* runs : {&group.runs, &group.aside, &group.failed}) {
      for (const Run& run : *runs) subject.studies.insert(run->study);
    }
    subject.studies.erase("");
    subject.runs = group.runs.size();
    subject.left_out = group.aside.size();
    subject.lost = group.lost;
    subject.not_ended = group.failed.size();
    for (const Run& run : group.failed) {
      const bool is_first = &run == &group.failed.front();
      if (run.effect == Effect::failed || is_first) subject.why = run.reason->text(run);
    }
    for (const Run& run : group.runs) {
      add_machine(*run.record, side_.machines);
      if (!run->build().empty()) side_.builds.insert(run->build());
    }
    if (group.tainted) {
      side_.notes.push_back(
          fmt::format("{}: {} has only oversubscribed runs", side_.name, subject.name));
    }
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

  void add_samples(Group& group) {
    Subject& subject = group.subject;
    const bool all_known = std::ranges::all_of(
        group.runs, [](const Run& run) { return run.samples() && run.goal.empty(); });
    add_times(group);
    for (const Run& run : group.runs) {
      subject.sequential = subject.sequential || run->flags.sequential;
      if (run.is_busy()) {
        ++subject.busy;
        subject.busy_why = run->provenance.machine_load.why;
      }
      if (all_known) {
        subject.work += *run.samples() / static_cast<double>(group.runs.size());
      }
      if (run.phase_sum->step > 0 && run->layout.gpus > 1) {
        add_sample(subject, Quantity::communication, run,
                   run.phase_sum->communication / run.phase_sum->step);
      }
      // A run that ends early at its goal has a higher mean loss, however well it learns.
      if (const auto loss = run.mean_loss(); loss && run.goal.empty()) {
        add_sample(subject, Quantity::loss, run, *loss);
      }
      if (run->quality.test_accuracy)
        add_sample(subject, Quantity::accuracy, run, *run->quality.test_accuracy);
    }
  }

  static void add_times(Group& group) {
    Subject& subject = group.subject;
    for (const Run& run : group.runs) {
      const auto& program = run->provenance.program;
      const double whole = program ? program->seconds.value_or(0) : 0;
      subject.run_seconds +=
          run.fit_seconds().value_or(whole) / static_cast<double>(group.runs.size());
    }
    if (!group.runs.empty()) subject.unit = find_unit(group.runs.front());
    const bool has_rates = all_have(group.runs, &Run::samples_per_second);
    subject.is_rated = !all_have(group.runs, &Run::fit_seconds) ||
                       (has_rates && !group.runs.empty() && subject.unit.is_own());
    if (has_rates) {
      for (const Run& run : group.runs) {
        subject.rated.push_back({seconds(run, true), run->session, run->round, run.is_busy()});
      }
    }
    if (subject.is_rated) {
      if (!subject.rated.empty()) subject.samples[Quantity::time] = subject.rated;
      return;
    }
    for (const Run& run : group.runs) {
      add_sample(subject, Quantity::time, run, seconds(run, false));
    }
  }

  static void add_sample(Subject& subject, Quantity quantity, const Run& run, double value) {
    subject.samples[quantity].push_back({value, run->session, run->round, run.is_busy()});
  }

  static bool is_base_run(const Run& single, const Run& run) {
    const auto known = single.samples(), samples = run.samples();
    return (single.backend == run.backend || single.backend == lone_backend()) && known &&
           samples && std::abs(*known / *samples - 1) < 0.01;
  }

  void find_one_replica_groups() {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const auto& runs = groups_[i].runs;
      if (runs.empty() || runs.front()->layout.gpus != 1) continue;
      one_replica_groups_[runs.front().key(MatchRule::base())].push_back(i);
    }
  }

  // Compares each run with the base's mean in its round, else with the base's mean.
  void add_serial_fraction(Group& group) {
    if (group.runs.empty() || group.runs.front()->layout.gpus < 2) return;
    const Run& run = group.runs.front();
    const Group* base = nullptr;
    for (const std::size_t i : one_replica_groups_[run.key(MatchRule::base())]) {
      const Run& single = groups_[i].runs.front();
      if (!is_base_run(single, run)) continue;
      if (!base || single.backend == run.backend) base = &groups_[i];
    }
    if (!base) return;
    const bool rated = base->subject.is_rated || group.subject.is_rated;
    if (rated && (base->subject.rated.empty() || group.subject.rated.empty())) return;
    group.subject.base = base->subject.name;
    for (const Run& each : group.runs) {
      const double speed_up = base_time(*base, each, rated) / seconds(each, rated);
      add_sample(group.subject, Quantity::serial_fraction, each,
                 karp_flatt(speed_up, each->layout.gpus));
      Sample& sample = group.subject.samples[Quantity::serial_fraction].back();
      sample.is_busy = sample.is_busy || is_base_busy(*base, each);
    }
  }

  static bool is_base_busy(const Group& base, const Run& run) {
    return std::ranges::any_of(base.runs, [&](const Run& single) {
      return single.is_busy() && run->round > 0 && single->round == run->round &&
             single->session == run->session;
    });
  }

  static double base_time(const Group& base, const Run& run, bool rated) {
    double sum = 0, count = 0, all = 0;
    for (const Run& single : base.runs) {
      all += seconds(single, rated) / static_cast<double>(base.runs.size());
      if (run->round < 1 || single->session != run->session || single->round != run->round) {
        continue;
      }
      sum += seconds(single, rated);
      ++count;
    }
    return count > 0 ? sum / count : all;
  }

  const Side& other_;
  Side side_;
  std::vector<Group> groups_;
  std::set<std::string> names_;
  std::unordered_map<PointKey, std::vector<std::size_t>> one_replica_groups_;  // of a base's key
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
  const auto it = std::ranges::find(subjects, subject, &Subject::name);
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
  return SideBuilder(name, other).make(collect(content, EvidencePolicy::gate()), content.rejected);
}

Side make_side(const std::string& name, std::vector<Run> runs, const Side& other) {
  judge(runs, EvidencePolicy::gate());
  return SideBuilder(name, other).make({std::move(runs), {}, 0, 0}, {});
}

namespace {

// Each size of a collective is a benchmark, and each of its records a run: a mean of calls has no
// spread of its own.
Side collectives_side(const std::string& name, const StoreContent& content, const Side& other) {
  Side side;
  side.name = name;
  for (const Record& record : content.records) {
    if (!record->is_collective()) continue;
    const CollectiveFacts& collective = *record->collective;
    const auto& imported = record->provenance.imported;
    const std::string run =
        imported ? imported->xxh3 + collective.placement : record->session + record->point;
    side.runs.insert(run);
    if (other.runs.contains(run)) {
      ++side.shared;
      continue;
    }
    side.machines.insert(record->provenance.hardware);
    side.builds.insert(record->provenance.libraries);
    const std::vector<std::string> words = {collective.operation, collective.placement,
                                            collective.dtype, record->parameters.text()};
    for (const CollectiveRow& row : collective.rows) {
      std::vector<std::string> all = words;
      all.push_back(row.label);
      all.push_back(format_bytes(static_cast<double>(row.bytes)));
      std::erase(all, "");
      const std::string title = join(all, " ");
      auto subject = std::ranges::find(side.subjects, title, &Subject::name);
      if (subject == side.subjects.end()) {
        subject = side.subjects.emplace(subject);
        subject->name = title;
      }
      ++subject->runs;
      subject->samples[Quantity::time].push_back({row.seconds, record->session, 0});
    }
  }
  side.machines.erase("");
  side.builds.erase("");
  return side;
}

}  // namespace

Side read_side(const std::string& name, const std::vector<std::filesystem::path>& places,
               const Side& other, StoreContent* content) {
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
  if (!stores.empty()) {
    StoreContent loaded = load_stores(stores);
    append(side, load_side(name, loaded, other));
    append(side, collectives_side(name, loaded, other));
    if (content != nullptr) *content = std::move(loaded);
  }
  const bool has_runs = std::any_of(side.subjects.begin(), side.subjects.end(),
                                    [](const Subject& s) { return s.runs > 0 || s.not_ended > 0; });
  if (has_runs) return side;
  const auto names = mapped(places, [](const auto& place) { return place.string(); });
  if (side.shared > 0) {
    throw usage_error(fmt::format("{} and {} are the same runs", name, other.name),
                      join(names, ", "), "name the runs of another build or day");
  }
  const bool disturbed = std::ranges::any_of(side.subjects, &Subject::left_out);
  throw input_error(fmt::format("the {} has no run to compare", name), join(names, ", "),
                    !side.notes.empty() ? side.notes.front()
                    : disturbed ? "all of them are resumed, throttled or traced: run them again"
                                : "run the study first, or name another folder");
}

}  // namespace paceline
