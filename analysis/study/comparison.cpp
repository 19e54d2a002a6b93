#include "analysis/study/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analysis/study/contrast.h"
#include "analysis/study/switches.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "results/names.h"

namespace paceline {

namespace {

// What is compared: seconds, or seconds per sample.
double cost(const Run& run, bool rates) {
  return rates ? 1 / *run.samples_per_second : *run.fit_seconds();
}

std::vector<double> costs(const Row& row, bool rates) {
  return unit_values(row, [&](const Run& run) { return std::optional(cost(run, rates)); });
}

// The name of the CPUs by which rows are matched.
const char* cpus_name(const Run& run) {
  return run.replicas_are_cores() ? "cpus_per_replica" : "cpus_per_task";
}

// Of what differing() names; empty: the run has none.
std::string setting_text(const Run& run, const std::string& axis) {
  if (axis == "gpus") return std::to_string(run->layout.gpus);
  if (axis == "nodes") return run->layout.nodes ? std::to_string(*run->layout.nodes) : "";
  if (axis == "backend") return run.backend;
  if (axis == cpus_name(run)) {
    const auto cpus = run.matched_cpus();
    return cpus ? fmt::format("{:g}", *cpus) : "";
  }
  return run->parameters.text(axis).value_or("");
}

bool has_setting(const Run& run, const Base& base) {
  const std::string value = setting_text(run, base.axis);
  const auto number = to_real(value), wanted = to_real(base.value);
  return number && wanted ? *number == *wanted : value == base.value;
}

// Why a row has no base. `setting`: what no run of one replica has; it may differ from row to row.
struct NoBase {
  std::string before, setting = {}, after = {};

  auto operator<=>(const NoBase&) const = default;
};

class Comparer {
 public:
  Comparer(const Study& study, const Base& base)
      : study_(study),
        spared_(spared_work(study)),
        matched_(MatchRule::base(study.axes)),
        setting_(MatchRule::setting(base.axis, study.axes, study.replicas_are_cores)) {
    result_.base = base;
    result_.rates = needs_rates();
    if (base.kind == Base::smallest) find_smallest();
    values_ =
        mapped(study.rows, [&](const Row& row) { return mean_cost(row, result_.rates).value; });
    for (std::size_t i = 0; i < study.rows.size(); ++i) add_possible_base(i);
  }

  Comparison all() {
    mark_best();
    for (std::size_t i = 0; i < study_.rows.size(); ++i) {
      if (!reached_goal(study_.rows[i])) {
        result_.speed_ups.emplace_back();
        continue;
      }
      const auto base = find_base(i);
      if (!base) missing(i);
      result_.speed_ups.push_back(base ? std::optional(speed_up(*base, i)) : std::nullopt);
    }
    judge_standings(study_, result_);
    judge_speeds(study_, result_);
    std::map<std::pair<NoBase, std::string>, std::vector<std::string>> settings;  // by which rows
    for (const auto& [key, sizes] : missing_) {
      NoBase why = key.first;
      const std::string setting = std::exchange(why.setting, "");
      settings[{why, fmt::format("{} replicas ({})", join(sizes, ", "), key.second)}].push_back(
          setting);
    }
    std::map<std::string, std::vector<std::string>> lacking;  // by why
    for (const auto& [key, each] : settings) {
      const auto& [why, which] = key;
      lacking[why.before + join_first(3, each, " or ") + why.after].push_back(which);
    }
    for (const auto& [why, which] : lacking) {
      result_.notes.push_back(fmt::format("no speed-up for {}: {}", join_first(2, which), why));
    }
    if (!borrowed_.empty()) {
      result_.notes.push_back(
          fmt::format("no run of one replica by {}: the base is that of backend {}",
                      join({borrowed_.begin(), borrowed_.end()}, ", "), lone_backend()));
    }
    return std::move(result_);
  }

 private:
  // A study may have tens of thousands of rows: each finds its base by a key.
  void add_possible_base(std::size_t i) {
    const Run& run = run_of_row(i);
    if (!reached_goal(study_.rows[i])) {
      unreached_.push_back(i);
      return;
    }
    if (is_sized()) {
      add_sized_base(i);
    } else if (result_.base.kind == Base::setting && has_setting(run, result_.base)) {
      settings_.emplace(setting_key(run), i);
    }
    if (run->layout.gpus != 1) return;
    singles_.push_back(i);
    first_single_.emplace(matched_key(run), i);
    const auto [best, first] = best_single_.emplace(std::pair(run->kind, run.system), i);
    if (!first && better(i, best->second)) best->second = i;
    for (const auto& [name, value] : matched_by(run)) {
      values_of_singles_[{run->kind, run.system, name}].insert(value);
    }
  }

