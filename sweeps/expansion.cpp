#include "sweeps/expansion.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/core/error.h"
#include "results/match.h"
#include "results/names.h"
#include "sweeps/expression.h"

namespace paceline {

namespace {

constexpr std::size_t kMaxCombinations = 100000, kMaxRuns = 1000000;
constexpr std::size_t kMaxConditions = 100'000'000;  // parts of conditions, for all combinations
constexpr std::size_t kMaxNameBytes = 200;           // of a folder; the logs' names are longer

// One dimension of the product: an axis alone, or several zipped.
std::vector<Zip> list_dimensions(const Spec& spec) {
  std::vector<Zip> dimensions;
  for (const Axis& axis : spec.axes) dimensions.push_back({axis});
  for (const Zip& zip : spec.zips) dimensions.push_back(zip);
  return dimensions;
}

std::size_t size_of(const Zip& dimension) {
  return dimension.front().values.size();
}

std::size_t count_points(const std::vector<Zip>& dimensions) {
  std::size_t count = 1;
  for (const Zip& dimension : dimensions) {
    count *= size_of(dimension);
    if (count > kMaxCombinations) {
      throw input_error(fmt::format("more than {} combinations", kMaxCombinations),
                        dimension.front().where, "shorten the axes");
    }
  }
  return count;
}

std::string place_of_product(const Spec& spec) {
  return spec.zips.empty() ? spec.where : spec.zips.front().front().where;
}

// The product, then the included points. A spec of included points alone has no product.
std::vector<SpecPoint> list_candidates(const Spec& spec) {
  const std::vector<Zip> dimensions = list_dimensions(spec);
  const std::string where = place_of_product(spec);
  std::vector<SpecPoint> candidates;
  const bool product = !dimensions.empty() || spec.include.empty();
  const std::size_t count = product ? count_points(dimensions) : 0;
  for (std::size_t index = 0; index < count; ++index) {
    Point point = spec.fixed;
    std::size_t rest = index;
    for (auto dimension = dimensions.rbegin(); dimension != dimensions.rend(); ++dimension) {
      for (const Axis& axis : *dimension) {
        point.set(axis.name, axis.values[rest % size_of(*dimension)]);
      }
      rest /= size_of(*dimension);
    }
    candidates.push_back({std::move(point), where});
  }
  for (const SpecPoint& included : spec.include) {
    Point point = spec.fixed;
    for (const auto& [name, value] : included.point.values()) point.set(name, value);
    candidates.push_back({std::move(point), included.where, included.may_repeat});
  }
  return candidates;
}

bool matches(const Point& point, const Point& partial) {
  return std::all_of(partial.values().begin(), partial.values().end(), [&](const auto& entry) {
    const Value* value = point.find(entry.first);
    return value && *value == entry.second;
  });
}

class Expander {
 public:
  Expander(const Spec& spec, const TargetMachine& machine, Unbuilt unbuilt)
      : spec_(spec), machine_(machine), cores_(machine.cores), unbuilt_(unbuilt) {}

  Expansion run() {
    const std::vector<SpecPoint> candidates = list_candidates(spec_);
    check_conditions(candidates.size());
    for (const SpecPoint& candidate : candidates) consider(candidate);
    if (expansion_.points.empty()) fail_empty();
    check_runs();
    name_points();
    check_names();
    set_nodes();
    hold_cpus();
    check_points();
    if (spec_.control) add_control();
    tag_programs();
    return std::move(expansion_);
  }

 private:
  void check_conditions(std::size_t combinations) const {
    std::size_t parts = spec_.condition ? spec_.condition->size() : 0;
    for (const SpecPoint& partial : spec_.exclude) parts += partial.point.values().size() + 1;
    for (const Expression& expression : spec_.exclude_if) parts += expression.size();
    if (combinations * parts <= kMaxConditions) return;
    throw input_error(
        fmt::format("{} combinations x {} words of where and exclude are more than {}",
                    combinations, parts, kMaxConditions),
        spec_.where, "shorten the axes, or exclude by fewer and wider conditions");
  }

