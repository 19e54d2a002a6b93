// A resolved training run: everything `paceline train` does after parsing its command line.
#pragma once

#include <filesystem>
#include <string>

#include "engine/core/json.h"
#include "results/store.h"
#include "run/checkpoints.h"
#include "run/config.h"
#include "run/world.h"
#include "workloads/workload.h"

namespace paceline {

// Throws usage suggesting the nearest workload.
Workload make_workload(const std::string& name);

// Every parameter with its value: given ones, then the workload's, then the common defaults. Throws
// usage for contradictions. Does not access the data set.
Point resolve_parameters(const Workload& workload, const Point& given);

// gpus, nodes, backend, device, precision and cpus_per_task, with their defaults.
Point resolve_place(const Point& given);

// gpus, nodes, device and cpus_per_task of a program of the user's own. Throws usage.
Point resolve_program(const Point& given);

// Throws input if the file exists or cannot be written.
void check_new_record(const std::filesystem::path& file);

LaunchSpec make_launch_spec(const PlaceConfig& place);
LaunchSpec make_launch_spec(const RunConfig& config);
// Where the record goes, and the run's place in a sweep.
struct RecordTarget : RunPlace {
  std::filesystem::path file;   // --record
  std::filesystem::path store;  // folder of a sweep's study
};

struct RunRequest {
  std::string workload;
  Point parameters;  // resolved
  RunConfig config;  // from these
  Deadlines deadlines;
  InputPlaces places;
  StatePlaces state;
  EventPlaces events;
  RecordTarget target;
  std::filesystem::path trace;  // --trace; empty: none
  bool json = false;            // prints the record to standard output
  bool quiet = false, verbose = false;
  bool log_ranks = false;            // all ranks print their log
  std::filesystem::path log_folder;  // gets rank-3.log etc.; may be empty
  std::vector<std::string> command;  // as typed
};

// Runs this process's share of the training, as a rank or as the only process. Returns 0 or throws.
int run_training(const RunRequest& request);

}  // namespace paceline
