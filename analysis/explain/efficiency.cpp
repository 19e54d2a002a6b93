#include "analysis/explain/efficiency.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace paceline {

namespace {

// Seconds of one run, means over its ranks but for the two extremes.
struct Means {
  double input = 0, launch = 0, communication = 0, compute = 0;
  double least_communication = 0, most_compute = 0;

  void operator+=(const Means& more) {
    input += more.input;
    launch += more.launch;
    communication += more.communication;
    compute += more.compute;
    least_communication += more.least_communication;
    most_compute += more.most_compute;
  }
};

double number_of(const Json& rank, const char* key) {
  const auto it = rank.find(key);
  return it != rank.end() && it->is_number() ? it->get<double>() : 0;
}

std::string word_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

std::optional<Means> means_of(const Json& record) {
  const auto phases = record.find("phases");
  if (phases == record.end() || !phases->is_array() || phases->empty()) return std::nullopt;
  Means means;
  const auto ranks = static_cast<double>(phases->size());
  for (const Json& rank : *phases) {
    const double compute =
        number_of(rank, "forward") + number_of(rank, "backward") + number_of(rank, "update");
    const double communication = number_of(rank, "communication");
    const bool first = &rank == &phases->front();
    means.input += number_of(rank, "input") / ranks;
    means.launch += number_of(rank, "other") / ranks;
    means.communication += communication / ranks;
    means.compute += compute / ranks;
    means.least_communication =
        first ? communication : std::min(means.least_communication, communication);
    means.most_compute = std::max(means.most_compute, compute);
  }
  return means.compute > 0 ? std::optional(means) : std::nullopt;
}

StepEfficiency efficiency_of(const Means& m, double samples, double ranks) {
  StepEfficiency result;
  const double total = m.input + m.launch + m.communication + m.compute;
  const double without_input = total - m.input, without_launch = without_input - m.launch;
  const double without_transfer = without_launch - m.least_communication;
  result.input = without_input / total;
  result.launch = without_launch / without_input;
  result.transfer = without_transfer / without_launch;
  result.serialization = m.most_compute / without_transfer;
  result.load_balance = m.compute / m.most_compute;
  const double scale = ranks / samples;
  result.costs = {m.input * scale, m.launch * scale, m.least_communication * scale,
                  (m.communication - m.least_communication) * scale, m.compute * scale};
  return result;
}

}  // namespace

StepRecords::StepRecords(const StoreContent& content) {
  for (const Record& record : content.records) records_.emplace(record.where(), &record);
}

std::optional<StepEfficiency> StepRecords::efficiency(const Row& row) const {
  Means sum;
  double samples = 0;
  for (const Run& run : row.runs) {
    const auto it = records_.find(run.where);
    if (it == records_.end() || !run.samples) return std::nullopt;
    const auto means = means_of(it->second->json());
    if (!means) return std::nullopt;
    sum += *means;
    samples += *run.samples;
  }
  return efficiency_of(sum, samples, row.first().gpus);
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