  void consider(const SpecPoint& candidate) {
    const Expression::Lookup lookup = [&](std::string_view name) -> std::optional<Value> {
      if (name == kCoresName) return std::int64_t{cores_};
      const Value* value = candidate.point.find(name);
      return value ? std::optional<Value>(*value) : std::nullopt;
    };
    if (spec_.condition && !spec_.condition->holds(lookup)) return;
    if (is_excluded(candidate.point, lookup) || !is_wanted_here(candidate)) return;
    add(candidate);
  }

  bool is_excluded(const Point& point, const Expression::Lookup& lookup) const {
    return std::any_of(spec_.exclude.begin(), spec_.exclude.end(),
                       [&](const SpecPoint& partial) { return matches(point, partial.point); }) ||
           std::any_of(spec_.exclude_if.begin(), spec_.exclude_if.end(),
                       [&](const Expression& expression) { return expression.holds(lookup); });
  }

  bool is_wanted_here(const SpecPoint& candidate) {
    bool wanted = true;
    not_built_.clear();
    for (const char* kind : {"backend", "device"}) {
      const auto name = candidate.point.text(kind);
      if (!name) continue;
      const Name known = find_name(kind, *name, candidate.where);
      if (known.built) continue;
      wanted = wanted && unbuilt_ == Unbuilt::keep;
      not_built_ = fmt::format("{} {} is not built here", kind, *name);
      note(fmt::format("{} {} is not built here{}: {}", kind, *name,
                       unbuilt_ == Unbuilt::keep ? "" : ", its points are left out", known.reason));
    }
    return wanted;
  }

  static bool names_no_cpus(const PlannedPoint& planned) {
    return !planned.parameters.find("cpus_per_task") &&
           !planned.parameters.find("cpus_per_replica") &&
           !find_name("device", Settings(planned.parameters).text("device")).serial;
  }

  struct Excess {
    std::string what, cure;  // no cure: that of a node that is too small
  };

  // What of a node such a point needs too much of; empty: it fits.
  std::optional<Excess> excess_on_node(const PlannedPoint& planned, const Layout& layout) const {
    const NodeSize& node = *machine_.node;
    const int replicas = layout.gpus / layout.nodes;
    const int cpus = layout.ntasks / layout.nodes * layout.cpus_per_task;
    const int cpus_there = names_no_cpus(planned) ? std::min(cores_, node.cpus) : node.cpus;
    const bool on_gpus = !layout.replicas_are_cores || node.cores_for_gpus;
    if (on_gpus && node.gpus > 0 && replicas > node.gpus) {
      return Excess{fmt::format("{} GPUs on a node, and a node has {}", replicas, node.gpus), ""};
    }
    if (on_gpus && node.cpus_per_gpu > 0 && cpus > node.cpus_per_gpu * replicas) {
      return Excess{fmt::format("{} CPUs beside {}, and a GPU may have {}", cpus,
                                counted(replicas, "GPU"), node.cpus_per_gpu),
                    "give it fewer CPUs, or leave it out"};
    }
    if (cpus_there == 0 || cpus <= cpus_there) return std::nullopt;
    return Excess{fmt::format("{} CPUs on a node, and a node has {}", cpus, cpus_there), ""};
  }

  // Over the fewest nodes that hold it, if any do. Only the layout tells, as names are the same on
  // every cluster.
  void spread(PlannedPoint& planned) const {
    if (!machine_.node || planned.parameters.find("nodes")) return;
    if (!excess_on_node(planned, planned.layout)) return;
    const auto processes = planned.parameters.text("processes");
    const auto backend = planned.parameters.text("backend").value_or(lone_backend());
    if (processes ? *processes == "one" : find_name("backend", backend).one_task) return;
    const auto of_a_task =
        static_cast<int>(planned.parameters.integer("gpus_per_task").value_or(1));
    const int tasks = planned.layout.gpus / of_a_task;
    for (int nodes = 2; nodes <= tasks; ++nodes) {
      if (tasks % nodes != 0) continue;
      Point parameters = planned.parameters;
      parameters.set("nodes", std::int64_t{nodes});
      const Layout layout = make_layout(parameters, spec_.where);
      if (excess_on_node(planned, layout)) continue;
      planned.layout = layout;
      return;
    }
  }

