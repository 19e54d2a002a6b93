#include "analysis/explain/efficiency.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "results/step_samples.h"

namespace paceline {

// Seconds of one run, means over its ranks but for the two extremes.
struct StepRecords::Phases {
  double input = 0, launch = 0, communication = 0, compute = 0, outside = 0;
  double of_all = 0, most_compute = 0;  // of_all: communication that every rank waits for
  bool is_bound = false;                // of_all may be less

  void operator+=(const Phases& more) {
    input += more.input;
    launch += more.launch;
    communication += more.communication;
    compute += more.compute;
    outside += more.outside;
    of_all += more.of_all;
    most_compute += more.most_compute;
    is_bound = is_bound || more.is_bound;
  }

  Costs costs(double ranks, double samples) const {
    const double scale = ranks / samples;
    return {input * scale,   launch * scale, of_all * scale, (communication - of_all) * scale,
            compute * scale, outside * scale};
  }
};

namespace {

double number_of(const Json& rank, const char* key) {
  const auto it = rank.find(key);
  return it != rank.end() && it->is_number() ? it->get<double>() : 0;
}

std::string word_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

}  // namespace

StepRecords::StepRecords(const StoreContent& content) {
  for (const Record& record : content.records) records_.emplace(record.where(), &record);
}

const StepRecords::Phases* StepRecords::phases_of(const Run& run) const {
  const auto [known, first] = phases_.try_emplace(run.where);
  if (!first) return known->second.get();
  const auto it = records_.find(run.where);
  if (it == records_.end()) return nullptr;
  const auto ranks = it->second->json().find("phases");
  if (ranks == it->second->json().end() || !ranks->is_array() || ranks->empty()) return nullptr;
  Phases phases;
  double step = 0;
  const auto count = static_cast<double>(ranks->size());
  phases.of_all = number_of(ranks->front(), "communication");
  for (const Json& rank : *ranks) {
    const double compute =
        number_of(rank, "forward") + number_of(rank, "backward") + number_of(rank, "update");
    phases.input += number_of(rank, "input") / count;
    phases.launch += number_of(rank, "other") / count;
    phases.communication += number_of(rank, "communication") / count;
    phases.compute += compute / count;
    phases.of_all = std::min(phases.of_all, number_of(rank, "communication"));
    phases.most_compute = std::max(phases.most_compute, compute);
    step += number_of(rank, "step") / count;
  }
  if (!(phases.compute > 0)) return nullptr;
  if (run.fit_seconds) phases.outside = *run.fit_seconds - step;
  if (run.gpus > 1 && phases.of_all > 0) {
    const auto least = waited_by_all(*it->second);
    phases.is_bound = !least;
    phases.of_all = std::min(phases.of_all, least.value_or(phases.of_all));
  }
  known->second = std::make_shared<const Phases>(phases);
  return known->second.get();
}

std::optional<StepEfficiency> StepRecords::efficiency(const Row& row) const {
  Phases sum;
  double samples = 0;
  for (const Run& run : row.runs) {
    const Phases* phases = phases_of(run);
    if (phases == nullptr || !run.samples) return std::nullopt;
    sum += *phases;
    samples += *run.samples;
  }
  StepEfficiency result;
  const double total = sum.input + sum.launch + sum.communication + sum.compute;
  const double without_input = total - sum.input, without_launch = without_input - sum.launch;
  const double without_transfer = without_launch - sum.of_all;
  result.input = without_input / total;
  result.launch = without_launch / without_input;
  result.transfer = without_transfer / without_launch;
  result.serialization = sum.most_compute / without_transfer;
  result.load_balance = sum.compute / sum.most_compute;
  result.is_bound = sum.is_bound;
  result.costs = sum.costs(row.first().gpus, samples);
  return result;
}

std::vector<Costs> StepRecords::costs(const Row& row, bool rates) const {
  std::vector<Costs> all;
  for (const Run& run : row.runs) {
    Costs costs = phases_of(run)->costs(run.gpus, *run.samples);
    if (rates) costs.outside = 0;
    all.push_back(costs);
  }
  return all;
}

std::optional<LateRank> StepRecords::late_rank(const Row& row) const {
  std::map<int, LateRank> ranks;
  for (const Run& run : row.runs) {
    const auto it = records_.find(run.where);
    if (it == records_.end()) continue;
    const auto straggler = it->second->json().find("straggler");
    if (straggler == it->second->json().end() || !straggler->is_object()) continue;
    LateRank& late = ranks[static_cast<int>(number_of(*straggler, "rank"))];
    late.rank = static_cast<int>(number_of(*straggler, "rank"));
    late.host = word_of(*straggler, "host");
    late.phase = word_of(*straggler, "phase");
    late.share_of_step += number_of(*straggler, "share_of_step");
    ++late.runs;
  }
  const auto most = std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
    return a.second.runs < b.second.runs;
  });
  if (most == ranks.end() || 2 * most->second.runs <= row.runs.size()) return std::nullopt;
  most->second.share_of_step /= static_cast<double>(most->second.runs);
  return most->second;
}

}  // namespace paceline
