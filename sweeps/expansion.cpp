#include "sweeps/expansion.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/core/error.h"
#include "results/names.h"

namespace paceline {

namespace {

constexpr std::size_t kMaxCombinations = 100000;

// One dimension of the product: an axis alone, or several zipped.
std::vector<Zip> dimensions_of(const Spec& spec) {
  std::vector<Zip> dimensions;
  for (const Axis& axis : spec.axes) dimensions.push_back({axis});
  for (const Zip& zip : spec.zips) dimensions.push_back(zip);
  return dimensions;
}

std::vector<Point> product(const Spec& spec) {
  const std::vector<Zip> dimensions = dimensions_of(spec);
  std::size_t count = 1;
  for (const Zip& dimension : dimensions) {
    count *= dimension.front().values.size();
    if (count > kMaxCombinations) {
      throw Error(ErrorKind::input, fmt::format("more than {} combinations", kMaxCombinations),
                  spec.where, "shorten the axes");
    }
  }
  std::vector<Point> points;
  if (dimensions.empty() && !spec.include.empty()) return points;
  for (std::size_t index = 0; index < count; ++index) {
    Point point = spec.fixed;
    std::size_t rest = index;
    for (auto dimension = dimensions.rbegin(); dimension != dimensions.rend(); ++dimension) {
      const std::size_t size = dimension->front().values.size();
      for (const Axis& axis : *dimension) point.set(axis.name, axis.values[rest % size]);
      rest /= size;
    }
    points.push_back(std::move(point));
  }
  return points;
}

bool matches(const Point& point, const Point& partial) {
  return std::all_of(partial.values().begin(), partial.values().end(), [&](const auto& entry) {
    const Value* value = point.find(entry.first);
    return value && *value == entry.second;
  });
}

class Expander {
 public:
  Expander(const Spec& spec, int cores) : spec_(spec), cores_(cores) {}

  Expansion run() {
    std::vector<Point> candidates = product(spec_);
    for (const Point& extra : spec_.include) {
      Point point = spec_.fixed;
      for (const auto& [name, value] : extra.values()) point.set(name, value);
      candidates.push_back(std::move(point));
    }
    for (Point& candidate : candidates) consider(candidate);
    if (expansion_.points.empty()) fail_empty();
    name_points();
    check_unique();
    return std::move(expansion_);
  }

 private:
  void consider(Point& candidate) {
    const Expression::Lookup lookup = [&](std::string_view name) -> std::optional<Value> {
      if (name == "cores") return std::int64_t{cores_};
      const Value* value = candidate.find(name);
      return value ? std::optional<Value>(*value) : std::nullopt;
    };
    for (const Derived& derived : spec_.derived) {
      if (candidate.find(derived.name)) continue;  // an included point may say otherwise
      const Value value = derived.expression.evaluate(lookup);
      candidate.set(derived.name,
                    checked_value(derived.name, value,
                                  fmt::format("{}, derived {}", spec_.where, derived.name)));
    }
    if (spec_.condition && !spec_.condition->holds(lookup)) return;
    for (const Point& partial : spec_.exclude) {
      if (matches(candidate, partial)) return;
    }
    for (const Expression& expression : spec_.exclude_if) {
      if (expression.holds(lookup)) return;
    }
    if (!built_here(candidate)) return;
    add(candidate);
  }

  bool built_here(const Point& candidate) {
    for (const char* kind : {"backend", "device"}) {
      const auto name = candidate.text(kind);
      if (!name) continue;
      const Name& known = find_name(kind, *name, spec_.where);
      if (known.built) continue;
      const std::string note =
          fmt::format("{} {} is left out: not built here: {}", kind, *name, known.reason);
      if (std::find(expansion_.notes.begin(), expansion_.notes.end(), note) ==
          expansion_.notes.end()) {
        expansion_.notes.push_back(note);
      }
      return false;
    }
    return true;
  }

  // cpus_per_replica is a way to say cpus_per_task; points are named by the latter.
  void add(const Point& candidate) {
    PlannedPoint planned;
    planned.layout = layout_of(candidate, spec_.where);
    planned.parameters = candidate;
    if (candidate.find("cpus_per_replica")) {
      planned.parameters.erase("cpus_per_replica");
      planned.parameters.set("cpus_per_task", std::int64_t{planned.layout.cpus_per_task});
    }
    expansion_.points.push_back(std::move(planned));
  }

  [[noreturn]] void fail_empty() const {
    std::string why = "no combination is left after where and exclude";
    if (!expansion_.notes.empty()) why = expansion_.notes.front();
    throw Error(ErrorKind::input, "the sweep has no points: " + why, spec_.where,
                "widen the axes or the conditions");
  }

  // A point is named by what the spec varies: axes, zips, included names, and all else that
  // differs between points.
  void name_points() {
    std::set<std::string> varying;
    for (const Axis& axis : spec_.axes) varying.insert(axis.name);
    for (const Zip& zip : spec_.zips) {
      for (const Axis& axis : zip) varying.insert(axis.name);
    }
    if (varying.erase("cpus_per_replica")) varying.insert("cpus_per_task");
    for (const PlannedPoint& planned : expansion_.points) {
      for (const auto& [name, value] : planned.parameters.values()) {
        const Value* first = expansion_.points.front().parameters.find(name);
        if (!first || *first != value) varying.insert(name);
      }
    }
    for (const Parameter& parameter : parameters()) {
      const std::string name(parameter.name);
      if (!parameter.identity) varying.erase(name);
    }
    for (PlannedPoint& planned : expansion_.points) {
      for (const std::string& name : varying) {
        if (const Value* value = planned.parameters.find(name)) planned.point.set(name, *value);
      }
    }
  }

  void check_unique() const {
    std::set<std::string> seen;
    for (const PlannedPoint& planned : expansion_.points) {
      if (!seen.insert(planned.point.text()).second) {
        throw Error(ErrorKind::input, fmt::format("point {} is there twice", planned.point.text()),
                    spec_.where, "remove one, or raise repeats to run it more often");
      }
    }
  }

  const Spec& spec_;
  int cores_;
  Expansion expansion_;
};

}  // namespace

Expansion expand(const Spec& spec, int cores) {
  return Expander(spec, cores).run();
}

}  // namespace paceline