  // After the names.
  void set_nodes() {
    if (!machine_.node) return;
    for (std::size_t i = 0; i < expansion_.points.size(); ++i) {
      PlannedPoint& planned = expansion_.points[i];
      const bool given = planned.parameters.find("nodes") != nullptr;
      if (const auto excess = excess_on_node(planned, planned.layout)) {
        throw usage_error(
            fmt::format("point {} needs {} ({})", planned.point.text(), excess->what,
                        machine_.node->source),
            origins_[i],
            !excess->cure.empty() ? excess->cure
            : given               ? "use more nodes, or leave nodes out"
            : spec_.programs.empty()
                ? "make it smaller, or use a backend that spans nodes, as mirrored/mpi does"
                : "make it smaller, or name its nodes if the program spans them");
      }
      if (planned.layout.nodes > 1) {
        planned.parameters.set("nodes", std::int64_t{planned.layout.nodes});
      }
    }
  }

  // Else one replica would take all cores and several a part each, and none were another's base.
  // After the names: they are the same on every machine.
  void hold_cpus() {
    int most = 1;  // replicas on one node, of the points that fit
    for (const PlannedPoint& planned : expansion_.points) {
      const int replicas = planned.layout.gpus / planned.layout.nodes;
      if (names_no_cpus(planned) && replicas <= cores_) most = std::max(most, replicas);
    }
    const std::int64_t cpus = machine_.shares_cores ? std::max(1, cores_ / most) : 1;
    const int allowed = machine_.node ? machine_.node->cpus_per_gpu : 0;
    for (PlannedPoint& planned : expansion_.points) {
      if (!names_no_cpus(planned)) continue;
      std::int64_t of_task = cpus * shares_of_a_task(planned, most);
      if (allowed > 0 && !planned.layout.replicas_are_cores) {
        const int gpus = planned.layout.gpus / planned.layout.ntasks;
        of_task = std::min<std::int64_t>(of_task, std::int64_t{allowed} * gpus);
      }
      planned.parameters.set("cpus_per_task", of_task);
      planned.layout = make_layout(planned.parameters, spec_.where);
    }
  }

  // On GPUs the task's CPUs are held instead of the replica's: reports compare those.
  static int shares_of_a_task(const PlannedPoint& planned, int most) {
    const Layout& layout = planned.layout;
    if (layout.replicas_are_cores) return layout.gpus / layout.ntasks;
    if (const auto processes = planned.parameters.text("processes")) {
      return *processes == "replica" ? 1 : most;
    }
    const std::string backend = planned.parameters.text("backend").value_or(lone_backend());
    if (find_name("backend", backend).tasks != "node") return 1;
    return planned.parameters.find("gpus_per_task") ? layout.gpus / layout.ntasks : most;
  }

  void check_points() {
    if (!machine_.check) return;
    std::vector<std::pair<std::string, std::vector<std::string>>> hindered;  // why -> points
    for (PlannedPoint& planned : expansion_.points) {
      if (!planned.cannot_run.empty()) continue;  // there is a note on it
      planned.cannot_run = machine_.check(planned);
      if (planned.cannot_run.empty()) continue;
      auto known = std::ranges::find_if(
          hindered, [&](const auto& entry) { return entry.first == planned.cannot_run; });
      if (known == hindered.end()) known = hindered.insert(known, {planned.cannot_run, {}});
      known->second.push_back(planned.point.text());
    }
    for (const auto& [why, points] : hindered) note(note_on(points, why));
    if (unbuilt_ == Unbuilt::keep) return;
    std::erase_if(expansion_.points,
                  [](const auto& planned) { return !planned.cannot_run.empty(); });
    if (expansion_.points.empty()) fail_empty();
  }

