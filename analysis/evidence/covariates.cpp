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

std::string nodes_text(const Run& run) {
  return join(each_once(run->host_names()), ", ");
}

std::string node_count(const Run& run) {
  return run->layout.nodes ? counted(*run->layout.nodes, "node") : "";
}

std::string cache_text(const Run& run) {
  const auto& cold = run->input.cold;
  return !cold ? "" : *cold ? "a cold cache of data" : "a warm cache of data";
}

std::string load_text(const Run& run) {
  const auto& busy = run->provenance.machine_load.busy;
  return !busy ? "" : *busy ? "the machine was busy" : "the machine was idle";
}

std::string screened_text(const Run& run) {
  const auto& screened = run->provenance.screened;
  if (!screened) return "";
  if (screened->slow.empty()) return "nothing named by the screen";
  return join(each_once(screened->slow), " and ") + " slow in the screen";
}

// Of GPUs their mean, as they differ in it.
std::optional<double> clock_mhz(const Run& run) {
  if (run->gpus.empty()) return run->provenance.machine_load.least_mhz;
  double sum = 0;
  for (const GpuFacts& gpu : run->gpus) {
    if (!gpu.sm_mhz) return std::nullopt;
    sum += *gpu.sm_mhz / static_cast<double>(run->gpus.size());
  }
  return sum;
}

std::set<std::string> values(const Covariate& covariate, const std::vector<Run>& runs) {
  auto found = distinct(runs, covariate.value);
  found.erase("");
  return found;
}

}  // namespace

const std::vector<Covariate>& covariates() {
  static const std::vector<Covariate> table = {
      {"GPU", "different GPUs or drivers", [](const Run& run) { return origin(run, "GPU"); }},
      {"data", "different data", [](const Run& run) { return origin(run, "data"); }},
      {.name = "node", .value = nodes_text, .where = "on", .plural = "nodes", .is_list = true},
      {.name = "number of nodes", .value = node_count, .where = "on", .is_layout = true},
      {.name = "session",
       .value = [](const Run& run) { return run->session; },
       .where = "in session",
       .plural = "sessions",
       .has_effect = false},
      {.name = "cache of data", .value = cache_text},
      {.name = "screen", .value = screened_text},
      {.name = "load", .value = load_text, .where = "while", .is_weighed = true},
      {.name = "build",
       .value = [](const Run& run) { return run->build(); },
       .where = "with build",
       .plural = "builds",
       .is_weighed = true},
      {.name = "clock", .number = clock_mhz, .unit = "MHz"},
  };
  return table;
}

std::set<std::string> covariate_values(const Covariate& covariate, const Run& run) {
  const std::string value = covariate.value(run);
  if (value.empty() || !covariate.is_list) {
    return value.empty() ? std::set<std::string>() : std::set{value};
  }
  std::set<std::string> values;
  for (const std::string& part : split(value, ',')) values.emplace(trim(part));
  return values;
}

CovariateFindings find_covariates(const std::vector<CovariateRow>& rows) {
  CovariateFindings found;
  found.sentences = covariate_effects(rows);
  add_own_values(rows, found);
  add_own_times(rows, found);
  return found;
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
    if (!covariate.unlike) continue;
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
    if (!covariate.unlike) continue;
    const std::set<std::string> was = values(covariate, before), is = values(covariate, now);
    if (was.empty() || is.empty() || was == is) continue;
    sentences.push_back(fmt::format("{}: {}, and {}", covariate.unlike,
                                    join({was.begin(), was.end()}, ", "),
                                    join({is.begin(), is.end()}, ", ")));
  }
  return sentences;
}

}  // namespace paceline
