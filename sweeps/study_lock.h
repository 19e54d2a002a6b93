// Lets only one sweep, submit or merge at a time work on a study.
#pragma once

#include <filesystem>

namespace paceline {

class StudyLock {
 public:
  // Creates the study's folder if necessary. Throws input if it cannot be written, or naming the
  // process that holds the lock. The lock is released when the process ends, however it ends.
  explicit StudyLock(const std::filesystem::path& study);
  ~StudyLock();
  StudyLock(const StudyLock&) = delete;
  StudyLock& operator=(const StudyLock&) = delete;

  const std::filesystem::path& study() const { return study_; }

 private:
  std::filesystem::path study_;
  int descriptor_;
};

}  // namespace paceline
