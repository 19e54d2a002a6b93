#include "analysis/evidence/covariates.h"

#include <fmt/format.h>

#include <set>

#include "engine/core/text.h"

namespace paceline {

namespace {

// Of what summarize_provenance() names so.
std::string origin(const Run& run, std::string_view name) {
  for (const auto& [fact, value] : run.origin) {
    if (fact == name) return value;
  }
  return "";
}

std::set<std::string> values(const Covariate& covariate, const std::vector<Run>& runs) {
  std::set<std::string> found;
  for (const Run& run : runs) found.insert(covariate.value(run));
  found.erase("");
  return found;
}

}  // namespace

const std::vector<Covariate>& covariates() {
  static const std::vector<Covariate> table = {
      {"GPU", "different GPUs or drivers", [](const Run& run) { return origin(run, "GPU"); }},
      {"data", "different data", [](const Run& run) { return origin(run, "data"); }},
  };
  return table;
}

std::string counts_text(const std::map<std::string, std::size_t>& counts) {
  std::vector<std::string> parts;
  for (const auto& [value, count] : counts) {
    parts.push_back(fmt::format("{} ({})", value, counted(count, "run")));
  }
  return join(parts, ", ");
}

std::vector<std::string> differing_covariates(const std::vector<const Run*>& runs) {
  std::vector<std::string> sentences;
  for (const Covariate& covariate : covariates()) {
    std::map<std::string, std::size_t> counts;
    for (const Run* run : runs) {
      if (run->record->kind == "measured") ++counts[covariate.value(*run)];
    }
    counts.erase("");
    if (counts.size() > 1) {
      sentences.push_back(fmt::format("{}: {}", covariate.unlike, counts_text(counts)));
    }
  }
  return sentences;
}

std::vector<std::string> differing_covariates(const std::vector<Run>& before,
                                              const std::vector<Run>& now) {
  std::vector<std::string> sentences;
  for (const Covariate& covariate : covariates()) {
    const std::set<std::string> was = values(covariate, before), is = values(covariate, now);
    if (was.empty() || is.empty() || was == is) continue;
    sentences.push_back(fmt::format("{}: {}, and {}", covariate.unlike,
                                    join({was.begin(), was.end()}, ", "),
                                    join({is.begin(), is.end()}, ", ")));
  }
  return sentences;
}

}  // namespace paceline
