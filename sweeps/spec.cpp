#include "sweeps/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "results/names.h"

namespace paceline {

namespace {

constexpr std::size_t kMaxSpecBytes = 1 << 20;
constexpr std::size_t kMaxValues = 10000;
constexpr int kMaxRepeats = 1000;

class SpecReader {
 public:
  explicit SpecReader(const JsonDocument& document) : document_(document) {}

  Spec read() {
    const Json& root = document_.value();
    if (!root.is_object()) fail("a sweep spec is a JSON object", "");
    spec_.where = document_.name();
    for (const auto& [key, value] : root.items()) read_key(key, value, "/" + key);
    for (const char* key : {"name", "workload"}) {
      if (!root.contains(key)) fail(fmt::format("\"{}\" is missing", key), "", "add it");
    }
    if (!root.contains("seed")) spec_.seed = hash_value(spec_.name) & 0x7fffffff;
    check_once();
    return std::move(spec_);
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& path,
                         const std::string& fix = "see sweeps/README.md") const {
    throw Error(ErrorKind::input, what, document_.where(path), fix);
  }

  void read_key(const std::string& key, const Json& value, const std::string& path) {
    static const std::vector<std::string> kKeys = {
        "name",    "description", "workload", "fixed",   "axes",  "zip",  "include",
        "exclude", "where",       "derived",  "repeats", "order", "seed", "timeout_seconds"};
    if (key == "name") {
      spec_.name = text(value, path);
      check_study_name(path);
    } else if (key == "description") {
      spec_.description = text(value, path);
    } else if (key == "workload") {
      spec_.workload = text(value, path);
      find_name("workload", spec_.workload, document_.where(path));
    } else if (key == "fixed") {
      spec_.fixed = point(value, path);
    } else if (key == "axes") {
      spec_.axes = axes(value, path);
    } else if (key == "zip") {
      read_zips(value, path);
    } else if (key == "include") {
      read_include(value, path);
    } else if (key == "exclude") {
      read_exclude(value, path);
    } else if (key == "where") {
      spec_.condition.emplace(text(value, path), document_.where(path));
    } else if (key == "derived") {
      read_derived(value, path);
    } else if (key == "repeats") {
      spec_.repeats = static_cast<int>(whole(value, path, 1, kMaxRepeats));
    } else if (key == "order") {
      read_order(value, path);
    } else if (key == "seed") {
      spec_.seed = static_cast<std::uint64_t>(whole(value, path, 0, 0x7fffffff));
    } else if (key == "timeout_seconds") {
      if (!value.is_number() || value.get<double>() <= 0)
        fail("timeout_seconds must be above 0", path);
      spec_.timeout_seconds = value.get<double>();
    } else {
      fail(fmt::format("unknown key \"{}\"", key), path, suggestion(key, kKeys));
    }
  }

  std::string text(const Json& value, const std::string& path) const {
    if (!value.is_string() || value.get<std::string>().empty()) {
      fail(fmt::format("{} must be a text", path.substr(path.rfind('/') + 1)), path);
    }
    return value.get<std::string>();
  }

  // The name becomes a folder.
  void check_study_name(const std::string& path) const {
    const bool plain = std::all_of(spec_.name.begin(), spec_.name.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
    });
    if (!plain || spec_.name.starts_with(".") || spec_.name.size() > 100) {
      fail(fmt::format("the name \"{}\" cannot be a folder's", spec_.name), path,
           "use letters, digits, - _ .");
    }
  }

  std::int64_t whole(const Json& value, const std::string& path, std::int64_t low,
                     std::int64_t high) const {
    const std::string key = path.substr(path.rfind('/') + 1);
    if (!value.is_number_integer() || value.get<std::int64_t>() < low ||
        value.get<std::int64_t>() > high) {
      fail(fmt::format("{} must be a whole number from {} to {}", key, low, high), path);
    }
    return value.get<std::int64_t>();
  }

  void read_order(const Json& value, const std::string& path) {
    const std::string order = text(value, path);
    if (order != "interleaved" && order != "sequential") {
      fail(fmt::format("order cannot be \"{}\"", order), path, "give interleaved or sequential");
    }
    spec_.interleaved = order == "interleaved";
  }

  Value parameter(const std::string& name, const Json& value, const std::string& path) const {
    const std::string where = document_.where(path);
    Value raw;
    if (value.is_boolean()) {
      raw = value.get<bool>();
    } else if (value.is_number_unsigned() &&
               value.get<std::uint64_t>() > (std::uint64_t{1} << 62)) {
      fail(fmt::format("{} is too large", name), path);
    } else if (value.is_number_integer()) {
      raw = value.get<std::int64_t>();
    } else if (value.is_number()) {
      raw = value.get<double>();
    } else if (value.is_string()) {
      raw = value.get<std::string>();
    } else {
      fail(fmt::format("{} must be a number, a text, true or false", name), path);
    }
    return checked_parameter(name, raw, where);
  }

 public:
  // Names of backends and devices are checked as well as types and ranges.
  static Value checked_parameter(const std::string& name, const Value& raw,
                                 const std::string& where) {
    Value value = checked_value(name, raw, where);
    if (name == "backend" || name == "device") find_name(name, to_text(value), where);
    return value;
  }

