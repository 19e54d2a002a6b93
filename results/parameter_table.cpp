// Every parameter, once. docs/options.md is made of this table.
#include "results/parameters.h"

namespace paceline {

const std::vector<Parameter>& parameters() {
  using enum ValueKind;
  using enum OnResume;
  using G = Group;
  using R = Role;
  static const std::vector<Parameter> table = {
      {.name = "gpus",
       .kind = integer,
       .values = "1..",
       .initial = "1",
       .group = G::place,
       .role = R::layout,
       .help = "replicas in all; on the cpu device a replica is a group of cores"},
      {.name = "nodes",
       .kind = integer,
       .values = "1..",
       .initial = "1",
       .group = G::place,
       .role = R::layout,
       .help = "nodes that the tasks are spread over"},
      {.name = "cpus_per_task",
       .kind = integer,
       .values = "1..",
       .otherwise = "all usable CPUs, shared by the tasks",
       .group = G::place,
       .role = R::layout,
       .on_resume = free,
       .help = "CPUs of one task (process): its whole thread budget"},
      {.name = "cpus_per_replica",
       .kind = integer,
       .values = "1..",
       .otherwise = "see cpus_per_task",
       .group = G::place,
       .role = R::layout,
       .on_resume = free,
       .help = "CPUs of one replica, instead of cpus_per_task"},
      {.name = "backend",
       .kind = text,
       .otherwise = "self for one replica; for several nccl on GPUs, else mpi, else mirrored",
       .group = G::place,
       .role = R::layout,
       .help = "communication stack (see: paceline list backends)"},
      {.name = "device",
       .kind = text,
       .initial = "cpu",
       .group = G::place,
       .help = "what replicas compute on (see: paceline list devices)"},
      {.name = "oversubscribe",
       .kind = boolean,
       .initial = "false",
       .group = G::place,
       .on_resume = free,
       .help = "let replicas share cores where there are too few"},
