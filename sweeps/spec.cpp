#include "sweeps/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/core/json_field.h"
#include "engine/core/text.h"
#include "results/names.h"
#include "results/shipped.h"

namespace paceline {

namespace {

constexpr std::size_t kLongestName = 100;
constexpr std::size_t kMaxSpecBytes = 1 << 20;
constexpr std::size_t kMaxValues = 10000;
constexpr std::int64_t kMaxRepeats = 1000, kMaxSeed = 0x7fffffff;

// Names of backends and devices are checked as well as types and ranges.
Value checked_parameter(const std::string& name, const Value& raw, const std::string& where) {
  Value value = checked_value(name, raw, where);
  if (name == "backend" || name == "device") find_name(name, to_text(value), where);
  return value;
}

bool is_there(const std::vector<Value>& values, const Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool is_of_a_program(const std::string& key) {
  const auto& keys = program_keys();
  return key == "programs" || std::find(keys.begin(), keys.end(), key) != keys.end();
}

// Of what becomes a folder, or is named on a command line.
bool is_plain_name(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  });
}

class SpecReader {
 public:
  explicit SpecReader(const JsonDocument& document)
      : document_(document), root_(document, "see sweeps/README.md") {}

  // With schemas of the keys that stand alone; spec_schema() has those of axes and programs.
  JsonFieldReaders readers() {
    const std::vector<std::string> orders = {"interleaved", "sequential"};
    JsonFieldReaders all = {
        {"name",
         {[this](const JsonField& field) { read_name(field); },
          text_schema(R"(^\.|[^A-Za-z0-9._-])", kLongestName)}},
        {"description", into(spec_.description)},
        {"workload",
         {[this](const JsonField& field) { read_workload(field); },
          choice_schema(accepted_names("workload"))}},
        {"fixed", [this](const JsonField& field) { read_fixed(field); }},
        {"axes", [this](const JsonField& field) { read_axes(field); }},
        {"zip", [this](const JsonField& field) { read_zips(field); }},
        {"include", [this](const JsonField& field) { read_include(field); }},
        {"exclude", [this](const JsonField& field) { read_exclude(field); }},
        {"where",
         {[this](const JsonField& field) { spec_.condition.emplace(field.text(), field.where()); },
          kTextSchema}},
        {"repeats", into(spec_.repeats, 1, kMaxRepeats)},
        {"order",
         {[this, orders](const JsonField& field) {
            spec_.interleaved = field.choice(orders) == orders.front();
          },
          choice_schema(orders)}},
        {"seed", into(spec_.seed, 0, kMaxSeed)},
        {"timeout_seconds",
         {[this](const JsonField& field) { spec_.timeout_seconds = field.above_zero(); },
          kAboveZeroSchema}},
        {"control", into(spec_.control)},
    };
    // These are read when the others are known.
    const auto later = [](const JsonField&) {};
    for (const std::string& key : program_keys()) all.emplace_back(key, later);
    all.emplace_back("programs", later);
    all.emplace_back(
        "set", JsonFieldReader(later, list_schema(R"({"type": "string", "pattern": "^[^=]+=."})")));
    return all;
  }

  Spec read() {
    spec_.where = document_.name();
    const JsonFieldReaders known_keys = readers();
    for (const JsonField& field : root_.members()) {
      const std::string& key = field.key();
      const auto known = std::ranges::find(known_keys, key, &JsonFieldReaders::value_type::first);
      if (known != known_keys.end() || !find_parameter(key)) continue;
      field.fail(fmt::format("\"{}\" is an axis, not a key", key), find_parameter(key)->identity()
                                                                       ? "put it into fixed or axes"
                                                                       : "put it into fixed");
    }
    root_.read(known_keys);
    root_.at("name");
    root_.at("workload");
    if (!root_.find("seed")) spec_.seed = hash_value(spec_.name) & kMaxSeed;
    read_programs();
    if (const auto set = root_.find("set")) apply_set(*set);
    return std::move(spec_);
  }

 private:
  // Either the spec's own keys are one program's, or "programs" has several by name.
  void read_programs() {
    bool has_own = false;
    for (const JsonField& field : root_.members()) {
      if (!is_of_a_program(field.key())) continue;
      if (spec_.workload != kCommandWorkload) {
        field.fail(fmt::format("\"{}\" is for workload command, and this is {}", field.key(),
                               spec_.workload),
                   "leave it out, or set \"workload\": \"command\"");
      }
      has_own = has_own || field.key() != "programs";
    }
    if (spec_.workload != kCommandWorkload) return;
    const auto several = root_.find("programs");
    if (several && has_own) {
      several->fail("command and programs cannot be combined", "put all into programs");
    }
    if (!several && !has_own) {
      root_.fail("workload command needs a \"command\"", "add it, a list of words");
    }
    if (!several) {
      add_program(spec_.name, root_);
    } else {
      const auto programs = several->members("an object of names and programs");
      if (programs.empty()) several->fail("programs has no program", "add one");
      for (const JsonField& program : programs) {
        program.check_keys(program_keys());
        add_program(program.key(), program);
      }
    }
    check_program_values();
  }

