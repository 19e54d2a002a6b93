#include "sweeps/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "results/names.h"
#include "results/shipped.h"

namespace paceline {

namespace {

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

class SpecReader {
 public:
  explicit SpecReader(const JsonDocument& document) : document_(document) {}

  Spec read() {
    const Json& root = document_.value();
    if (!root.is_object()) fail("a sweep spec is a JSON object", "");
    spec_.where = document_.name();
    for (const auto& [key, value] : root.items()) {
      if (!is_of_a_program(key)) read_key(key, value);
    }
    for (const char* key : {"name", "workload"}) {
      if (!root.contains(key)) fail(fmt::format("\"{}\" is missing", key), "", "add it");
    }
    if (!root.contains("seed")) spec_.seed = hash_value(spec_.name) & kMaxSeed;
    read_programs(root);
    if (root.contains("set")) apply_set(root["set"]);
    return std::move(spec_);
  }

 private:
  using Reader = void (SpecReader::*)(const Json& value, const std::string& path);

  [[noreturn]] void fail(const std::string& what, const std::string& path,
                         const std::string& fix = "see sweeps/README.md") const {
    throw Error(ErrorKind::input, what, document_.where(path), fix);
  }

  void read_key(const std::string& key, const Json& value) {
    static const std::map<std::string, Reader> kReaders = {
        {"name", &SpecReader::read_name},
        {"description", &SpecReader::read_description},
        {"workload", &SpecReader::read_workload},
        {"fixed", &SpecReader::read_fixed},
        {"axes", &SpecReader::read_axes},
        {"zip", &SpecReader::read_zips},
        {"include", &SpecReader::read_include},
        {"exclude", &SpecReader::read_exclude},
        {"where", &SpecReader::read_where},
        {"repeats", &SpecReader::read_repeats},
        {"order", &SpecReader::read_order},
        {"seed", &SpecReader::read_seed},
        {"timeout_seconds", &SpecReader::read_timeout},
        {"control", &SpecReader::read_control},
        {"set", &SpecReader::read_set},
    };
    const auto reader = kReaders.find(key);
    if (reader == kReaders.end()) {
      std::vector<std::string> known;
      for (const auto& entry : kReaders) known.push_back(entry.first);
      if (find_parameter(key)) {
        fail(fmt::format("\"{}\" is an axis, not a key", key), "/" + key,
             "put it into fixed or axes");
      }
      fail(fmt::format("unknown key \"{}\"", key), "/" + key, suggestion(key, known));
    }
    (this->*reader->second)(value, "/" + key);
  }

  static bool is_of_a_program(const std::string& key) {
    const auto& keys = program_keys();
    return key == "programs" || std::find(keys.begin(), keys.end(), key) != keys.end();
  }

  // Either the spec's own keys are one program's, or "programs" has several by name.
  void read_programs(const Json& root) {
    Json own = Json::object();
    for (const auto& [key, value] : root.items()) {
      if (!is_of_a_program(key)) continue;
      if (spec_.workload != kCommandWorkload) {
        fail(fmt::format("\"{}\" is for workload command, and this is {}", key, spec_.workload),
             "/" + key, "leave it out, or set \"workload\": \"command\"");
      }
      if (key != "programs") own[key] = value;
    }
    if (spec_.workload != kCommandWorkload) return;
    const auto several = root.find("programs");
    if (several != root.end() && !own.empty()) {
      fail("command and programs cannot be combined", "/programs", "put all into programs");
    }
    if (several == root.end()) {
      if (own.empty()) fail("workload command needs a \"command\"", "", "add it, a list of words");
      add_program(spec_.name, own, "");
    } else {
      if (!several->is_object() || several->empty()) {
        fail("programs must be an object of names and programs", "/programs");
      }
      for (const auto& [name, value] : several->items()) {
        add_program(name, value, "/programs/" + name);
      }
    }
    check_program_values();
  }

  void add_program(const std::string& name, const Json& object, const std::string& path) {
    const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
    });
    if (!plain) {
      fail(fmt::format("a program cannot be named \"{}\"", name), path,
           "use letters, digits, - _ .");
    }
    const auto folder = std::filesystem::path(document_.name()).parent_path();
    spec_.programs.push_back(parse_program_object(object, document_, path, name,
                                                  folder.empty() ? "." : folder.string()));
  }

  // Several programs that no axis names are all run.
  void check_program_values() {
    const auto processes = spec_.places.find("processes");
    if (processes != spec_.places.end()) {
      throw Error(ErrorKind::input, "processes is a key of a program, not an axis",
                  processes->second, "put it beside command");
    }
    if (spec_.places.contains("program") || spec_.programs.size() == 1) return;
    Axis axis{"program", {}, document_.where("/programs")};
    for (const UserProgram& program : spec_.programs) axis.values.emplace_back(program.name);
    spec_.places.emplace("program", axis.where);
    spec_.axes.insert(spec_.axes.begin(), std::move(axis));
  }

