#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "results/archive/study_archive.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

// Equal of two records of one run, whatever attempt it is in its folder.
std::string compute_fingerprint(const Record& record) {
  Json json = record.json();
  json.erase("attempt");
  if (json.contains("samples") && json["samples"].is_object()) json["samples"].erase("file");
  return hash_hex(json_text(json));
}

class Merger {
 public:
  Merger(const fs::path& target, bool dry_run) : target_(study_path(target)), dry_run_(dry_run) {
    if (path_exists(target_)) {
      records_ = load_study(target_).records;
      plan_ = read_wanted(target_);
    }
    for (std::size_t i = 0; i < records_.size(); ++i) {
      const fs::path file = records_[i].where();
      known_[{file.parent_path().filename().string(), records_[i]->repeat}].unread.push_back(i);
      names_.insert(file);
    }
  }

  void check(const std::vector<StudyArchive>& archives) const {
    if (!records_.empty() || plan_) {
      check_study(archives, summarize(plan_, records_, target_.string()).study);
    }
    check_workload(archives);
    double bytes = 0;
    for (const StudyArchive& each : archives) bytes += static_cast<double>(each.manifest().bytes());
    fs::path place = fs::absolute(target_);
    std::error_code none;
    while (!fs::exists(place, none)) place = place.parent_path();
    const auto space = fs::space(place, none);
    if (none || bytes < static_cast<double>(space.available)) return;
    throw Error(ErrorKind::input,
                "the archives unpack to " + format_bytes(bytes) + ", more than is free",
                target_.string(), "free some space or choose another folder");
  }

  // A plan is of one workload.
  void check_workload(const std::vector<StudyArchive>& archives) const {
    std::string workload = plan_ ? plan_->workload : "";
    for (const StudyArchive& each : archives) {
      if (!each.plan()) continue;
      if (workload.empty()) workload = each.plan()->workload;
      if (workload == each.plan()->workload) continue;
      throw Error(ErrorKind::input,
                  "the plan is of workload " + each.plan()->workload + ", not " + workload,
                  each.file().string(), "merge it into a folder of its own");
    }
  }

  MergedArchive add(const StudyArchive& archive) {
    MergedArchive merged{archive.file().string(), 0, 0, 0};
    archive.each_run([&](const ArchivedRun& run) {
      ++merged.runs;
      auto& known = known_[{run.folder, run.record->repeat}];
      for (const std::size_t i : std::exchange(known.unread, {})) {
        known.fingerprints.insert(compute_fingerprint(records_[i]));
      }
      if (!known.fingerprints.insert(compute_fingerprint(run.record)).second) {
        ++merged.known;
        return;
      }
      const fs::path name = target_ / run.folder / file_name(run.record.where());
      merged.renumbered += write(run, name) ? 0 : 1;
      records_.emplace_back(*run.record, name);  // without its JSON
    });
    add_plan(archive);
    return merged;
  }

  StudySummary finish(const std::string& spec) {
    if (!dry_run_ && plan_grew_) write_wanted(target_, *plan_);
    if (!dry_run_ && !spec.empty()) create_file(target_ / kSpecFile, spec);
    return summarize(plan_, records_, target_.string());
  }

 private:
  struct KnownRuns {
    std::vector<std::size_t> unread;  // records of the folder
    std::set<std::string> fingerprints;
  };

  static std::string file_name(const std::string& where) {
    return where.substr(where.rfind('/') + 1);
  }

  // False: the name is another run's, and this one is the next attempt.
  bool write(const ArchivedRun& run, const fs::path& name) {
    const bool is_free = names_.insert(name).second;
    if (dry_run_) return is_free;
    make_folder(name.parent_path());
    if (is_free && write_as(run, name)) return true;
    Store(target_).write(run.folder, run.record->repeat, run.record.json(), run.samples);
    return false;
  }

  // An interrupted merge leaves step samples without their record.
  static bool write_as(const ArchivedRun& run, const fs::path& name) {
    std::error_code none;
    const fs::path sidecar = samples_file(name);
    if (run.samples.empty()) return !fs::exists(sidecar, none) && create_file(name, run.text);
    const bool is_new = create_file(sidecar, run.samples);
    if (!is_new && hash_of_file(sidecar) != hash_hex(run.samples)) return false;
    if (create_file(name, run.text)) return true;
    if (is_new) fs::remove(sidecar, none);
    return false;
  }

  // The points that any site planned.
  void add_plan(const StudyArchive& archive) {
    if (!archive.plan()) return;
    const ExpectedRuns& other = *archive.plan();
    if (!plan_) plan_ = ExpectedRuns{other.study, other.workload, 0, {}, {}};
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

  fs::path target_;
  bool dry_run_, plan_grew_ = false;
  std::vector<Record> records_;
  std::optional<ExpectedRuns> plan_;
  std::map<std::pair<std::string, int>, KnownRuns> known_;  // by point folder and repeat
  std::set<fs::path> names_;
};

}  // namespace

void check_study(const std::vector<StudyArchive>& archives, const std::string& study) {
  for (const StudyArchive& archive : archives) {
    if (archive.manifest().study == study) continue;
    throw Error(ErrorKind::input,
                "the archive is of study " + archive.manifest().study + ", not " + study,
                archive.file().string(), "merge it into a folder of its own");
  }
}

MergedStudy merge_archives(const std::vector<StudyArchive>& archives, const fs::path& target,
                           bool dry_run) {
  Merger merger(target, dry_run);
  merger.check(archives);
  MergedStudy merged;
  std::string spec;
  for (const StudyArchive& archive : archives) {
    merged.archives.push_back(merger.add(archive));
    if (spec.empty()) spec = archive.spec();
  }
  merged.summary = merger.finish(spec);
  return merged;
}

}  // namespace paceline