  void add_program(const std::string& name, const JsonField& field) {
    if (!is_plain_name(name)) {
      field.fail(fmt::format("a program cannot be named \"{}\"", name),
                 "use letters, digits, - _ .");
    }
    const auto folder = std::filesystem::path(document_.name()).parent_path();
    spec_.programs.push_back(
        parse_program_object(field, name, folder.empty() ? "." : folder.string()));
  }

  // Several programs that no axis names are all run.
  void check_program_values() {
    const auto processes = spec_.places.find("processes");
    if (processes != spec_.places.end()) {
      throw input_error("processes is a key of a program, not an axis", processes->second,
                        "put it beside command");
    }
    if (spec_.places.contains("program") || spec_.programs.size() == 1) return;
    Axis axis{"program", {}, root_.at("programs").where()};
    for (const UserProgram& program : spec_.programs) axis.values.emplace_back(program.name);
    spec_.places.emplace("program", axis.where);
    spec_.axes.insert(spec_.axes.begin(), std::move(axis));
  }

  // The name becomes a folder.
  void read_name(const JsonField& field) {
    spec_.name = field.text();
    if (!is_plain_name(spec_.name) || spec_.name.starts_with(".") ||
        spec_.name.size() > kLongestName) {
      field.fail(fmt::format("the name \"{}\" cannot be a folder's", spec_.name),
                 "use letters, digits, - _ .");
    }
  }

  void read_workload(const JsonField& field) {
    spec_.workload = field.text();
    find_name("workload", spec_.workload, field.where());
  }

  void read_fixed(const JsonField& field) {
    spec_.fixed = point(field);
    for (const JsonField& member : field.members()) claim(member);
  }

  void read_axes(const JsonField& field) {
    spec_.axes = axes(field);
    for (const Axis& axis : spec_.axes) {
      std::set<std::string> seen;
      const auto values = field.at(axis.name).elements();
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::string text = to_text(axis.values[i]);
        if (seen.insert(text).second) continue;
        values[i].fail(fmt::format("axis {} has {} twice", axis.name, text),
                       "remove one, or raise repeats to run it more often");
      }
    }
  }

  // Replaces axes, so it is applied when all of them are known.
  void apply_set(const JsonField& field) {
    for (const JsonField& element : field.elements("a list of texts as \"axis=value\"")) {
      try {
        override_axis(spec_, element.text());
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::input) throw;
        element.fail(error.what());
      }
    }
  }

  static Value parameter(const std::string& name, const JsonField& field) {
    const std::string where = field.where();
    return checked_parameter(name, value_from_json(field.value(), where), where);
  }

  static void check_axis_name(const JsonField& field) {
    if (!find_parameter(field.key())) checked_value(field.key(), false, field.where());  // throws
  }

  // An axis has one source only.
  void claim(const JsonField& field) {
    const auto [it, first] = spec_.places.emplace(field.key(), field.where());
    if (first) return;
    field.fail(fmt::format("axis {} is given twice, first at {}", field.key(), it->second),
               "keep one of them");
  }

  static Point point(const JsonField& field) {
    Point result;
    for (const JsonField& member : field.members("an object of axis names and values")) {
      check_axis_name(member);
      result.set(member.key(), parameter(member.key(), member));
    }
    return result;
  }

  Axis axis(const JsonField& field) {
    const std::string& name = field.key();
    check_axis_name(field);
    claim(field);
    if (!find_parameter(name)->identity()) {
      field.fail(fmt::format("{} changes nothing that is measured, so it cannot be an axis", name),
                 "put it into fixed");
    }
    const auto values = field.elements("a list of values");
    if (values.empty()) field.fail(fmt::format("axis {} has no values", name), "give at least one");
    if (values.size() > kMaxValues) {
      field.fail(fmt::format("axis {} has more than {} values", name, kMaxValues), "shorten it");
    }
    Axis result{name, {}, field.where()};
    for (const JsonField& value : values) result.values.push_back(parameter(name, value));
    return result;
  }

  std::vector<Axis> axes(const JsonField& field) {
    return mapped(field.members("an object of axis names and lists"),
                  [this](const JsonField& member) { return axis(member); });
  }

  // One object, or a list of several that are multiplied with each other.
  void read_zips(const JsonField& field) {
    if (!field.value().is_array()) return read_zip(field);
    for (const JsonField& element : field.elements()) read_zip(element);
  }

  void read_zip(const JsonField& field) {
    Zip zip = axes(field);
    if (zip.empty()) field.fail("a zip needs axes", "add some, or remove it");
    const Axis& first = zip.front();
    for (const Axis& axis : zip) {
      if (axis.values.size() == first.values.size()) continue;
      field.at(axis.name).fail(
          fmt::format("zipped axes {} and {} have {} and {} values", first.name, axis.name,
                      first.values.size(), axis.values.size()),
          "make them as long as each other");
    }
    spec_.zips.push_back(std::move(zip));
  }

  void read_include(const JsonField& field) {
    const auto points = field.elements("a list of points");
    if (points.size() > kMaxValues) field.fail("include is too long", "use axes");
    for (const JsonField& each : points) spec_.include.push_back({point(each), each.where()});
  }

  void read_exclude(const JsonField& field) {
    const auto parts = field.elements("a list of points and expressions");
    if (parts.size() > kMaxValues) field.fail("exclude is too long", "use an expression");
    for (const JsonField& each : parts) {
      if (each.value().is_string()) {
        spec_.exclude_if.emplace_back(each.text(), each.where());
        continue;
      }
      spec_.exclude.push_back({point(each), each.where()});
      if (spec_.exclude.back().point.empty()) {
        each.fail("an empty point would exclude everything", "name axes, or remove it");
      }
    }
  }

  const JsonDocument& document_;
  const JsonField root_;
  Spec spec_;
};

