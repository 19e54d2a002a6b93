#include "results/match.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/text.h"
#include "results/run_record.h"

namespace paceline {

namespace {

std::string cpus_text(const LayoutFacts& layout, MatchCpus which) {
  if (which == MatchCpus::matched) {
    which = layout.replicas_are != "gpus" ? MatchCpus::of_replica : MatchCpus::of_task;
  }
  if (which == MatchCpus::of_task) return std::to_string(layout.cpus_per_task.value_or(-1));
  const auto cpus = replica_cpus(layout);
  return cpus ? fmt::format("{:g}", *cpus) : "-";
}

std::string value_text(std::string_view name, const Value& value, bool programs_by_name) {
  return programs_by_name && name == "program" ? name_of_program(to_text(value)) : to_text(value);
}

}  // namespace

std::optional<double> replica_cpus(const LayoutFacts& layout) {
  if (layout.cpus_per_replica) return *layout.cpus_per_replica;
  if (!layout.cpus_per_task) return std::nullopt;
  return static_cast<double>(*layout.cpus_per_task) * layout.ntasks.value_or(1) / layout.gpus;
}

bool MatchRule::counts(const Parameter& parameter) const {
  if (only) return std::ranges::find(*only, parameter.name) != only->end();
  return parameter.identity() && std::ranges::find(without, parameter.role) == without.end() &&
         !(without_sized && parameter.follows_size) &&
         std::ranges::find(except, parameter.name) == except.end();
}

bool MatchRule::counts(std::string_view name) const {
  return counts(*find_parameter(name));
}

MatchRule MatchRule::row() {
  return {.kind = true,
          .system = true,
          .backend = true,
          .replicas = true,
          .nodes = true,
          .tasks = true,
          .cpus = MatchCpus::of_task,
          .without = {Role::layout, Role::table, Role::replication}};
}

MatchRule MatchRule::point() {
  return {.kind = true, .without = {Role::replication}};
}

MatchRule MatchRule::base() {
  return {.kind = true,
          .cpus = MatchCpus::matched,
          .without = {Role::layout, Role::replication, Role::threads},
          .without_sized = true};
}

MatchRule MatchRule::base(const std::vector<std::string>& axes) {
  return {.kind = true, .system = true, .backend = true, .cpus = MatchCpus::matched, .only = axes};
}

MatchRule MatchRule::setting(const std::string& axis, std::vector<std::string> axes,
                             bool replicas_are_cores) {
  MatchRule rule = base(axes);
  std::erase(axes, axis);
  rule.only = std::move(axes);
  rule.backend = axis != "backend";
  rule.replicas = axis != "gpus";
  rule.nodes = axis != "gpus" && axis != "nodes";
  if (axis == (replicas_are_cores ? "cpus_per_replica" : "cpus_per_task")) {
    rule.cpus = MatchCpus::none;
  } else if (axis == "program") {  // each divides its replicas into tasks in its own way
    rule.cpus = MatchCpus::of_replica;
  }
  return rule;
}

MatchRule MatchRule::but_for(std::string_view parameter, bool (*follows)(const Parameter&)) {
  MatchRule rule{.kind = true,
                 .system = true,
                 .replicas = true,
                 .cpus = MatchCpus::of_replica,
                 .without = {Role::replication, Role::threads},
                 .except = {parameter}};
  for (const Parameter& each : recorded_parameters()) {
    if (follows(each)) rule.except.push_back(each.name);
  }
  return rule;
}

MatchRule MatchRule::but_for_cpus() {
  MatchRule rule = row();
  rule.cpus = MatchCpus::none;
  rule.without.push_back(Role::threads);
  return rule;
}

MatchRule MatchRule::but_for_program() {
  MatchRule rule = row();
  rule.backend = rule.tasks = false;
  rule.cpus = MatchCpus::none;
  for (const Parameter& each : recorded_parameters()) {
    if (each.need == Requirement::own_program) rule.except.push_back(each.name);
  }
  return rule;
}

MatchRule MatchRule::planned_base() {
  return {.backend = true,
          .cpus = MatchCpus::matched,
          .without = {Role::layout, Role::replication, Role::work},
          .without_sized = true};
}

PointKey::PointKey(const MatchSubject& subject, const MatchRule& rule) {
  add_to_key(text_, subject.workload);
  if (rule.kind) add_to_key(text_, subject.kind);
  if (rule.system) add_to_key(text_, subject.system);
  if (rule.backend) add_to_key(text_, subject.backend);
  if (rule.replicas) text_ += fmt::format("{} ", subject.layout->gpus);
  if (rule.nodes) text_ += fmt::format("{} ", subject.layout->nodes.value_or(-1));
  if (rule.tasks) text_ += fmt::format("{} ", subject.layout->ntasks.value_or(-1));
  if (rule.cpus != MatchCpus::none) text_ += cpus_text(*subject.layout, rule.cpus) + ' ';
  if (rule.only) {
    for (const std::string& name : *rule.only) {
      const auto text = subject.parameters.text(name);
      text_ += text ? '=' : '-';
      add_to_key(text_, text.value_or(""));
    }
    return;
  }
  for (const auto& [name, value] : subject.parameters.values()) {
    if (!rule.counts(name)) continue;
    add_to_key(text_, name);
    add_to_key(text_, to_text(value));
  }
}

bool serves(const Point& given, const Point& wanted, const MatchRule& rule) {
  return std::ranges::all_of(wanted.values(), [&](const auto& parameter) {
    return !rule.counts(parameter.first) ||
           given.text(parameter.first) == to_text(parameter.second);
  });
}

PointDifferences differences(const Point& was, const Point& is, const MatchRule& rule,
                             bool programs_by_name) {
  PointDifferences found;
  for (const Parameter& parameter : recorded_parameters()) {
    if (!rule.counts(parameter)) continue;
    const Value *before = was.find(parameter.name), *now = is.find(parameter.name);
    if (before == nullptr && now == nullptr) continue;
    const auto text = [&](const Value& value) {
      return value_text(parameter.name, value, programs_by_name);
    };
    if (before == nullptr) {
      found.one_sided.push_back(fmt::format("{} is {}, was not given", parameter.name, text(*now)));
    } else if (now == nullptr) {
      found.one_sided.push_back(
          fmt::format("{} was {}, is not given now", parameter.name, text(*before)));
    } else if (text(*before) != text(*now)) {
      found.changed.push_back(
          fmt::format("{} was {}, is {}", parameter.name, text(*before), text(*now)));
    }
  }
  return found;
}

std::vector<std::string> varying_parameters(const std::vector<const Point*>& points,
                                            const MatchRule& rule) {
  std::vector<std::string> names;
  for (const Parameter& parameter : recorded_parameters()) {
    if (!rule.counts(parameter) || points.empty()) continue;
    const auto first = points.front()->text(parameter.name);
    const bool varies = std::ranges::any_of(
        points, [&](const Point* point) { return point->text(parameter.name) != first; });
    if (varies) names.emplace_back(parameter.name);
  }
  return names;
}

}  // namespace paceline
