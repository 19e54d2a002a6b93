#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "results/archive/study_archive.h"
#include "results/run_record.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

// Equal of two records of one run, whatever attempt it is in its folder, and whether or not the
// samples of its steps are still beside it.
std::string compute_fingerprint(const std::string& folder, Json json) {
  for (const char* of_its_place : {"attempt", "samples"}) json.erase(of_its_place);
  return folder + "/" + hash_hex(json_text(json));
}

class Merger {
 public:
  Merger(const std::vector<StudyArchive>& archives, const fs::path& target, bool dry_run)
      : target_(study_path(target)), dry_run_(dry_run) {
    if (path_exists(target_)) {
      records_ = load_study(target_).records;
      plan_ = read_expected_runs(target_);
    }
    if (!records_.empty() || plan_) check_study(archives, summary().study);
    for (const Record& record : records_) {
      const fs::path file = record.where();
      const Json json = Record(record).json();  // of a copy, which does not keep it
      known_.insert(compute_fingerprint(file.parent_path().filename().string(), json));
      names_.insert(file);
    }
    for (const StudyArchive& archive : archives) add_plan(archive);
  }

  MergedArchive add_runs(const fs::path& file) {
    MergedArchive merged{file.string(), 0, 0, 0};
    read_archive(file, [&](const ArchivedRun& run) {
      ++merged.runs;
      if (!known_.insert(compute_fingerprint(run.folder, run.record.json())).second) {
        ++merged.known;
        return;
      }
      const fs::path name =
          target_ / run.folder / fmt::format("{}.{}.json", run.record->repeat, run.record->attempt);
      if (!write(run, name)) ++merged.renumbered;
      records_.emplace_back(*run.record, name);  // without its JSON
    });
    return merged;
  }

  StudySummary finish(const std::string& spec) const {
    if (!dry_run_ && plan_grew_) write_expected_runs(target_, *plan_);
    if (!dry_run_ && !spec.empty()) Folder(target_).create_file(kSpecFile, spec);
    return summary();
  }

 private:
  StudySummary summary() const { return summarize(plan_, records_, target_.string()); }

  // The points that any site planned. A plan is of one workload.
  void add_plan(const StudyArchive& archive) {
    if (!archive.plan) return;
    const ExpectedRuns& other = *archive.plan;
    if (!plan_) {
      plan_ = ExpectedRuns{other.study, other.workload, 0, {}, other.programs, other.seen_at};
    }
    if (other.workload != plan_->workload) {
      throw input_error("the plan is of workload " + other.workload + ", not " + plan_->workload,
                        archive.file.string(), "merge it into a folder of its own");
    }
    std::set<std::string> there;
    for (const Point& point : plan_->points) there.insert(point.text());
    for (const Point& point : other.points) {
      if (!there.insert(point.text()).second) continue;
      plan_->points.push_back(point);
      plan_grew_ = true;
    }
    plan_grew_ = plan_grew_ || other.repeats > plan_->repeats;
    plan_->repeats = std::max(plan_->repeats, other.repeats);
  }

  // False: the name is another run's, and this one is the next attempt.
  bool write(const ArchivedRun& run, const fs::path& name) {
    const bool is_free = names_.insert(name).second;
    if (dry_run_) return is_free;
    const Folder study(target_);
    if (is_free && write_as(study, run, name)) return true;
    Store(study).write(run.folder, run.record->repeat, run.record.json(), run.samples);
    return false;
  }

  // An interrupted merge leaves step samples without their record.
  static bool write_as(const Folder& study, const ArchivedRun& run, const fs::path& file) {
    const fs::path sidecar = samples_file(file), name = file.lexically_relative(study.path()),
                   samples = samples_file(name);
    if (run.samples.empty()) return !path_exists(sidecar) && study.create_file(name, run.text);
    const bool is_new = study.create_file(samples, run.samples);
    if (!is_new && hash_of_file(sidecar) != hash_hex(run.samples)) return false;
    if (study.create_file(name, run.text)) return true;
    if (is_new) study.remove(samples);
    return false;
  }

  fs::path target_;
  bool dry_run_, plan_grew_ = false;
  std::vector<Record> records_;
  std::optional<ExpectedRuns> plan_;
  std::set<std::string> known_;  // fingerprints
  std::set<fs::path> names_;
};

}  // namespace

void check_study(const std::vector<StudyArchive>& archives, const std::string& study) {
  for (const StudyArchive& archive : archives) {
    if (archive.study == study) continue;
    throw input_error("the archive is of study " + archive.study + ", not " + study,
                      archive.file.string(), "merge it into a folder of its own");
  }
}

MergedStudy merge_archives(const std::vector<StudyArchive>& archives, const fs::path& target,
                           bool dry_run) {
  Merger merger(archives, target, dry_run);
  MergedStudy merged;
  std::string spec;
  for (const StudyArchive& archive : archives) {
    merged.archives.push_back(merger.add_runs(archive.file));
    if (spec.empty()) spec = archive.spec;
  }
  merged.summary = merger.finish(spec);
  return merged;
}

}  // namespace paceline