  static std::string make_key(const std::string& path) { return path.substr(path.rfind('/') + 1); }

  std::string text(const Json& value, const std::string& path) const {
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
      fail(fmt::format("{} must be a text", make_key(path)), path, "write it in quotes");
    }
    return value.get<std::string>();
  }

  std::int64_t whole(const Json& value, const std::string& path, std::int64_t low,
                     std::int64_t high) const {
    if (!value.is_number_integer() || value.get<double>() < static_cast<double>(low) ||
        value.get<double>() > static_cast<double>(high)) {
      fail(fmt::format("{} must be a whole number from {} to {}", make_key(path), low, high), path,
           "fix it");
    }
    return value.get<std::int64_t>();
  }

  // The name becomes a folder.
  void read_name(const Json& value, const std::string& path) {
    spec_.name = text(value, path);
    const bool plain = std::all_of(spec_.name.begin(), spec_.name.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
    });
    if (!plain || spec_.name.starts_with(".") || spec_.name.size() > 100) {
      fail(fmt::format("the name \"{}\" cannot be a folder's", spec_.name), path,
           "use letters, digits, - _ .");
    }
  }

  void read_description(const Json& value, const std::string& path) {
    spec_.description = text(value, path);
  }

  void read_workload(const Json& value, const std::string& path) {
    spec_.workload = text(value, path);
    find_name("workload", spec_.workload, document_.where(path));
  }

  void read_fixed(const Json& value, const std::string& path) {
    spec_.fixed = point(value, path);
    for (const auto& entry : spec_.fixed.values()) claim(entry.first, path + "/" + entry.first);
  }

  void read_axes(const Json& value, const std::string& path) {
    spec_.axes = axes(value, path);
    for (const Axis& axis : spec_.axes) check_distinct(axis, path + "/" + axis.name);
  }

  void check_distinct(const Axis& axis, const std::string& path) const {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < axis.values.size(); ++i) {
      if (seen.insert(to_text(axis.values[i])).second) continue;
      fail(fmt::format("axis {} has {} twice", axis.name, to_text(axis.values[i])),
           fmt::format("{}/{}", path, i), "remove one, or raise repeats to run it more often");
    }
  }

  void read_where(const Json& value, const std::string& path) {
    spec_.condition.emplace(text(value, path), document_.where(path));
  }

  void read_repeats(const Json& value, const std::string& path) {
    spec_.repeats = static_cast<int>(whole(value, path, 1, kMaxRepeats));
  }

  void read_seed(const Json& value, const std::string& path) {
    spec_.seed = static_cast<std::uint64_t>(whole(value, path, 0, kMaxSeed));
  }

  void read_control(const Json& value, const std::string& path) {
    if (!value.is_boolean()) fail("control must be true or false", path);
    spec_.control = value.get<bool>();
  }

  void read_order(const Json& value, const std::string& path) {
    const std::string order = text(value, path);
    if (order != "interleaved" && order != "sequential") {
      fail(fmt::format("order cannot be \"{}\"", order), path,
           suggestion(order, {"interleaved", "sequential"}));
    }
    spec_.interleaved = order == "interleaved";
  }

  void read_timeout(const Json& value, const std::string& path) {
    if (!value.is_number() || value.get<double>() <= 0) {
      fail("timeout_seconds must be a number above 0", path, "leave it out for no limit");
    }
    spec_.timeout_seconds = value.get<double>();
  }

  // Replaces axes, so it is applied when all of them are known.
  void read_set(const Json& value, const std::string& path) {
    if (!value.is_array()) fail("set must be a list of texts", path, "write [\"axis=value\"]");
  }

  void apply_set(const Json& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string path = fmt::format("/set/{}", i);
      try {
        override_axis(spec_, text(list[i], path));
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::input) throw;
        fail(error.what(), path);
      }
    }
  }

  Value parameter(const std::string& name, const Json& value, const std::string& path) const {
    const std::string where = document_.where(path);
    if (value.is_boolean()) return checked_parameter(name, value.get<bool>(), where);
    if (value.is_string()) return checked_parameter(name, value.get<std::string>(), where);
    if (value.is_number_float() ||
        (value.is_number_unsigned() && value.get<std::uint64_t>() >> 63 != 0)) {
      return checked_parameter(name, value.get<double>(), where);
    }
    if (value.is_number()) return checked_parameter(name, value.get<std::int64_t>(), where);
    fail(fmt::format("{} must be a number, a text, true or false", name), path, "give one");
  }

  void check_axis_name(const std::string& name, const std::string& path) const {
    if (!find_parameter(name)) checked_value(name, false, document_.where(path));  // throws
  }

  // An axis has one source only.
  void claim(const std::string& name, const std::string& path) {
    const auto [it, first] = spec_.places.emplace(name, document_.where(path));
    if (first) return;
    fail(fmt::format("axis {} is given twice, first at {}", name, it->second), path,
         "keep one of them");
  }

  Point point(const Json& object, const std::string& path) const {
    if (!object.is_object()) {
      fail(fmt::format("{} must be an object of axis names and values", make_key(path)), path);
    }
    Point result;
    for (const auto& [name, value] : object.items()) {
      check_axis_name(name, path + "/" + name);
      result.set(name, parameter(name, value, path + "/" + name));
    }
    return result;
  }

  Axis axis(const std::string& name, const Json& list, const std::string& path) {
    check_axis_name(name, path);
    claim(name, path);
    if (!find_parameter(name)->identity()) {
      fail(fmt::format("{} changes nothing that is measured, so it cannot be an axis", name), path,
           "put it into fixed");
    }
    if (!list.is_array()) {
      fail(fmt::format("axis {} must be a list", name), path, "put its values in [ ]");
    }
    if (list.empty()) fail(fmt::format("axis {} has no values", name), path, "give at least one");
    if (list.size() > kMaxValues) {
      fail(fmt::format("axis {} has more than {} values", name, kMaxValues), path, "shorten it");
    }
    Axis result{name, {}, document_.where(path)};
    for (std::size_t i = 0; i < list.size(); ++i) {
      result.values.push_back(parameter(name, list[i], fmt::format("{}/{}", path, i)));
    }
    return result;
  }

  std::vector<Axis> axes(const Json& object, const std::string& path) {
    if (!object.is_object()) {
      fail(fmt::format("{} must be an object of axis names and lists", make_key(path)), path);
    }
    std::vector<Axis> result;
    for (const auto& [name, list] : object.items()) {
      result.push_back(axis(name, list, path + "/" + name));
    }
    return result;
  }

  // One object, or a list of several that are multiplied with each other.
  void read_zips(const Json& value, const std::string& path) {
    if (!value.is_array()) return read_zip(value, path);
    for (std::size_t i = 0; i < value.size(); ++i) {
      read_zip(value[i], fmt::format("{}/{}", path, i));
    }
  }

  void read_zip(const Json& value, const std::string& path) {
    Zip zip = axes(value, path);
    if (zip.empty()) fail("a zip needs axes", path, "add some, or remove it");
    const Axis& first = zip.front();
    for (const Axis& axis : zip) {
      if (axis.values.size() == first.values.size()) continue;
      fail(fmt::format("zipped axes {} and {} have {} and {} values", first.name, axis.name,
                       first.values.size(), axis.values.size()),
           path + "/" + axis.name, "make them as long as each other");
    }
    spec_.zips.push_back(std::move(zip));
  }

  void read_include(const Json& value, const std::string& path) {
    if (!value.is_array()) fail("include must be a list of points", path, "put it in [ ]");
    if (value.size() > kMaxValues) fail("include is too long", path, "use axes");
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string at = fmt::format("{}/{}", path, i);
      spec_.include.push_back({point(value[i], at), document_.where(at)});
    }
  }

  void read_exclude(const Json& value, const std::string& path) {
    if (!value.is_array()) {
      fail("exclude must be a list of points and expressions", path, "put it in [ ]");
    }
    if (value.size() > kMaxValues) fail("exclude is too long", path, "use an expression");
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string at = fmt::format("{}/{}", path, i);
      if (value[i].is_string()) {
        spec_.exclude_if.emplace_back(text(value[i], at), document_.where(at));
        continue;
      }
      spec_.exclude.push_back({point(value[i], at), document_.where(at)});
      if (spec_.exclude.back().point.empty()) {
        fail("an empty point would exclude everything", at, "name axes, or remove it");
      }
    }
  }

  const JsonDocument& document_;
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
    throw Error(ErrorKind::usage, "expected axis=value or axis=v1,v2", where, "give both");
  }
  Axis axis{assignment.substr(0, equals), {}, where};
  for (const std::string& word : split(assignment.substr(equals + 1), ',')) {
    const Value value = checked_parameter(axis.name, parsed_value(axis.name, word, where), where);
    if (is_there(axis.values, value)) {
      throw Error(ErrorKind::usage, fmt::format("{} occurs twice", word), where, "remove one");
    }
    axis.values.push_back(value);
  }
  if (axis.values.size() > 1 && !find_parameter(axis.name)->identity()) {
    throw Error(ErrorKind::usage, fmt::format("{} changes nothing that is measured", axis.name),
                where, "give one value");
  }
  return axis;
}

}  // namespace

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
  const auto same = std::find_if(spec.axes.begin(), spec.axes.end(),
                                 [&](const Axis& a) { return a.name == axis.name; });
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
