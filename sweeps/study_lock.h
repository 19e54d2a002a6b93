// One sweep at a time works in a study.
#pragma once

#include <filesystem>

namespace paceline {

class StudyLock {
 public:
  // Makes the study's folder if there is none. Throws input where that cannot be written, or naming
  // the process that holds the lock. The lock goes with the process, however it ends.
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