 private:
  Point point(const Json& object, const std::string& path) const {
    if (!object.is_object()) fail("expected an object of axis names and values", path);
    Point result;
    for (const auto& [name, value] : object.items()) {
      result.set(find_axis(name, path + "/" + name), parameter(name, value, path + "/" + name));
    }
    return result;
  }

  std::string find_axis(const std::string& name, const std::string& path) const {
    if (!find_parameter(name)) checked_value(name, false, document_.where(path));  // throws
    return name;
  }

  std::vector<Axis> axes(const Json& object, const std::string& path) const {
    if (!object.is_object()) fail("expected an object of axis names and lists", path);
    std::vector<Axis> result;
    for (const auto& [name, list] : object.items()) {
      const std::string at = path + "/" + name;
      Axis axis{find_axis(name, at), {}};
      if (!list.is_array()) fail(fmt::format("axis {} must be a list", name), at, "put it in [ ]");
      if (list.empty()) fail(fmt::format("axis {} has no values", name), at, "give one or more");
      if (list.size() > kMaxValues) fail(fmt::format("axis {} is too long", name), at);
      for (std::size_t i = 0; i < list.size(); ++i) {
        axis.values.push_back(parameter(name, list[i], fmt::format("{}/{}", at, i)));
      }
      result.push_back(std::move(axis));
    }
    return result;
  }

  void read_zips(const Json& value, const std::string& path) {
    const bool many = value.is_array();
    for (std::size_t i = 0; i < (many ? value.size() : 1); ++i) {
      const std::string at = many ? fmt::format("{}/{}", path, i) : path;
      Zip zip = axes(many ? value[i] : value, at);
      for (const Axis& axis : zip) {
        if (axis.values.size() != zip.front().values.size()) {
          fail(fmt::format("zipped axes {} and {} have {} and {} values", zip.front().name,
                           axis.name, zip.front().values.size(), axis.values.size()),
               at, "make them as long as each other");
        }
      }
      if (zip.empty()) fail("a zip needs axes", at);
      spec_.zips.push_back(std::move(zip));
    }
  }

  void read_include(const Json& value, const std::string& path) {
    if (!value.is_array()) fail("include must be a list of points", path);
    for (std::size_t i = 0; i < value.size(); ++i) {
      spec_.include.push_back(point(value[i], fmt::format("{}/{}", path, i)));
    }
  }

  void read_exclude(const Json& value, const std::string& path) {
    if (!value.is_array()) fail("exclude must be a list of points and expressions", path);
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string at = fmt::format("{}/{}", path, i);
      if (value[i].is_string()) {
        spec_.exclude_if.emplace_back(value[i].get<std::string>(), document_.where(at));
      } else {
        spec_.exclude.push_back(point(value[i], at));
        if (spec_.exclude.back().empty()) fail("an empty exclusion excludes everything", at);
      }
    }
  }

  void read_derived(const Json& value, const std::string& path) {
    if (!value.is_object()) fail("derived must be an object of axis names and expressions", path);
    for (const auto& [name, expression] : value.items()) {
      const std::string at = path + "/" + name;
      spec_.derived.push_back(
          {find_axis(name, at), Expression(text(expression, at), document_.where(at))});
    }
  }

  // An axis has one source only.
  void check_once() const {
    std::vector<std::string> seen;
    const auto add = [&](const std::string& name) {
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
        fail(fmt::format("axis {} is given more than once (fixed, axes, zip, derived)", name), "",
             "keep one of them");
      }
      seen.push_back(name);
    };
    for (const auto& [name, value] : spec_.fixed.values()) add(name);
    for (const Axis& axis : spec_.axes) add(axis.name);
    for (const Zip& zip : spec_.zips) {
      for (const Axis& axis : zip) add(axis.name);
    }
    for (const Derived& derived : spec_.derived) add(derived.name);
  }

  const JsonDocument& document_;
  Spec spec_;
};

void forget_axis(Spec& spec, const std::string& name) {
  spec.fixed.erase(name);
  std::erase_if(spec.axes, [&](const Axis& axis) { return axis.name == name; });
  for (Zip& zip : spec.zips) {
    std::erase_if(zip, [&](const Axis& axis) { return axis.name == name; });
  }
  std::erase_if(spec.zips, [](const Zip& zip) { return zip.empty(); });
  std::erase_if(spec.derived, [&](const Derived& derived) { return derived.name == name; });
}

}  // namespace

Spec parse_spec(const std::string& name, std::string_view text) {
  const JsonDocument document(name, text);
  return SpecReader(document).read();
}

Spec read_spec(const std::filesystem::path& file) {
  return parse_spec(file.string(), read_text(file, kMaxSpecBytes));
}

void override_axis(Spec& spec, const std::string& assignment) {
  const auto equals = assignment.find('=');
  const std::string where = "--set " + assignment;
  if (equals == std::string::npos || equals + 1 == assignment.size()) {
    throw Error(ErrorKind::usage, "an override is axis=value or axis=v1,v2", where, "give both");
  }
  const std::string name = assignment.substr(0, equals);
  Axis axis{name, {}};
  for (const std::string& word : split(assignment.substr(equals + 1), ',')) {
    axis.values.push_back(
        SpecReader::checked_parameter(name, parsed_value(name, word, where), where));
  }
  forget_axis(spec, name);
  if (axis.values.size() == 1) {
    spec.fixed.set(name, axis.values.front());
  } else {
    spec.axes.push_back(std::move(axis));
  }
}

}  // namespace paceline
