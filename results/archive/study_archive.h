// A study in one file: STUDY/manifest.json, then its plan, its spec and its runs. What an archive
// holds is checked against the manifest before anybody sees it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "results/expected_runs.h"
#include "results/store.h"

namespace paceline {

// What of a study is there and what is not: for its archive, and after a merge.

struct MissingRuns {
  std::string point;         // what varies in the plan: "gpus=2,backend=mpi"
  std::vector<int> repeats;  // without a completed run, on whatever machine
};

struct StudySummary {
  std::string study;
  std::size_t records = 0, completed = 0;
  std::optional<std::size_t> planned;                         // runs; empty: the study has no plan
  std::vector<MissingRuns> missing;                           // of the planned ones
  std::vector<std::pair<std::string, std::size_t>> machines;  // with their completed runs
};

// A study's folder, without a slash at its end.
std::filesystem::path study_path(const std::filesystem::path& folder);

// Its records. Throws input if some are not in STUDY/<point>, as in a folder of studies.
StoreContent load_study(const std::filesystem::path& study);

// Summarizes records of one study. Throws input, with `where`, if they name several.
StudySummary summarize(const std::optional<ExpectedRuns>& plan, const std::vector<Record>& records,
                       const std::string& where);

Json to_json(const StudySummary& summary);
// "60 runs planned, 2 missing", the missing ones, the machines: a line each.
std::string to_text(const StudySummary& summary);

struct ArchivedStudy {
  std::string manifest;  // JSON: summary, version, files
  StudySummary summary;
  std::vector<std::string> notes;  // on what was left out
  std::size_t files = 0;
};

// Writes `study`, all but logs, checkpoints, reports and Slurm's files. The same study gives the
// same bytes. Throws usage if the name has another ending than .tar.zst, .tar.gz or .tar.xz, or
// libarchive lacks this compression; input if the file exists or the folder is not a study.
// `changed` makes other records of its records; spec, plan and what ranks of many say stay out
// then.
ArchivedStudy write_archive(const std::filesystem::path& study, const std::filesystem::path& file,
                            const std::string& version,
                            const std::function<StoreContent(StoreContent)>& changed = {});

struct ArchivedRun {
  Record record;
  std::string folder, text, samples;  // samples: the content of its sidecar; empty: none
};

struct StudyArchive {
  std::filesystem::path file;
  std::string study;
  std::optional<ExpectedRuns> plan;
  std::string spec;  // empty: there is none
};

// Reads and checks everything in it, a run at a time. Throws input naming the entry: one that has
// no place in a study, a link, a wrong hash or size, a record that is none, more than can be true.
StudyArchive read_archive(const std::filesystem::path& file,
                          const std::function<void(const ArchivedRun&)>& take_run = {});

// Archives of one study, merged into a folder: nothing that is there is changed or removed.

struct MergedArchive {
  std::string file;
  std::size_t runs = 0, known = 0;  // known: were there already
  std::size_t renumbered = 0;       // are another attempt here, as others have their numbers
};

struct MergedStudy {
  std::vector<MergedArchive> archives;
  StudySummary summary;  // of what the folder holds now
};

// Throws input naming an archive of another study.
void check_study(const std::vector<StudyArchive>& archives, const std::string& study);

// `dry_run`: says the same and writes nothing. A merge that was interrupted can be repeated. Throws
// input if the folder is of another study. The caller holds the study's lock.
MergedStudy merge_archives(const std::vector<StudyArchive>& archives,
                           const std::filesystem::path& target, bool dry_run);

}  // namespace paceline
