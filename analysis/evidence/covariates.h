// What may differ between runs that are compared, beside what is compared: a row each. Every verb
// warns of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/evidence/run.h"

namespace paceline {

struct Covariate {
  const char* name;                  // "GPU"
  const char* unlike;                // "different GPUs or drivers"
  std::string (*value)(const Run&);  // empty: not recorded
};

const std::vector<Covariate>& covariates();

// "different data: mnist, hash 1 (3 runs), mnist, hash 2 (2 runs)", for each covariate that has
// several values among measured runs of one table.
std::vector<std::string> differing_covariates(const std::vector<const Run*>& runs);

// "different data: mnist, hash 1, and mnist, hash 2", for each covariate that two sides both record
// and of which their values differ.
std::vector<std::string> differing_covariates(const std::vector<Run>& before,
                                              const std::vector<Run>& now);

// "AMD EPYC (3 runs), Intel Xeon (1 run)"
std::string counts_text(const std::map<std::string, std::size_t>& counts);

}  // namespace paceline