// True if a zip varied it.
bool forget_axis(Spec& spec, const std::string& name) {
  spec.fixed.erase(name);
  std::size_t varied = 0;
  for (Zip& zip : spec.zips) {
    varied += std::erase_if(zip, [&](const Axis& axis) { return axis.name == name; });
  }
  std::erase_if(spec.zips, [](const Zip& zip) { return zip.empty(); });
  return varied > 0;
}

Axis parse_override(const std::string& assignment) {
  const std::string where = "--set " + assignment;
  const auto equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == assignment.size()) {
    throw usage_error("expected axis=value or axis=v1,v2", where, "give both");
  }
  Axis axis{assignment.substr(0, equals), {}, where};
  for (const std::string& word : split(assignment.substr(equals + 1), ',')) {
    const Value value = checked_parameter(axis.name, parsed_value(axis.name, word, where), where);
    if (is_there(axis.values, value)) {
      throw usage_error(fmt::format("{} occurs twice", word), where, "remove one");
    }
    axis.values.push_back(value);
  }
  if (axis.values.size() > 1 && !find_parameter(axis.name)->identity()) {
    throw usage_error(fmt::format("{} changes nothing that is measured", axis.name), where,
                      "give one value");
  }
  return axis;
}

}  // namespace

std::string spec_schema() {
  const JsonDocument none("", "{}");
  Json schema = Json::parse(object_schema(SpecReader(none).readers()));
  add_spec_rules(schema);
  return schema_document("Spec of a study of Paceline", schema);
}

Spec parse_spec(const std::string& name, std::string_view text) {
  const JsonDocument document(name, without_comments(text));
  Spec spec = SpecReader(document).read();
  spec.text = text;
  return spec;
}

std::string to_text(const Spec& spec) {
  Json json = JsonDocument(spec.where, without_comments(spec.text)).value();
  json["name"] = spec.name;
  json["repeats"] = spec.repeats;
  if (spec.control) json["control"] = true;
  if (spec.timeout_seconds > 0) json["timeout_seconds"] = spec.timeout_seconds;
  if (!spec.set.empty()) json["set"] = spec.set;
  // It is read from another folder, then.
  for (const UserProgram& program : spec.programs) {
    Json& own = json.contains("programs") ? json["programs"][program.name] : json;
    own["directory"] = program.directory;
  }
  return json_text(json, 2) + "\n";
}

Spec read_spec(const std::filesystem::path& file) {
  const std::filesystem::path found = find_shipped(file, "sweeps");
  return parse_spec(found.string(), read_text(found, kMaxSpecBytes));
}

void override_axis(Spec& spec, const std::string& assignment) {
  Axis axis = parse_override(assignment);
  spec.set.push_back(assignment);
  const bool varied = forget_axis(spec, axis.name);
  spec.places[axis.name] = axis.where;
  std::erase_if(spec.include, [&](const SpecPoint& included) {
    const Value* value = included.point.find(axis.name);
    return value && !is_there(axis.values, *value);
  });
  for (SpecPoint& included : spec.include) included.may_repeat = true;
  const auto same = std::ranges::find(spec.axes, axis.name, &Axis::name);
  if (same != spec.axes.end()) {
    *same = std::move(axis);
  } else if (varied || axis.values.size() > 1) {
    spec.axes.push_back(std::move(axis));
  } else {
    spec.fixed.set(axis.name, axis.values.front());
  }
}

void change_values(Spec& spec, const std::string& name,
                   const std::function<Value(const Value&)>& change) {
  const auto change_in = [&](Point& point) {
    if (const Value* value = point.find(name)) point.set(name, change(*value));
  };
  change_in(spec.fixed);
  for (Axis& axis : spec.axes) {
    if (axis.name != name) continue;
    std::vector<Value> values;
    for (const Value& value : axis.values) {
      if (const Value changed = change(value); !is_there(values, changed))
        values.push_back(changed);
    }
    axis.values = std::move(values);
  }
  for (Zip& zip : spec.zips) {
    for (Axis& axis : zip) {
      if (axis.name != name) continue;
      std::transform(axis.values.begin(), axis.values.end(), axis.values.begin(), change);
    }
  }
  for (SpecPoint& point : spec.include) {
    change_in(point.point);
    point.may_repeat = true;
  }
  for (SpecPoint& point : spec.exclude) change_in(point.point);
}

}  // namespace paceline
