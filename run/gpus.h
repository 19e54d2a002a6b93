// The GPUs of a run's replicas.
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

// Null if the device is not a GPU device.
std::unique_ptr<GpuDriver> load_driver(const std::string& device);
bool is_gpu_device(const std::string& device);
// Its replicas may share a GPU, because it reduces on the host, or the user lets NCCL's ranks.
bool may_share_gpus(const std::string& backend, const Environment& environment);
std::string first_gpu_device();  // the first one built; empty: none

// The file with measured algorithm choices: gpu-choices.json in $XDG_CACHE_HOME/paceline or
// ~/.cache/paceline. Empty: nowhere.
std::filesystem::path choices_file(const Environment& environment);

// The GPUs of this process's replicas. Move-only: backends keep its functions.
class ChosenGpus {
 public:
  // Throws usage with a cure if there are too few GPUs, or one that this build does not support.
  // Backends that reduce on the host may let replicas share a GPU.
  ChosenGpus() = default;
  ChosenGpus(const std::string& device, const std::string& backend, const ProcessRank& process,
             int replicas);

  // Null: no GPUs.
  const ReplicaGpus* replicas() const { return driver_ ? &replicas_ : nullptr; }
  int device_index(int replica) const;
  const std::vector<Gpu>& cards() const { return replicas_.gpus; }
  const GpuDriver& driver() const { return *driver_; }  // requires GPUs

 private:
  std::shared_ptr<GpuDriver> driver_;
  ReplicaGpus replicas_;
};

}  // namespace paceline
