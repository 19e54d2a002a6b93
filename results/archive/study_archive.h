// A study in one file: STUDY/manifest.json, then its plan, its spec and its runs. What an archive
// holds is checked against the manifest before anybody sees it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "results/archive/summary.h"

namespace paceline {

struct Manifest {
  std::string study;
  std::vector<std::string> names, hashes;  // of the files, in their order
  std::vector<std::size_t> sizes;
  std::size_t bytes() const;
};

struct ArchivedStudy {
  std::string manifest;  // JSON: summary, version, files
  StudySummary summary;
  std::vector<std::string> notes;  // on what was left out
  std::size_t files = 0;
};

// Writes `study`, all but logs, checkpoints, reports and Slurm's files. The same study gives the
// same bytes. Throws usage and input as TarWriter does, and input if the folder is no study.
ArchivedStudy write_archive(const std::filesystem::path& study, const std::filesystem::path& file,
                            const std::string& version);

struct ArchivedRun {
  Record record;
  std::string folder, text, samples;  // samples: the content of its sidecar; empty: none
};

class StudyArchive {
 public:
  // Reads and checks everything in it. Throws input naming the entry: one that has no place in a
  // study, a link, a wrong hash or size, a record that is none, more than can be true.
  explicit StudyArchive(std::filesystem::path file);

  const Manifest& manifest() const { return manifest_; }
  const std::optional<ExpectedRuns>& plan() const { return plan_; }
  const std::string& spec() const { return spec_; }  // empty: there is none
  const std::filesystem::path& file() const { return file_; }

  // Reads and checks it again, a run at a time.
  void each_run(const std::function<void(ArchivedRun)>& take) const;

 private:
  std::filesystem::path file_;
  Manifest manifest_;
  std::optional<ExpectedRuns> plan_;
  std::string spec_;
};

}  // namespace paceline
