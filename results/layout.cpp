#include "results/layout.h"

#include <fmt/format.h>

#include "engine/core/error.h"
#include "results/names.h"

namespace paceline {

namespace {

int bounded(std::int64_t count, const char* name, const std::string& where) {
  constexpr std::int64_t kMost = 10'000'000;
  if (count > kMost) {
    throw Error(ErrorKind::usage, fmt::format("{} cannot be {}", name, count), where,
                fmt::format("give at most {}", kMost));
  }
  return static_cast<int>(count);
}

}  // namespace

Layout layout_of(const Point& parameters, const std::string& where) {
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
  layout.ntasks = one_a_node ? layout.nodes : layout.gpus;
  const int replicas_per_task = layout.gpus / layout.ntasks;
  const auto per_task = parameters.integer("cpus_per_task");
  const auto per_replica = parameters.integer("cpus_per_replica");
  layout.cpus_per_task =
      bounded(per_task.value_or(bounded(per_replica.value_or(1), "cpus_per_replica", where) *
                                std::int64_t{replicas_per_task}),
              "cpus_per_task", where);
  layout.cpus_per_replica = layout.cpus_per_task / replicas_per_task;
  if (per_task && per_replica && *per_replica != layout.cpus_per_replica) {
    throw Error(ErrorKind::usage,
                fmt::format("cpus_per_task {} and cpus_per_replica {} contradict each other "
                            "with {} replicas a task",
                            *per_task, *per_replica, replicas_per_task),
                where, "give one of them");
  }
  if (layout.cpus_per_replica < 1 && layout.replicas_are_cores) {
    throw Error(
        ErrorKind::usage,
        fmt::format("{} replicas in a task of {} CPUs", replicas_per_task, layout.cpus_per_task),
        where, "give each replica at least one: raise cpus_per_task");
  }
  return layout;
}

}  // namespace paceline
