// For a build without libarchive.
#include "engine/core/error.h"
#include "results/archive/study_archive.h"

namespace paceline {

namespace {

[[noreturn]] void refuse_archive(const std::filesystem::path& file) {
  throw Error(ErrorKind::usage, "this build has no libarchive", file.string(),
              "build it with libarchive (Debian: libarchive-dev)");
}

}  // namespace

ArchivedStudy write_archive(const std::filesystem::path&, const std::filesystem::path& file,
                            const std::string&) {
  refuse_archive(file);
}

StudyArchive::StudyArchive(std::filesystem::path file) : file_(std::move(file)) {
  refuse_archive(file_);
}

void check_study(const std::vector<StudyArchive>&, const std::string&) {}

MergedStudy merge_archives(const std::vector<StudyArchive>& archives, const std::filesystem::path&,
                           bool) {
  refuse_archive(archives.front().file());
}

}  // namespace paceline
