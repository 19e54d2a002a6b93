#include "run/gpus.h"

#include <fmt/format.h>

#include "engine/core/backend_stack.h"
#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/device/device.h"
#include "results/names.h"
#include "run/resolve.h"

namespace paceline {

bool may_share_gpus(const std::string& backend, const Environment& environment) {
  const BackendStack stack = split_stack(backend);
  if (!stack.inside.empty()) return false;
  const Name between = find_name("backend", stack.between);
  return !between.gpu_each ||
         (between.tasks == "replica" &&
          (is_nccl_sharing_enabled(environment) || are_nccl_ranks_nodes(environment)));
}

std::unique_ptr<GpuDriver> load_driver(const std::string& device) {
  const auto* row = find_factory(driver_table(), device);
  return row != nullptr ? row->make() : nullptr;
}

std::string first_gpu_device() {
  return driver_table().empty() ? "" : driver_table().front().name;
}

std::string gpus_of_this_machine(const std::string& device) {
  const auto driver = load_driver(device);
  if (!driver) return "";
  std::string why;
  const auto names = distinct(driver->visible(why), &VisibleGpu::name);
  return names.size() == 1 ? *names.begin() : "";  // of several kinds nobody knows which are used
}

bool is_gpu_device(const std::string& device) {
  return find_name("device", device).gpus;
}

std::filesystem::path choices_file(const Environment& environment) {
  const std::filesystem::path home = environment_value(environment, "HOME");
  std::filesystem::path cache = environment_value(environment, "XDG_CACHE_HOME");
  if (cache.empty() && !home.empty()) cache = home / ".cache";
  return cache.empty() ? cache : cache / "paceline" / "gpu-choices.json";
}

ChosenGpus::ChosenGpus(const std::string& device, const std::string& backend,
                       const ProcessRank& process, int replicas)
    : driver_(load_driver(device)) {
  if (!driver_) return;
  std::string why;
  std::vector<Gpu> visible;
  for (const VisibleGpu& gpu : driver_->visible(why)) {
    visible.push_back({gpu.index, gpu.pci, gpu.uuid, gpu.name});
  }
  if (visible.empty()) {
    throw usage_error(fmt::format("device {} needs a GPU: {}", device, why), "",
                      "run it where nvidia-smi shows one, or give --device cpu");
  }
  const Environment environment = environment_of_process();
  const bool may_share = may_share_gpus(backend, environment);
  replicas_.gpus = choose_gpus(visible, process, replicas, environment,
                               may_share ? GpuSharing::allowed : GpuSharing::refused);
  replicas_.select = [driver = driver_, gpus = replicas_.gpus](int replica) {
    driver->select(gpus.at(static_cast<std::size_t>(replica)).index);
  };
  replicas_.clear = [driver = driver_](void* data, std::size_t bytes) {
    driver->clear(data, bytes);
  };
}

int ChosenGpus::device_index(int replica) const {
  return driver_ ? replicas_.gpus.at(static_cast<std::size_t>(replica)).index : 0;
}

}  // namespace paceline