  // The base is a row of some size, not of one replica.
  bool is_sized() const {
    return result_.base.kind == Base::smallest ||
           (result_.base.kind == Base::setting && result_.base.compares_sizes());
  }

  void find_smallest() {
    for (const Row& row : study_.rows) {
      if (!reached_goal(row)) continue;
      const Run& run = row.first();
      int& fewest = smallest_.try_emplace(matched_key(run), run->layout.gpus).first->second;
      fewest = std::min(fewest, run->layout.gpus);
    }
  }

  bool has_base_size(const Run& run, const PointKey& key) const {
    if (result_.base.kind == Base::setting) return has_setting(run, result_.base);
    return run->layout.gpus == smallest_.at(key);
  }

  void add_sized_base(std::size_t i) {
    const Run& run = run_of_row(i);
    const PointKey key = matched_key(run);
    if (!has_base_size(run, key)) return;
    const auto [known, first] = settings_.emplace(key, i);
    const int gpus = run->layout.gpus, known_gpus = run_of_row(known->second)->layout.gpus;
    if (first || gpus < known_gpus) return;
    if (gpus > known_gpus || better(i, known->second)) known->second = i;
  }

  // Times will do only where all runs have one and do the same work.
  bool needs_rates() const {
    bool needed = compares_rates(study_.scaling) || study_.unit.is_own();
    const Run* without = nullptr;
    std::set<double> totals;  // of imported runs of one size, whose work nothing else bounds
    for (const Row& row : study_.rows) {
      for (const Run& run : row.runs) {
        needed = needed || !run.fit_seconds();
        if (!run.samples_per_second) without = &run;
        if (const auto total = run.samples_by_steps()) totals.insert(*total);
      }
    }
    if (totals.size() > 1 && study_.scaling == Scaling::one_size && !without) return true;
    if (needed && without) {
      throw input_error(
          "this record has no rate, and rates are compared: some runs have no time, or the runs do "
          "different work",
          without->where + ", key /throughput/samples_per_second",
          "let the program print it, or report the record apart");
    }
    return needed;
  }

  const Run& run_of_row(std::size_t i) const { return study_.rows[i].first(); }

  // Rows that do all the work come before those that are spared some, clean ones before tainted
  // ones, then the faster.
  bool better(std::size_t a, std::size_t b) const {
    const auto key = [&](std::size_t i) {
      return std::tuple(spared_[i], study_.rows[i].tainted, values_[i]);
    };
    return key(a) < key(b);
  }

  void mark_best() {
    std::map<std::tuple<std::string, std::string, int>, std::size_t> best;
    for (std::size_t i = 0; i < study_.rows.size(); ++i) {
      if (!reached_goal(study_.rows[i]) || spared_[i]) continue;
      const Run& run = run_of_row(i);
      const auto [it, first] = best.emplace(std::tuple(run->kind, run.system, run->layout.gpus), i);
      if (!first && better(i, it->second)) it->second = i;
    }
    result_.best_of_size.assign(study_.rows.size(), false);
    for (const auto& [key, i] : best) result_.best_of_size[i] = true;
  }

  std::optional<std::size_t> find_base(std::size_t i) {
    switch (result_.base.kind) {
      case Base::matched:
        return matched_base(i);
      case Base::best:
        return best_base(i);
      case Base::smallest:
      case Base::setting:
        break;
    }
    const Run& run = run_of_row(i);
    const auto found = settings_.find(is_sized() ? matched_key(run) : setting_key(run));
    return found == settings_.end() ? std::nullopt : std::optional(found->second);
  }

  PointKey setting_key(const Run& run) const { return run.key(setting_); }

  std::optional<std::size_t> best_base(std::size_t i) const {
    const Run& run = run_of_row(i);
    const auto found = best_single_.find({run->kind, run.system});
    return found == best_single_.end() ? std::nullopt : std::optional(found->second);
  }

  // What a run must have in common with its base.
  PointKey matched_key(const Run& run) const { return run.key(matched_); }

  PointKey lone_key(Run run) const {
    run.backend = lone_backend();
    return run.key(matched_);
  }

  std::optional<std::size_t> matched_base(std::size_t i) {
    const Run& run = run_of_row(i);
    if (run->layout.gpus == 1) return i;
    const auto own = first_single_.find(matched_key(run));
    if (own != first_single_.end()) return own->second;
    const auto lone = first_single_.find(lone_key(run));
    if (lone == first_single_.end()) return std::nullopt;
    borrowed_.insert(run.backend);
    return lone->second;
  }

