#include "results/layout.h"

#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "results/names.h"

namespace paceline {

namespace {

// The replicas of one task: those of a node where a task sums its own, else one.
int replicas_per_task(const Point& parameters, const Layout& layout, bool one_a_node,
                      const std::string& where) {
  const int of_a_node = layout.gpus / layout.nodes;
  const auto given = parameters.integer("gpus_per_task");
  if (!given) return one_a_node ? of_a_node : 1;
  if (parameters.find("processes")) {
    throw Error(ErrorKind::usage, "gpus_per_task is not for a program of your own", where,
                "leave it out: \"processes\" says how often the program starts");
  }
  if (!one_a_node && *given != 1) {
    throw Error(ErrorKind::usage,
                fmt::format("backend {} has one replica in a task, not {}",
                            parameters.text("backend").value_or(lone_backend()), *given),
                where, "use mirrored within the tasks, such as mirrored/mpi");
  }
  if (of_a_node % *given != 0) {
    throw Error(ErrorKind::usage,
                fmt::format("{} replicas of a node cannot be tasks of {}", of_a_node, *given),
                where, "make gpus / nodes a multiple of gpus_per_task");
  }
  return static_cast<int>(*given);
}

int bounded(std::int64_t count, const char* name, const std::string& where) {
  constexpr std::int64_t kMost = 10'000'000;
  if (count > kMost) {
    throw Error(ErrorKind::usage, fmt::format("{} cannot be {}", name, count), where,
                fmt::format("give at most {}", kMost));
  }
  return static_cast<int>(count);
}

}  // namespace

Layout make_layout(const Point& parameters, const std::string& where) {
  Layout layout;
  layout.gpus = bounded(parameters.integer("gpus").value_or(1), "gpus", where);
  layout.nodes = bounded(parameters.integer("nodes").value_or(1), "nodes", where);
  layout.replicas_are_cores = !find_name("device", Settings(parameters).text("device"), where).gpus;
  const std::string backend = parameters.text("backend").value_or(lone_backend());
  const Name known = find_name("backend", backend, where);
  if (layout.gpus % layout.nodes != 0) {
    throw Error(
        ErrorKind::usage,
        fmt::format("{} replicas cannot be spread evenly over {} nodes", layout.gpus, layout.nodes),
        where, "make gpus a multiple of nodes");
  }
  const auto processes = parameters.text("processes");  // of a program that needs no backend
  if (!processes && !parameters.find("backend") && layout.gpus > 1) {
    throw Error(ErrorKind::usage, fmt::format("{} replicas need a backend", layout.gpus), where,
                "choose one, e.g. mpi (paceline list backends)");
  }
  if (!processes && known.alone && layout.gpus > 1) {
    throw Error(ErrorKind::usage,
                fmt::format("backend {} supports one replica, not {}", backend, layout.gpus), where,
                "choose another backend (paceline list backends)");
  }
  const bool one_a_node = processes ? *processes != "replica" : known.tasks == "node";
  const int of_a_task = replicas_per_task(parameters, layout, one_a_node, where);
  layout.ntasks = layout.gpus / of_a_task;
  if (!processes && known.one_task && layout.ntasks > 1) {
    throw Error(ErrorKind::usage,
                fmt::format("backend {} sums within one task, and these are {} on {}", backend,
                            layout.ntasks, counted(layout.nodes, "node")),
                where,
                known.inside ? fmt::format("put another between the tasks, such as {}/mpi", backend)
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
    throw Error(ErrorKind::usage,
                fmt::format("cpus_per_task {} and cpus_per_replica {} contradict each other "
                            "with {} replicas a task",
                            *per_task, *per_replica, of_a_task),
                where, "give one of them");
  }
  if (layout.cpus_per_replica < 1 && layout.replicas_are_cores) {
    throw Error(ErrorKind::usage,
                fmt::format("{} replicas in a task of {} CPUs", of_a_task, layout.cpus_per_task),
                where, "give each replica at least one: raise cpus_per_task");
  }
  return layout;
}

}  // namespace paceline
