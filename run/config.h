// A run's parameters as plain structs. Later code never uses a parameter's name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/device/device.h"
#include "engine/input/cache/image_store.h"
#include "engine/launch/topology.h"
#include "engine/train/checkpoint/manifest.h"
#include "engine/train/config.h"
#include "results/parameters.h"
#include "workloads/workload.h"

namespace paceline {

struct PlaceConfig {
  std::string backend, device, precision;
  Layout layout;
  bool oversubscribe = false, near_gpu = true;
};

struct InputConfig {
  bool synthetic = false;
  CacheKind cache = CacheKind::decoded;
  DType cache_type = DType::u8;
  std::optional<std::size_t> cache_bytes;  // per node; empty: half of the free memory
  int parallel_reads = 1;                  // per replica
  std::size_t read_buffer_bytes = 0;       // 0: a whole sample
  bool skip_bad_samples = false;
  PACELINE_SETTING(std::size_t, train_limit, 0);  // samples; 0: all
  PACELINE_SETTING(std::size_t, test_limit, 0);   // the same
  // Given parameters that only apply to encoded images.
  std::vector<std::string> for_encoded_images;
  PACELINE_END_FACTS
};

struct CheckpointConfig {
  CheckpointSchedule schedule;
  int keep = 0;  // newest checkpoints; 0: all
  bool weights_only = false;
  bool is_on() const { return schedule.unit != CheckpointUnit::never; }
  // A run may stop at any step and go on later.
  bool can_resume() const { return is_on() && !weights_only; }
};

struct EventConfig {
  std::string folder;  // empty: no event files
  int histogram_every = 0;
};

struct RunConfig {
  PlaceConfig place;
  NetworkConfig network;
  ThreadPlan threads;    // per replica
  DeviceOptions device;  // from parameters: precision, graphs, sums, determinism
  std::string weights;   // a file, "imagenet" or "none"
  InputConfig input;
  CheckpointConfig checkpoints;
  EventConfig events;
  TrainConfig train;
};

// `parameters` are resolved. Throws usage for values that cannot be parsed.
RunConfig make_config(const Point& parameters);
PlaceConfig make_place_config(const Point& parameters);
NetworkConfig make_network_config(const Point& parameters);

// How a replica's CPUs are divided, with defaults filled in.
ThreadPlan assign_threads(const Point& parameters, const Layout& layout);

// Replicas train independently, as with backend null.
bool lets_replicas_drift(const std::string& backend);

// Converts configuration and flags to the engine's input options.

// Flags of `train` that are not parameters, because they are local paths.
struct InputPlaces {
  std::filesystem::path data;   // --data; empty: find it
  std::filesystem::path stage;  // --stage; empty: read files in place
  std::filesystem::path cache;  // --cache-dir; empty: decode again what does not fit
};

// Throws usage for contradictions. Accesses no files.
void check_places(const InputConfig& config, const InputPlaces& places);

// Options for one process. Throws usage if the cache is larger than the free memory.
InputOptions input_options(const InputConfig& config, const InputPlaces& places,
                           const Layout& layout);

// Throws usage for parameters or flags that only apply to encoded images.
void check_samples_in_memory(const InputConfig& config, const InputPlaces& places);

}  // namespace paceline