  // "bucket_mb 8": what rows are matched by, beside their system.
  std::vector<std::pair<std::string, std::string>> matched_by(const Run& run) const {
    std::vector<std::pair<std::string, std::string>> by;
    if (const auto cpus = run.matched_cpus()) {
      by.emplace_back(run.replicas_are_cores() ? "CPUs per replica" : "cpus-per-task",
                      fmt::format("{:g}", *cpus));
    }
    for (const std::string& axis : study_.axes) by.emplace_back(axis, setting_text(run, axis));
    by.emplace_back("backend", run.backend);
    return by;
  }

  // "bucket_mb 8": what no run of one replica has that the row has; of one thing if that
  // says it all.
  std::string lacking(const Run& run) const {
    std::vector<std::string> all;
    for (const auto& [name, value] : matched_by(run)) {
      const std::string text = value.empty() ? "no " + name : name + " " + value;
      bool same = false, differs = false;
      const auto known = values_of_singles_.find({run->kind, run.system, name});
      if (known != values_of_singles_.end()) {
        const std::set<std::string>& values = known->second;
        const bool lone = name == "backend" && value != lone_backend();
        const std::size_t equal = values.count(value) + (lone ? values.count(lone_backend()) : 0);
        same = equal > 0;
        differs = values.size() > equal;
      }
      if (!same) return text;
      if (differs) all.push_back(text);
    }
    return join(all, " and ");
  }

  // "its base did not reach its goal in 1 of 5 runs"; empty: it has none that failed so.
  std::string unreached_base(const Run& run) const {
    for (const std::size_t k : unreached_) {
      const Row& row = study_.rows[k];
      const Run& base = run_of_row(k);
      const bool is_base =
          is_sized() ? result_.base.kind == Base::setting && has_setting(base, result_.base) &&
                           matched_key(base) == matched_key(run)
          : result_.base.kind == Base::setting
              ? has_setting(base, result_.base) && setting_key(base) == setting_key(run)
          : result_.base.kind == Base::best
              ? base->layout.gpus == 1 && base->kind == run->kind && base.system == run.system
              : base->layout.gpus == 1 && matched_key(base) == matched_key(run);
      if (!is_base) continue;
      const auto missed = std::count_if(row.runs.begin(), row.runs.end(),
                                        [](const Run& each) { return !each.goal_reached; });
      return fmt::format("the base did not reach its goal in {} of {}", missed,
                         counted(row.runs.size(), "run"));
    }
    return "";
  }

  NoBase why_missing(std::size_t i) const {
    const Run& run = run_of_row(i);
    if (const std::string failed = unreached_base(run); !failed.empty()) return {failed};
    const std::string shown =
        study_.chosen.empty() ? "" : " among those shown (" + study_.chosen + ")";
    if (result_.base.kind == Base::setting) {
      return {fmt::format("no run{} has {} and is the same otherwise", shown, result_.base.text())};
    }
    if (!best_base(i)) {
      return {"there is no run of one replica" +
              std::string(singles_.empty() ? "" : " on that machine") + shown +
              "; --base smallest compares with the smallest size"};
    }
    const std::string setting = lacking(run);
    return {std::string("there is no run of one replica ") +
                (setting.empty() ? "that matches" : "with "),
            setting, shown + "; --base best compares with the fastest"};
  }

  void missing(std::size_t i) {
    const Run& run = run_of_row(i);
    std::string row = run.system;
    if (!run.backend.empty()) row += (row.empty() ? "" : ", ") + run.backend;
    if (row.empty()) row = "this study";
    auto& sizes = missing_[{why_missing(i), row}];
    const std::string size = std::to_string(run->layout.gpus);
    if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
  }

  SpeedUp speed_up(std::size_t base, std::size_t i) const {
    const int replicas = run_of_row(i)->layout.gpus;
    SpeedUp result;
    result.base = base;
    if (base == i) {
      result.ratio.estimate = {1, std::nullopt, study_.rows[i].runs.size()};
    } else {
      result.ratio = compute_ratio(study_.rows[base], study_.rows[i], result_.rates);
    }
    const int base_replicas = run_of_row(base)->layout.gpus;
    result.ideal = static_cast<double>(replicas) / base_replicas;
    if (result_.base.compares_sizes() || base_replicas != replicas) {
      result.efficiency = result.ratio.estimate.value / result.ideal;
    }
    if (result.ideal > 1 && !compares_rates(study_.scaling) && run_of_row(i).goal.empty()) {
      result.karp_flatt = karp_flatt(result.ratio.estimate, result.ideal);
    }
    return result;
  }