  // "cannot run here, left out: gpus=4,backend=mpi and 2 more: 4 replicas of 1 CPU on 2 CPUs; ..."
  std::string note_on(const std::vector<std::string>& points, const std::string& why) const {
    return fmt::format("cannot run here{}: {}{}: {}", unbuilt_ == Unbuilt::keep ? "" : ", left out",
                       points.front(),
                       points.size() == 1 ? "" : fmt::format(" and {} more", points.size() - 1),
                       why);
  }

  void note(const std::string& text) {
    auto& notes = expansion_.notes;
    if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(text);
  }

  // cpus_per_replica is a way to say cpus_per_task; points are named by the latter.
  void add(const SpecPoint& candidate) {
    if (candidate.point.find(kControl)) {
      throw usage_error("control is not a parameter of a point", candidate.where,
                        "write \"control\": true beside the axes, or give --control");
    }
    PlannedPoint planned;
    planned.parameters = candidate.point;
    if (spec_.programs.empty()) {
      check_backend(candidate);
    } else {
      const UserProgram& program = program_at(spec_, candidate.point, candidate.where);
      planned.parameters.set("program", program.name);
      planned.parameters.set("processes", program.processes);
    }
    planned.layout = make_layout(planned.parameters, candidate.where);
    spread(planned);
    planned.cannot_run = not_built_;
    planned.not_built = !not_built_.empty();
    if (candidate.point.find("cpus_per_replica")) {
      planned.parameters.erase("cpus_per_replica");
      planned.parameters.set("cpus_per_task", std::int64_t{planned.layout.cpus_per_task});
    }
    if (candidate.may_repeat && is_there(planned.parameters)) return;
    expansion_.points.push_back(std::move(planned));
    origins_.push_back(candidate.where);
  }

  // The cure of a run by hand is an option; for a spec, the error names the line that needs one.
  void check_backend(const SpecPoint& candidate) const {
    const std::int64_t gpus = candidate.point.integer("gpus").value_or(1);
    if (gpus <= 1 || candidate.point.find("backend")) return;
    const auto place = spec_.places.find("gpus");
    const bool in_product = candidate.where == place_of_product(spec_);
    throw usage_error(fmt::format("no backend is named for {} replicas", gpus),
                      in_product && place != spec_.places.end() ? place->second : candidate.where,
                      "add \"backend\": [\"mpi\"] to the axes (paceline list backends)");
  }

  // After the names, so that an axis of programs has theirs. Placeholders need the CPUs.
  void tag_programs() {
    if (spec_.programs.empty()) return;
    check_visible();
    note_unseen();
    for (PlannedPoint& planned : expansion_.points) {
      const UserProgram& program = program_at(spec_, planned.parameters, spec_.where);
      check_placeholders(program, planned.parameters, planned.layout, spec_.where);
      planned.parameters.set("program", program.tag());
    }
  }

  bool is_seen(const std::string& name) const {
    return std::any_of(spec_.programs.begin(), spec_.programs.end(),
                       [&](const UserProgram& program) { return can_see(program, name); });
  }

  // Batches and the precision may be stated of a program that has its own.
  void note_unseen() {
    const bool varies = std::ranges::any_of(expansion_.points, [&](const PlannedPoint& planned) {
      return planned.layout.gpus != expansion_.points.front().layout.gpus;
    });
    for (const UserProgram& program : spec_.programs) {
      if (!varies || can_see_replicas(program)) continue;
      expansion_.unseen.push_back(
          fmt::format("program {} is not given the number of replicas, and sees only its CPUs and "
                      "GPUs: put {{gpus}} into the command, if it starts as many itself",
                      program.name));
    }
    for (const auto& [name, value] : spec_.fixed.values()) {
      if (name == "batch_per_replica" || name == "precision" || is_seen(name)) continue;
      expansion_.unseen.push_back(
          fmt::format("no placeholder {{{}}} shows {} {} to the program: the records will say so, "
                      "whatever it does",
                      name, name, to_text(value)));
    }
  }

