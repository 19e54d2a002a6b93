#include "analysis/study/grouping.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "engine/core/text.h"

namespace paceline {

namespace {

// With another value of these a run does other work, so that their rows cannot be compared.
const std::vector<std::string>& names_of_work() {
  static const std::vector<std::string> names = mapped_if(
      parameters(), [](const Parameter& each) { return each.role == Role::work; },
      [](const Parameter& each) { return std::string(each.name); });
  return names;
}

std::optional<Amount> find_work(const Run& run, std::string_view name) {
  if (name == "study") return run->study;
  if (name == "studies") return std::nullopt;  // its own or a related one: has_runs() tells
  const auto asked = [&](std::string_view parameter) { return run->parameters.real(parameter); };
  if (name == "batch_per_replica") {
    if (run.batch_per_replica) return run.batch_per_replica;
    if (const auto batch = asked("batch_per_replica")) return batch;
    const auto global = asked("global_batch");
    if (global)
      return *global / run->layout.gpus / asked("gradient_accumulation_steps").value_or(1);
    return std::nullopt;
  }
  if (name == "global_batch") {
    if (run.global_batch) return run.global_batch;
    if (const auto global = asked("global_batch")) return global;
    const auto batch = asked("batch_per_replica");
    if (batch) return *batch * run->layout.gpus * asked("gradient_accumulation_steps").value_or(1);
    return std::nullopt;
  }
  if (const auto number = asked(name)) return number;
  return run->parameters.text(name);
}

using Split = std::map<Work, std::vector<const Run*>>;

Split split_by(const std::vector<Run>& runs, const std::vector<std::string>& names) {
  Split parts;
  for (const Run& run : runs) {
    Work work;
    for (const std::string& name : names) {
      if (const auto value = find_work(run, name)) work.emplace_back(name, *value);
    }
    parts[work].push_back(&run);
  }
  return parts;
}

// Every part has a type, and where sizes are asked for, shows how its work scales.
bool stand_alone(const Split& parts, bool with_sizes) {
  return parts.size() > 1 && std::ranges::all_of(parts, [&](const auto& part) {
           const auto type = scaling_if_any(part.second);
           return type && !(with_sizes && *type == Scaling::one_size);
         });
}

// What the sweeps of these runs varied of the work.
std::vector<std::string> varied_work(const std::vector<Run>& runs) {
  std::set<std::string> varied;
  for (const Run& run : runs) {
    for (const auto& [name, value] : named_values(run->point)) varied.insert(name);
  }
  std::vector<std::string> names = names_of_work();
  std::erase_if(names, [&](const std::string& name) { return !varied.contains(name); });
  return names;
}

std::set<std::set<const Run*>> collect_sets(const Split& parts) {
  std::set<std::set<const Run*>> sets;
  for (const auto& [work, runs] : parts) sets.emplace(runs.begin(), runs.end());
  return sets;
}

// Runs that are no one table: the quantity of which each value makes a whole table (several, if
// they set the same tables apart), else what the sweeps say that they varied. Empty: neither.
Split apart_by_work(const std::vector<Run>& runs) {
  std::vector<Split> whole;
  for (const std::string& name : names_of_work()) {
    Split parts = split_by(runs, {name});
    if (stand_alone(parts, true)) whole.push_back(std::move(parts));
  }
  const bool all_alike = std::ranges::all_of(whole, [&](const Split& parts) {
    return collect_sets(parts) == collect_sets(whole.front());
  });
  if (!whole.empty() && all_alike) return std::move(whole.front());
  Split parts = split_by(runs, varied_work(runs));
  return stand_alone(parts, false) ? parts : Split{};
}

// The same, else each study by itself. Empty: not even that.
Split apart(const std::vector<Run>& runs) {
  if (Split parts = apart_by_work(runs); !parts.empty()) return parts;
  Split result;
  for (auto& [work, part] : split_by(runs, {"study"})) {
    if (scaling_if_any(part)) {
      result[work] = part;
      continue;
    }
    const std::vector<Run> copies = mapped(part, [](const Run* run) { return *run; });
    const Split finer = apart_by_work(copies);
    if (finer.empty()) return {};
    for (const auto& [more, some] : finer) {
      Work both = work;
      both.insert(both.end(), more.begin(), more.end());
      for (const Run* run : some) {
        result[both].push_back(part[static_cast<std::size_t>(run - copies.data())]);
      }
    }
  }
  return result.size() > 1 ? result : Split{};
}

// Workload, precision, unit, whether replicas are cores: what no table mixes.
using TableKind = std::tuple<std::string, std::string, std::string, bool>;

TableKind kind_of_table(const Run& run) {
  return {run->workload, run.precision, find_unit(run).name, run.replicas_are_cores()};
}

// Which studies have a point in common, directly or by way of others; with `pooled`, a program.
// What was published or predicted stands beside any.
class RelatedStudies {
 public:
  RelatedStudies(const std::vector<Run>& runs, bool pooled) {
    for (const Run& run : runs) {
      if (counts(run)) studies_[kind_of_table(run)][run->study];
    }
    MatchRule rule = MatchRule::row();
    rule.kind = rule.system = false;
    if (pooled) rule = {.only = {{"program"}}};
    std::map<std::pair<TableKind, PointKey>, std::string> first;  // of a point
    for (const Run& run : runs) {
      const TableKind kind = kind_of_table(run);
      if (!counts(run) || studies_[kind].size() < 2) continue;
      Family& mine = studies_[kind][run->study];
      if (!mine) mine = std::make_shared<std::set<std::string>>(std::set{run->study});
      const auto known = first.emplace(std::pair(kind, run.key(rule)), run->study).first;
      const Family joined = mine, other = studies_[kind][known->second];
      if (joined == other) continue;
      other->merge(*joined);
      for (auto& [name, family] : studies_[kind]) {
        if (family == joined) family = other;
      }
    }
  }

