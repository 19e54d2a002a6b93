// The GPUs of a run's replicas, where its device is of GPUs.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm/backend.h"
#include "engine/core/environment.h"
#include "engine/device/gpu_driver.h"
#include "engine/launch/process_rank.h"

namespace paceline {

// Null: the device of that name is not of GPUs.
std::unique_ptr<GpuDriver> driver_of(const std::string& device);
bool is_gpu_device(const std::string& device);
bool may_share_gpus(const std::string& backend);  // its replicas: it reduces on the host
std::string first_gpu_device();                   // that was built; empty: none

// Where the ways to compute that were measured on a card are kept: gpu-choices.json in
// $XDG_CACHE_HOME/paceline or ~/.cache/paceline. Empty: nowhere.
std::filesystem::path choices_file(const Environment& environment);

// Those of this process's replicas. Moved, not copied: backends keep the functions.
class ChosenGpus {
 public:
  ChosenGpus() = default;  // the device is not of GPUs
  // Throws usage, with the cure, where there are too few, or one that this build does not run on.
  // Backends that reduce on the host may let replicas share one.
  ChosenGpus(const std::string& device, const std::string& backend, const ProcessRank& process,
             int replicas);

  // Null: none.
  const ReplicaGpus* replicas() const { return driver_ ? &replicas_ : nullptr; }
  int index_of(int replica) const;
  const std::vector<Gpu>& cards() const { return replicas_.gpus; }
  const GpuDriver& driver() const { return *driver_; }  // where there are cards

 private:
  std::shared_ptr<GpuDriver> driver_;
  ReplicaGpus replicas_;
};

}  // namespace paceline