  const Study& study_;
  std::vector<bool> spared_;  // work, a row each
  const MatchRule matched_, setting_;
  Comparison result_;
  std::vector<double> values_;          // mean cost of each row
  std::vector<std::size_t> singles_;    // rows of one replica
  std::vector<std::size_t> unreached_;  // rows that did not reach their goal
  // The first row of a key; see add_possible_base().
  std::unordered_map<PointKey, std::size_t> first_single_, settings_;
  std::unordered_map<PointKey, int> smallest_;                              // replicas, of a key
  std::map<std::pair<std::string, std::string>, std::size_t> best_single_;  // of a kind and system
  std::map<std::tuple<std::string, std::string, std::string>, std::set<std::string>>
      values_of_singles_;  // (kind, system, what rows are matched by)
  // (why, whose) -> sizes without a base.
  std::map<std::pair<NoBase, std::string>, std::vector<std::string>> missing_;
  std::set<std::string> borrowed_;
};

}  // namespace

bool reached_goal(const Row& row) {
  return std::all_of(row.runs.begin(), row.runs.end(),
                     [](const Run& run) { return run.goal.empty() || run.goal_reached; });
}

std::vector<double> unit_values(const Row& row,
                                const std::function<std::optional<double>(const Run&)>& value) {
  std::vector<double> values;
  std::map<std::string, std::pair<double, int>> sessions;
  for (const Run& run : row.runs) {
    const auto one = value(run);
    if (!one) continue;
    values.push_back(*one);
    auto& [sum, count] = sessions[run->session];
    sum += std::log(*one);
    ++count;
  }
  if (!row.pooled) return values;
  values.clear();
  for (const auto& [session, sum] : sessions) values.push_back(std::exp(sum.first / sum.second));
  return values;
}

Estimate mean_cost(const Row& row, bool rates) {
  return geometric_mean(costs(row, rates), find_stopping(row));
}

Ratio compute_ratio(const Row& base, const Row& row, bool rates) {
  const auto of_run = [rates](const Run& run) { return std::optional(cost(run, rates)); };
  return ratio_of_means(log_values(base, of_run), log_values(row, of_run));
}

std::string Base::text() const {
  switch (kind) {
    case matched:
      return "matched";
    case best:
      return "best";
    case smallest:
      return "smallest";
    case setting:
      break;
  }
  return axis + "=" + value;
}

Comparison compare(const Study& study, const Base& base) {
  return Comparer(study, base).all();
}

std::vector<std::string> differing(const Study& study) {
  std::vector<std::string> names = study.axes;
  if (study.rows.empty()) return names;
  for (const char* name : {"backend", "gpus", cpus_name(study.rows.front().first())}) {
    const auto value = [&](const Row& row) { return setting_text(row.first(), name); };
    if (distinct(study.rows, value).size() > 1) names.emplace_back(name);
  }
  return names;
}

Base default_base(const Study& study) {
  if (study.scaling != Scaling::one_size) return Base::matched;
  if (!study.reference.empty()) return {"program", study.reference};
  const std::vector<std::string> names = differing(study);
  if (names.size() != 1) return Base::matched;
  const std::string first = setting_text(study.rows.front().first(), names.front());
  return first.empty() ? Base(Base::matched) : Base(names.front(), first);
}

void check_base(const std::vector<Study>& studies, const Base& base) {
  if (base.kind != Base::setting) return;
  std::set<std::string> values, names;
  bool has = false, has_other = false;
  for (const Study& study : studies) {
    for (const std::string& name : differing(study)) names.insert(name);
    for (const Row& row : study.rows) {
      const std::string value = setting_text(row.first(), base.axis);
      if (!value.empty()) values.insert(value);
      (has_setting(row.first(), base) ? has : has_other) = true;
    }
  }
  if (has && has_other) return;
  const std::string differ = names.empty()
                                 ? "the rows differ in nothing"
                                 : "the rows differ in " + join({names.begin(), names.end()}, ", ");
  if (has) {
    throw usage_error(fmt::format("all rows have {}", base.text()), "--base", differ);
  }
  throw usage_error(fmt::format("no row has {}", base.text()), "--base",
                    values.empty() ? differ
                                   : fmt::format("known values of {}: {}", base.axis,
                                                 join({values.begin(), values.end()}, ", ")));
}

}  // namespace paceline
