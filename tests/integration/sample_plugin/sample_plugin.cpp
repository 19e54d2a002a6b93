// A backend and a device of GPUs that no other folder knows: the tables and their registration have
// to do. The device computes as "reference" does.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm/algorithms/hierarchical.h"
#include "engine/device/device.h"
#include "engine/device/gpu_driver.h"

namespace paceline {

std::unique_ptr<Device> make_reference_device(const DeviceOptions& options);

namespace {

class SamplePluginBackend : public Backend {
 public:
  std::string_view name() const override { return "tincans"; }
  Support serves(const Membership& membership) const override {
    return serves_one_process(membership, name());
  }
  std::vector<std::unique_ptr<Communicator>> connect(const Membership& membership) override {
    return connect_threads<ThreadCommunicator>(membership);
  }
  std::string description() const override { return "threads that hold a string"; }
};

class SamplePluginWatch : public GpuWatch {
 public:
  explicit SamplePluginWatch(const std::vector<std::string>& pcis) : all_(pcis.size()) {
    for (std::size_t i = 0; i < pcis.size(); ++i) {
      all_[i].name = "Sample GPU";
      all_[i].pci = pcis[i];
      all_[i].utilization = 0.5;
    }
  }
  std::vector<GpuFacts> stop() override { return all_; }

 private:
  std::vector<GpuFacts> all_;
};

class SamplePluginDriver : public GpuDriver {
 public:
  std::vector<VisibleGpu> visible(std::string&) const override {
    return {{0, "Sample GPU", "0000:01:00.0", "GPU-a", 1, 0, 1 << 30},
            {1, "Sample GPU", "0000:02:00.0", "GPU-b", 1, 0, 1 << 30}};
  }
  Support runs_on(const VisibleGpu&) const override { return Support::yes(); }
  void select(int) const override {}
  std::unique_ptr<GpuWatch> watch(const std::vector<std::string>& pcis) const override {
    return std::make_unique<SamplePluginWatch>(pcis);
  }
  void clear(void* data, std::size_t bytes) const override { std::memset(data, 0, bytes); }
};

}  // namespace

std::unique_ptr<Backend> make_sample_plugin_backend() {
  return std::make_unique<SamplePluginBackend>();
}
std::unique_ptr<Device> make_sample_plugin_device(const DeviceOptions& options) {
  return make_reference_device(options);
}
std::unique_ptr<GpuDriver> make_sample_plugin_driver() {
  return std::make_unique<SamplePluginDriver>();
}

}  // namespace paceline