  // "friday, monday"; empty: all have.
  std::string names(const Run& run) const {
    const auto found = counts(run) ? studies_.find(kind_of_table(run)) : studies_.end();
    if (found == studies_.end() || found->second.size() < 2) return "";
    const std::set<std::string>& family = *found->second.at(run->study);
    if (family.size() == found->second.size()) return "";
    return join({family.begin(), family.end()}, ", ");
  }

 private:
  using Family = std::shared_ptr<std::set<std::string>>;

  static bool counts(const Run& run) { return run->kind == "measured" || run->kind == "imported"; }

  std::map<TableKind, std::map<std::string, Family>> studies_;
};

using Groups = std::map<StudyKey, std::vector<Run>>;

// Runs that say of everything what the host's tables hold fixed, and make them no other table.
bool may_join(const StudyKey& key, const std::vector<Run>& runs, const StudyKey& host,
              const std::vector<Run>& hosts) {
  if (host.workload != key.workload || host.precision != key.precision) return false;
  if (host.unit != key.unit || host.studies != key.studies) return false;
  if (host.replicas_are_cores != key.replicas_are_cores) return false;
  if (host.scaling == Scaling::one_size) return false;
  if (key.scaling != Scaling::one_size && key.scaling != host.scaling) return false;
  if (key.only_rates && !compares_rates(host.scaling) && !host.only_rates) return false;
  if (!key.work.empty() && key.work != host.work) return false;
  const auto fits = [&](const Run& run) {
    return run.goal == hosts.front().goal && may_have(run, host.work);
  };
  if (!std::ranges::all_of(runs, fits)) return false;
  std::vector<const Run*> all = pointers_to(hosts);
  for (const Run& run : runs) all.push_back(&run);
  return scaling_if_any(all) == host.scaling;
}

// Runs of one size have no type of their own, and a system of which nothing was varied names none
// of its work: they join the one table that holds their like.
void settle(Groups& groups) {
  for (auto it = groups.begin(); it != groups.end();) {
    const auto& key = it->first;
    std::vector<StudyKey> hosts;
    if (key.scaling == Scaling::one_size || key.work.empty()) {
      for (const auto& [other, runs] : groups) {
        if (other != key && may_join(key, it->second, other, runs)) hosts.push_back(other);
      }
    }
    if (hosts.size() != 1) {
      ++it;
      continue;
    }
    auto& host = groups[hosts.front()];
    std::move(it->second.begin(), it->second.end(), std::back_inserter(host));
    it = groups.erase(it);
  }
}

bool is_one_size(const std::vector<Run>& runs) {
  return std::ranges::all_of(
      runs, [&](const Run& run) { return run->layout.gpus == runs.front()->layout.gpus; });
}

// Systems of one size each show only together what their sizes hold fixed; if that is nothing, each
// size is a table.
void judge_together(Groups& groups) {
  Groups judged;
  for (auto& [key, runs] : groups) {
    StudyKey now = key;
    const bool apart = key.scaling == Scaling::one_size && !is_one_size(runs);
    const auto type = apart ? scaling_if_any(pointers_to(runs)) : key.scaling;
    if (type) now.scaling = *type;
    if (compares_rates(now.scaling)) now.only_rates = false;
    for (Run& run : runs) {
      if (!type) now.work = {{"gpus", static_cast<double>(run->layout.gpus)}};
      judged[now].push_back(std::move(run));
    }
  }
  groups = std::move(judged);
}

}  // namespace

std::string to_text(const Amount& amount) {
  const auto* number = std::get_if<double>(&amount);
  return number != nullptr ? fmt::format("{}", *number) : std::get<std::string>(amount);
}

bool may_have(const Run& run, const Work& work) {
  return std::ranges::all_of(work, [&](const auto& quantity) {
    return find_work(run, quantity.first).value_or(quantity.second) == quantity.second;
  });
}

Groups grouped(std::vector<Run> runs, bool pooled) {
  const RelatedStudies related(runs, pooled);
  // With its kind, its system and its studies.
  using System = std::tuple<TableKind, std::string, std::string, std::string>;
  const auto describe_system = [&](const Run& run) -> System {
    return {kind_of_table(run), run->kind, run.system, related.names(run)};
  };
  std::map<System, std::size_t> counts;
  for (const Run& run : runs) ++counts[describe_system(run)];
  // What is emptied is freed at once, and nothing grows by doubling: of 100,000 runs each such
  // vector takes more than 100 MB.
  std::map<System, std::vector<Run>> systems;
  for (const auto& [system, count] : counts) systems[system].reserve(count);
  for (Run& run : runs) systems[describe_system(run)].push_back(std::move(run));
  std::vector<Run>().swap(runs);
  Groups groups;
  for (auto& [system, members] : systems) {
    const std::vector<const Run*> all = pointers_to(members);
    Split parts;
    if (!scaling_if_any(all)) parts = apart(members);
    if (parts.empty()) parts[{}] = all;
    for (const auto& [work, part] : parts) {
      const auto& [workload, precision, unit, cores] = std::get<0>(system);
      StudyKey key{workload, precision, unit, std::get<3>(system), classify_scaling(part),
                   cores,    false,     work};
      key.only_rates =
          !compares_rates(key.scaling) &&
          std::ranges::any_of(part, [](const Run* run) { return !run->fit_seconds(); });
      auto& group = groups[key];
      group.reserve(group.size() + part.size());
      for (const Run* run : part) {
        group.push_back(std::move(members[static_cast<std::size_t>(run - members.data())]));
      }
    }
    std::vector<Run>().swap(members);
  }
  judge_together(groups);
  settle(groups);
  return groups;
}

}  // namespace paceline
