// Expands a spec to its points.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "results/parameters.h"
#include "sweeps/spec.h"

namespace paceline {

struct PlannedPoint {
  Point point;  // the varied parameters, which form its name and folder; includes the control mark
  Point parameters;  // all parameters of the spec, and the CPUs of a task
  Layout layout;
  std::string cannot_run = {};  // why it cannot run on this machine; empty: no known reason
  bool not_built = false;       // that reason is this build, not the machine
};

struct Expansion {
  std::vector<PlannedPoint> points;  // in spec order, with the last axis fastest, then `include`
  std::vector<std::string> notes;    // what cannot run here, why, and whether it was omitted
  std::vector<std::string> unseen;   // what is fixed, but no placeholder shows to the program
};

// What to do with a point that cannot run here: its backend or device is not built, or the machine
// is too small.
enum class Unbuilt { drop, keep };

// Why a point cannot run on this machine. Empty: it can.
using RunnableCheck = std::function<std::string(const PlannedPoint&)>;

// What one node of a cluster holds. 0: unknown, and nothing is refused for it.
struct NodeSize {
  int cpus = 0, gpus = 0;
  bool cores_for_gpus = false;  // replicas on cores stand for those on GPUs: as many on a node
  std::string source = {};      // who says so, for errors
  int cpus_per_gpu = 0;         // the most that a job may ask for
};

// The machine that will run the points.
struct TargetMachine {
  int cores = 1;             // value of the name "cores" in expressions
  bool shares_cores = true;  // replicas without given CPUs divide the cores, instead of one each
  RunnableCheck check = {};
  std::optional<NodeSize> node = {};  // of a cluster; empty: all points run on one machine
};

// Points without given CPUs all get the same number per replica (on GPUs: per task), such that the
// largest of them fits, because a speed-up needs a base with equal CPUs. On a cluster, points
// without given nodes get the fewest that hold them. `where` and `exclude` also apply to included
// points. Throws input with file and line for an empty product, two equal points, more than 100,000
// combinations or 1,000,000 runs; usage for an impossible layout, or a point that no node holds.
Expansion expand(const Spec& spec, const TargetMachine& machine, Unbuilt unbuilt = Unbuilt::drop);
Expansion expand(const Spec& spec, int cores, Unbuilt unbuilt = Unbuilt::drop);

// Checks that the rows of a study will have a base for their speed-up.

// One line for each reason why points with several replicas lack a one-replica point to compare
// with. Matches like the report: by CPUs and everything that the spec varies except the amount of
// work. Ignores points that the machine cannot run. Empty: all have a base, or there is only one
// size.
std::vector<std::string> missing_bases(const std::vector<PlannedPoint>& points);

}  // namespace paceline
