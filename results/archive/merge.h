// Archives of one study, merged into a folder: nothing that is there is changed or removed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "results/archive/study_archive.h"

namespace paceline {

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
// input if the folder is of another study or there is no room. The caller holds the study's lock.
MergedStudy merge_archives(const std::vector<StudyArchive>& archives,
                           const std::filesystem::path& target, bool dry_run);

}  // namespace paceline
