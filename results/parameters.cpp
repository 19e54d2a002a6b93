#include "results/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "results/names.h"
#include "results/schema.h"

namespace paceline {

const std::vector<Group>& groups() {
  using enum Group;
  static const std::vector<Group> all = {place,       precision,   model, batch,
                                         schedule,    evaluation,  input, communication,
                                         checkpoints, measurement, output};
  return all;
}

constexpr EnumName<Group> kGroupTitles[] = {{Group::place, "Where it runs"},
                                            {Group::precision, "Precision"},
                                            {Group::model, "Model"},
                                            {Group::batch, "Batch and length"},
                                            {Group::schedule, "Optimizer and schedule"},
                                            {Group::evaluation, "Evaluation"},
                                            {Group::input, "Input"},
                                            {Group::communication, "Communication"},
                                            {Group::checkpoints, "Checkpoints"},
                                            {Group::measurement, "Measurement"},
                                            {Group::output, "Output"}};

std::string_view group_title(Group group) {
  return name_in(kGroupTitles, group);
}

bool has_role(std::string_view name, Role role) {
  const Parameter* parameter = find_parameter(name);
  return parameter != nullptr && parameter->role == role;
}

std::string option_name(std::string_view parameter) {
  std::string name = "--" + std::string(parameter);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

const Parameter* find_parameter(std::string_view name) {
  static const auto index = [] {
    std::unordered_map<std::string_view, const Parameter*> rows;
    for (const Parameter& parameter : recorded_parameters())
      rows.emplace(parameter.name, &parameter);
    return rows;
  }();
  const auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

std::string to_text(const Value& value) {
  struct Visitor {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return v; }
  };
  return std::visit(Visitor{}, value);
}

namespace {

const Parameter& known_parameter(std::string_view name, const std::string& where,
                                 bool may_be_gone = false) {
  const Parameter* parameter = find_parameter(name);
  if (parameter && (may_be_gone || !parameter->is_gone)) return *parameter;
  std::vector<std::string> names =
      mapped(parameters(), [](const Parameter& parameter) { return std::string(parameter.name); });
  const auto instead = find_replacement("axis", name);
  throw usage_error(fmt::format("unknown axis \"{}\"", name), where,
                    instead ? *instead : suggestion(name, names));
}

[[noreturn]] void refuse(const Parameter& parameter, std::string_view text, std::string_view wanted,
                         const std::string& where) {
  throw usage_error(fmt::format("{} cannot be \"{}\"", parameter.name, text), where,
                    fmt::format("give {}", wanted));
}

void check_range(const Parameter& parameter, double number, std::string_view text,
                 const std::string& where) {
  const auto dots = parameter.values.find("..");
  if (dots == std::string_view::npos) return;
  const auto low = to_real(parameter.values.substr(0, dots));
  const auto high = to_real(parameter.values.substr(dots + 2));
  if (low && number < *low) refuse(parameter, text, fmt::format("at least {}", *low), where);
  if (high && number > *high) refuse(parameter, text, fmt::format("at most {}", *high), where);
}

void check_choice(const Parameter& parameter, const std::string& text, const std::string& where) {
  if (parameter.values.empty()) return;
  const auto choices = split(parameter.values, '|');
  if (!std::ranges::count(choices, text)) refuse(parameter, text, join(choices, ", "), where);
}

Value checked(const Parameter& parameter, const Value& value, const std::string& where,
              bool may_be_gone) {
  const std::string text = to_text(value);
  switch (parameter.kind) {
    case ValueKind::boolean:
      if (!std::holds_alternative<bool>(value)) refuse(parameter, text, "true or false", where);
      return value;
    case ValueKind::integer:
      if (!std::holds_alternative<std::int64_t>(value)) {
        refuse(parameter, text, "a whole number", where);
      }
      if (std::get<std::int64_t>(value) > kMostOfAParameter) {
        refuse(parameter, text, "a number below 2^40", where);
      }
      check_range(parameter, static_cast<double>(std::get<std::int64_t>(value)), text, where);
      return value;
    case ValueKind::real: {
      double number = 0;
      if (const auto* integer = std::get_if<std::int64_t>(&value)) {
        number = static_cast<double>(*integer);
      } else if (const auto* real = std::get_if<double>(&value); real && std::isfinite(*real)) {
        number = *real;
      } else {
        refuse(parameter, text, "a number", where);
      }
      check_range(parameter, number, text, where);
      return number;
    }
    case ValueKind::text:
      if (const auto* integer = std::get_if<std::int64_t>(&value);
          integer && parameter.name == "steps_per_epoch") {
        return std::to_string(*integer);
      }
      if (!std::holds_alternative<std::string>(value) || text.empty()) {
        refuse(parameter, text, "a text", where);
      }
      if (const std::string fault = fault_of_text(text); !fault.empty()) {
        throw usage_error(fmt::format("the text of {} {}", parameter.name, fault), where,
                          "take it out");
      }
      if (!may_be_gone) check_choice(parameter, text, where);
      return our_name(parameter.name, text);
  }
  return value;
}

const Parameter& parameter_named(std::string_view name) {
  if (const Parameter* parameter = find_parameter(name)) return *parameter;
  throw internal_error(fmt::format("unknown parameter {}", name));
}

// A table's rows lie in its order.
bool stands_before(const std::pair<std::string, Value>& entry, const Parameter* wanted) {
  return &parameter_named(entry.first) < wanted;
}

std::string backend_name(const Point& parameters) {
  return parameters.text("backend").value_or(lone_backend());
}

// The replicas of one task: those of a node where a task sums its own, else one.
int replicas_per_task(const Point& parameters, const Layout& layout, bool one_a_node,
                      const std::string& where) {
  const int of_a_node = layout.gpus / layout.nodes;
  const auto given = parameters.integer("gpus_per_task");
  if (!given) return one_a_node ? of_a_node : 1;
  if (parameters.find("processes")) {
    throw usage_error("gpus_per_task is not for a program of your own", where,
                      "leave it out: \"processes\" says how often the program starts");
  }
  if (!one_a_node && *given != 1) {
    throw usage_error(fmt::format("backend {} has one replica in a task, not {}",
                                  backend_name(parameters), *given),
                      where, "use mirrored within the tasks, such as mirrored/mpi");
  }
  if (of_a_node % *given != 0) {
    throw usage_error(fmt::format("{} replicas of a node cannot be tasks of {}", of_a_node, *given),
                      where, "make gpus / nodes a multiple of gpus_per_task");
  }
  return static_cast<int>(*given);
}

int bounded(std::int64_t count, const char* name, const std::string& where) {
  constexpr std::int64_t kMost = 10'000'000;
  if (count > kMost) {
    throw usage_error(fmt::format("{} cannot be {}", name, count), where,
                      fmt::format("give at most {}", kMost));
  }
  return static_cast<int>(count);
}

Layout make_layout(const Point& parameters, const Name& known, const std::string& where) {
  Layout layout;
  layout.gpus = bounded(parameters.integer("gpus").value_or(1), "gpus", where);
  layout.nodes = bounded(parameters.integer("nodes").value_or(1), "nodes", where);
  layout.replicas_are_cores = !find_name("device", Settings(parameters).text("device"), where).gpus;
  const std::string backend = backend_name(parameters);
  if (layout.gpus % layout.nodes != 0) {
    throw usage_error(
        fmt::format("{} replicas cannot be spread evenly over {} nodes", layout.gpus, layout.nodes),
        where, "make gpus a multiple of nodes");
  }
  const auto processes = parameters.text("processes");  // of a program that needs no backend
  if (!processes && !parameters.find("backend") && layout.gpus > 1) {
    throw usage_error(fmt::format("{} replicas need a backend", layout.gpus), where,
                      "choose one, e.g. mpi (paceline list backends)");
  }
  if (!processes && known.alone && layout.gpus > 1) {
    throw usage_error(fmt::format("backend {} supports one replica, not {}", backend, layout.gpus),
                      where, "choose another backend (paceline list backends)");
  }
  const bool one_a_node = processes ? *processes != "replica" : known.tasks == "node";
  const int of_a_task = replicas_per_task(parameters, layout, one_a_node, where);
  layout.ntasks = layout.gpus / of_a_task;
  if (!processes && known.one_task && layout.ntasks > 1) {
    throw usage_error(fmt::format("backend {} sums within one task, and these are {} on {}",
                                  backend, layout.ntasks, counted(layout.nodes, "node")),
                      where,
                      known.inside
                          ? fmt::format("put another between the tasks, such as {}/mpi", backend)
                          : "use one task, or another backend (paceline list backends)");
  }
  const auto per_task = parameters.integer("cpus_per_task");
  const auto per_replica = parameters.integer("cpus_per_replica");
  layout.cpus_per_task =
      bounded(per_task.value_or(bounded(per_replica.value_or(1), "cpus_per_replica", where) *
                                std::int64_t{of_a_task}),
              "cpus_per_task", where);
  layout.cpus_per_replica = layout.cpus_per_task / of_a_task;
  if (per_task && per_replica && *per_replica != layout.cpus_per_replica) {
    throw usage_error(fmt::format("cpus_per_task {} and cpus_per_replica {} contradict each other "
                                  "with {} replicas a task",
                                  *per_task, *per_replica, of_a_task),
                      where, "give one of them");
  }
  if (layout.cpus_per_replica < 1 && layout.replicas_are_cores) {
    throw usage_error(
        fmt::format("{} replicas in a task of {} CPUs", of_a_task, layout.cpus_per_task), where,
        "give each replica at least one: raise cpus_per_task");
  }
  return layout;
}

}  // namespace

Value checked_value(std::string_view name, const Value& value, const std::string& where) {
  return checked(known_parameter(name, where), value, where, false);
}

Value recorded_value(std::string_view name, const Value& value, const std::string& where) {
  return checked(known_parameter(name, where, true), value, where, true);
}

Value parsed_value(std::string_view name, std::string_view text, const std::string& where) {
  const Parameter& parameter = known_parameter(name, where);
  switch (parameter.kind) {
    case ValueKind::boolean:
      if (text == "true" || text == "false") return text == "true";
      refuse(parameter, text, "true or false", where);
    case ValueKind::integer:
      if (auto number = to_integer(text)) return checked_value(name, *number, where);
      refuse(parameter, text, "a whole number", where);
    case ValueKind::real:
      if (auto number = to_real(text)) return checked_value(name, *number, where);
      refuse(parameter, text, "a number", where);
    case ValueKind::text:
      return checked_value(name, std::string(text), where);
  }
  return std::string(text);
}

Point::Point(std::initializer_list<std::pair<std::string_view, Value>> values) {
  for (const auto& [name, value] : values) set(name, value);
}

void Point::set(std::string_view name, Value value) {
  const Parameter& parameter = parameter_named(name);
  const auto it = std::lower_bound(values_.begin(), values_.end(), &parameter, stands_before);
  if (it != values_.end() && it->first == parameter.name) {
    it->second = std::move(value);
  } else {
    values_.emplace(it, std::string(parameter.name), std::move(value));
  }
}

void Point::set_default(std::string_view name, Value value) {
  if (!find(name)) set(name, std::move(value));
}

void Point::erase(std::string_view name) {
  std::erase_if(values_, [&](const auto& entry) { return entry.first == name; });
}

const Value* Point::find(std::string_view name) const {
  for (const auto& [key, value] : values_) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::optional<std::int64_t> Point::integer(std::string_view name) const {
  const Value* value = find(name);
  if (!value || !std::holds_alternative<std::int64_t>(*value)) return std::nullopt;
  return std::get<std::int64_t>(*value);
}

std::optional<double> Point::real(std::string_view name) const {
  const Value* value = find(name);
  if (!value) return std::nullopt;
  if (const auto* number = std::get_if<double>(value)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(value)) return static_cast<double>(*number);
  return std::nullopt;
}

std::optional<std::string> Point::text(std::string_view name) const {
  const Value* value = find(name);
  if (!value) return std::nullopt;
  return to_text(*value);
}

Json to_json(const Point& point) {
  Json json = Json::object();
  for (const auto& [name, value] : point.values()) {
    json[name] = std::visit([](const auto& v) { return Json(v); }, value);
  }
  return json;
}

Value value_from_json(const Json& json, const std::string& where) {
  // Larger whole numbers than any that is kept are out of every range.
  const bool is_larger = json.is_number_unsigned() && json.get<std::uint64_t>() >> 63 != 0;
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer() && !is_larger) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  throw input_error("the value must be a number, a text, true or false", where, "give one");
}

std::string Point::text() const {
  std::string text;
  for (const auto& [name, value] : values_) {
    if (!text.empty()) text += ',';
    text += name + '=' + to_text(value);
  }
  return text;
}

std::string Point::folder() const {
  std::string encoded;
  for (const char c : text()) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) ||
                       std::string_view("=,._+-").find(c) != std::string_view::npos;
    encoded += plain ? std::string(1, c)
                     : fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return encoded.empty() ? "point" : encoded;
}

std::string name_of_program(const std::string& tag) {
  return tag.substr(0, tag.rfind('@'));
}

bool is_with(const Point& point, const Parameter& parameter) {
  if (parameter.with.parameter.empty()) return true;
  const Parameter& other = *find_parameter(parameter.with.parameter);
  std::optional<std::string> value = point.text(other.name);
  if (!value && !other.initial.empty() && !parameter.with.values.empty()) value = other.initial;
  if (!value || parameter.with.values.empty()) return value.has_value();
  const auto values = split(parameter.with.values, '|');
  return std::find(values.begin(), values.end(), *value) != values.end();
}

void check_with(const Point& point) {
  for (const auto& [name, value] : point.values()) {
    const Parameter& parameter = *find_parameter(name);
    if (is_with(point, parameter)) continue;
    const auto& [other, values] = parameter.with;
    const auto first = split(values, '|').front();
    const std::string option = option_name(other);
    throw usage_error(values.empty() ? fmt::format("{} is for {}, which is not given", name, other)
                                     : fmt::format("{} is for {} {}", name, other,
                                                   join(split(values, '|'), " or ")),
                      "",
                      fmt::format("leave {} out, or give {}{}{}", name, option,
                                  values.empty() ? "" : " ", first));
  }
}

Value Settings::value(std::string_view name) const {
  if (const Value* given = point_.find(name)) return *given;
  const Parameter* parameter = find_parameter(name);
  if (parameter != nullptr && !parameter->initial.empty()) {
    return parsed_value(name, parameter->initial, "");
  }
  throw internal_error(fmt::format("parameter {} has no value", name));
}

std::string identity_hash(std::string_view workload, const Point& all_parameters) {
  Hash hash;
  hash.add(workload).add("\n");
  for (const auto& [name, value] : all_parameters.values()) {
    if (find_parameter(name)->identity()) hash.add(name + '=' + to_text(value) + '\n');
  }
  return hash.hex();
}

Layout make_layout(const Point& parameters, const std::string& where) {
  return make_layout(parameters, find_name("backend", backend_name(parameters), where), where);
}

Layout recorded_layout(const Point& parameters, const std::string& where) {
  return make_layout(parameters, recorded_backend(backend_name(parameters), where), where);
}

}  // namespace paceline
