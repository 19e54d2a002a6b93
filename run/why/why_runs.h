// The runs of `paceline why`: a program as it is and with costs taken away, in interleaved rounds.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/why/why.h"

namespace paceline {

struct WhyRequest {
  std::vector<std::string> command;
  std::string out;                  // the study; empty: a new folder in TMPDIR
  std::vector<std::string> linked;  // in the working folder: linked instead of copied
  double minutes = 10;
  bool writes_ok = false;
};

struct WhyOutcome {
  WhyEvidence evidence;
  WhyVerdict verdict;
  std::filesystem::path study;
  int stopped_by = 0;
};

// Runs in copies of the current folder until the verdict is decided or the time is over. Throws
// usage or input: no such program, it cannot be measured, it writes elsewhere.
WhyOutcome run_why(const WhyRequest& request);

}  // namespace paceline
