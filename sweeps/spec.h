// A sweep as its file says it: which runs a study consists of. README.md describes the keys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/parameters.h"
#include "sweeps/expression.h"

namespace paceline {

struct Axis {
  std::string name;
  std::vector<Value> values;
  std::string where;  // "file.json:7", for errors
};

// Axes that advance together: the i-th value of each.
using Zip = std::vector<Axis>;

struct Derived {
  std::string name;
  Expression expression;
};

// A point that stands in the file itself, maybe only a part of one.
struct SpecPoint {
  Point point;
  std::string where;
  bool may_repeat = false;  // left out where the product has it already, instead of refused
};

struct Spec {
  std::string name, description, workload;
  std::string where;                          // the file, for errors
  std::map<std::string, std::string> places;  // of each axis: "file.json:7", for errors
  Point fixed;
  std::vector<Axis> axes;
  std::vector<Zip> zips;
  std::vector<SpecPoint> include;  // points beside the product
  std::vector<SpecPoint> exclude;  // partial points
  std::vector<Expression> exclude_if;
  std::optional<Expression> condition;  // `where`
  std::vector<Derived> derived;         // in order; one may use those before it
  int repeats = 1;
  bool interleaved = true;
  bool control = false;        // the smallest point once more in each round
  std::uint64_t seed = 0;      // of the order of runs; from the name unless given
  double timeout_seconds = 0;  // of one run; 0: none
};

// Throws input or usage naming key, file and line; suggests the nearest known key or name.
Spec read_spec(const std::filesystem::path& file);
Spec parse_spec(const std::string& name, std::string_view text);

// "axis=value" or "axis=v1,v2,...", as --set gives it: stands in for what the spec says of that
// axis, whether fixed, varied, zipped or derived; included points with another value are left out,
// and so are those that the axis then gives anyway.
// An axis stays one with a single value too, so that points keep their names and their records
// are found. Throws usage.
void override_axis(Spec& spec, const std::string& assignment);

// Every value of an axis that stands in the spec, changed. Values of an axis by itself, and
// included points, that become the same are one.
void change_values(Spec& spec, const std::string& name,
                   const std::function<Value(const Value&)>& change);

}  // namespace paceline