  // Points that differ in what the program never sees would be repeats under other names.
  void check_visible() const {
    for (const auto& [name, value] : expansion_.points.front().point.values()) {
      if (is_seen(name)) continue;
      const auto place = spec_.places.find(name);
      throw input_error(fmt::format("{} varies, and the command has no {{{}}}", name, name),
                        place != spec_.places.end() ? place->second : spec_.where,
                        "put it into the command, or into fixed");
    }
  }

  bool is_there(const Point& all_parameters) const {
    return std::ranges::count(expansion_.points, all_parameters, &PlannedPoint::parameters) > 0;
  }

  [[noreturn]] void fail_empty() const {
    if (!expansion_.notes.empty()) {
      throw usage_error("the sweep has no points here: " + expansion_.notes.front(), spec_.where,
                        "choose others with --set (paceline list backends, list devices)");
    }
    throw input_error(
        fmt::format("the sweep has no points: where and exclude leave none ({} is {})", kCoresName,
                    cores_),
        spec_.condition ? spec_.condition->where() : spec_.where,
        "widen the axes or the conditions");
  }

  void check_runs() const {
    const std::size_t runs = (expansion_.points.size() + (spec_.control ? 1 : 0)) *
                             static_cast<std::size_t>(spec_.repeats);
    if (runs <= kMaxRuns) return;
    throw input_error(fmt::format("{} points x {} repeats are more than {} runs",
                                  expansion_.points.size(), spec_.repeats, kMaxRuns),
                      spec_.where, "shorten the axes or lower repeats");
  }

  // The axes, even those of one value, and all else that differs between points.
  std::set<std::string> varying_names() const {
    std::set<std::string> varying;
    for (const Zip& dimension : list_dimensions(spec_)) {
      for (const Axis& axis : dimension) varying.insert(axis.name);
    }
    if (varying.erase("cpus_per_replica") > 0) varying.insert("cpus_per_task");
    std::vector<const Point*> points;
    for (const PlannedPoint& planned : expansion_.points) points.push_back(&planned.parameters);
    for (std::string& name : varying_parameters(points)) varying.insert(std::move(name));
    return varying;
  }

  void name_points() {
    const std::set<std::string> varying = varying_names();
    for (PlannedPoint& planned : expansion_.points) {
      for (const std::string& name : varying) {
        if (const Value* value = planned.parameters.find(name)) planned.point.set(name, *value);
      }
      if (planned.point.empty()) planned.point.set("gpus", std::int64_t{planned.layout.gpus});
    }
  }

  // Repeats the smallest point, which costs least and is the base of speed-ups.
  void add_control() {
    PlannedPoint control = *std::ranges::min_element(
        expansion_.points, {}, [](const auto& each) { return each.layout.gpus; });
    for (Point* point : {&control.point, &control.parameters}) point->set(kControl, true);
    expansion_.points.push_back(std::move(control));
  }

  void check_names() const {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < expansion_.points.size(); ++i) {
      const Point& point = expansion_.points[i].point;
      if (point.folder().size() > kMaxNameBytes) {
        throw input_error(
            fmt::format("the name of point {} is too long for a folder", point.text()), origins_[i],
            "vary fewer axes in one study");
      }
      if (!seen.insert(point.text()).second) {
        throw input_error(fmt::format("point {} occurs twice", point.text()), origins_[i],
                          "remove one, or raise repeats to run it more often");
      }
    }
  }

  const Spec& spec_;
  const TargetMachine& machine_;
  int cores_;
  Unbuilt unbuilt_;
  std::string not_built_;  // what of the candidate at hand
  Expansion expansion_;
  std::vector<std::string> origins_;  // where each point was given
};

}  // namespace

Expansion expand(const Spec& spec, const TargetMachine& machine, Unbuilt unbuilt) {
  return Expander(spec, machine, unbuilt).run();
}

Expansion expand(const Spec& spec, int cores, Unbuilt unbuilt) {
  return expand(spec, TargetMachine{cores}, unbuilt);
}

}  // namespace paceline
