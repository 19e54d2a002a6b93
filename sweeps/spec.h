// A sweep as its file says it: which runs a study consists of.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/json.h"
#include "results/parameters.h"
#include "sweeps/expression.h"

namespace paceline {

struct Axis {
  std::string name;
  std::vector<Value> values;
};

// Axes that advance together: the i-th value of each.
using Zip = std::vector<Axis>;

struct Derived {
  std::string name;
  Expression expression;
};

struct Spec {
  std::string name, description, workload;
  std::string where;  // the file, for errors
  Point fixed;
  std::vector<Axis> axes;
  std::vector<Zip> zips;
  std::vector<Point> include;  // points beside the product
  std::vector<Point> exclude;  // partial points
  std::vector<Expression> exclude_if;
  std::optional<Expression> condition;  // `where`
  std::vector<Derived> derived;
  int repeats = 1;
  bool interleaved = true;
  std::uint64_t seed = 0;      // of the order of runs
  double timeout_seconds = 0;  // of one run; 0: none
};

// Throws input or usage naming key, file and line; suggests the nearest known key or name.
Spec read_spec(const std::filesystem::path& file);
Spec parse_spec(const std::string& name, std::string_view text);

// "axis=value" or "axis=v1,v2,...", as --set gives it: replaces what the spec says of that axis.
void override_axis(Spec& spec, const std::string& assignment);

}  // namespace paceline
