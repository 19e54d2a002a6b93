#include "analysis/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/core/text.h"

namespace paceline {

namespace {

// The parts of a ladder's name, of which those that all ladders share are dropped.
using Parts = std::vector<std::string>;

Parts parts_of(const Study& study, const Comparison& comparison, const Run& run, bool by_cpus) {
  Parts parts = {run.kind == "measured" ? "" : run.kind, run.system};
  if (comparison.base == Base::best) return parts;
  parts.push_back(run.backend);
  for (const std::string& axis : study.axes) {
    parts.push_back(fmt::format("{} {}", axis, run.parameters.text(axis).value_or("-")));
  }
  if (by_cpus && run.replicas_are_cores && run.cpus_per_replica()) {
    parts.push_back(fmt::format("{:g} CPU{} per replica", *run.cpus_per_replica(),
                                *run.cpus_per_replica() == 1 ? "" : "s"));
  } else if (by_cpus && run.cpus_per_task) {
    parts.push_back(fmt::format("cpus-per-task {:2}", *run.cpus_per_task));
  }
  return parts;
}

void name_ladders(std::vector<std::pair<Parts, Ladder>>& ladders) {
  std::map<std::size_t, std::set<std::string>> values;
  for (const auto& [parts, ladder] : ladders) {
    for (std::size_t i = 0; i < parts.size(); ++i) values[i].insert(parts[i]);
  }
  constexpr std::size_t kBackend = 2;
  for (auto& [parts, ladder] : ladders) {
    Parts shown;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (!parts[i].empty() && (values[i].size() > 1 || i == kBackend)) shown.push_back(parts[i]);
    }
    ladder.name = join(shown, ", ");
  }
}

// A ladder whose base is a run of another backend (one replica needs none) begins there, too.
void add_borrowed_base(std::map<int, Rung>& rungs, const Study& study,
                       const std::vector<RowFacts>& facts) {
  if (rungs.begin()->first == 1) return;
  Rung first;
  for (const RowFacts* row : rungs.begin()->second.rows) {
    const RowFacts* base = &facts[row->speed_up->base];
    const bool known = std::find(first.rows.begin(), first.rows.end(), base) != first.rows.end();
    if (study.rows[row->speed_up->base].first().gpus == 1 && !known) first.rows.push_back(base);
  }
  if (!first.rows.empty()) rungs.emplace(1, std::move(first));
}

}  // namespace

double Rung::mean_speed_up() const {
  double sum = 0;
  for (const RowFacts* row : rows) sum += row->speed_up->ratio.estimate.value;
  return sum / static_cast<double>(rows.size());
}

std::vector<Ladder> make_ladders(const Study& study, const Comparison& comparison,
                                 const std::vector<RowFacts>& facts, bool by_cpus) {
  if (comparison.base.kind == Base::setting) return {};
  std::map<Parts, std::map<int, Rung>> found;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (!facts[i].speed_up) continue;
    if (comparison.base == Base::best && !comparison.best_of_size[i]) continue;
    const Run& run = facts[i].run();
    Rung& rung = found[parts_of(study, comparison, run, by_cpus)][run.gpus];
    rung.gpus = run.gpus;
    rung.rows.push_back(&facts[i]);
  }
  std::map<Parts, std::set<int>> gaps;
  for (const Row& gap : study.gaps) {
    const Run& run = gap.first();
    gaps[parts_of(study, comparison, run, by_cpus)].insert(run.gpus);
  }
  std::vector<std::pair<Parts, Ladder>> ladders;
  for (auto& [parts, rungs] : found) {
    if (rungs.rbegin()->first == 1) continue;
    if (comparison.base == Base::matched) add_borrowed_base(rungs, study, facts);
    Ladder ladder;
    for (const int gpus : gaps[parts]) {
      if (!rungs.contains(gpus)) ladder.gaps.push_back(gpus);
    }
    for (auto& [gpus, rung] : rungs) ladder.rungs.push_back(std::move(rung));
    ladders.emplace_back(parts, std::move(ladder));
  }
  name_ladders(ladders);
  std::vector<Ladder> result;
  for (auto& [parts, ladder] : ladders) result.push_back(std::move(ladder));
  return result;
}

}  // namespace paceline
