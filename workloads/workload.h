// A workload: a network, its data and its defaults.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "engine/core/support.h"
#include "engine/input/loading/dataset.h"
#include "engine/plan/network.h"
#include "results/parameters.h"

namespace paceline {

struct Workload {
  std::string name;
  std::string summary;  // for `paceline list workloads`
  Network network;      // with the default variant
  Point defaults;       // this workload's defaults; other parameters have common ones
  // Folder name in data/. Empty: samples are synthetic, or `load` makes them.
  std::string data_set;
  std::size_t train_samples = 0, test_samples = 0;  // of the complete set, for synthetic input
  // `options` apply to encoded images; samples in memory ignore them.
  std::function<DatasetPair(const std::filesystem::path& folder, const InputOptions& options)> load;
  std::function<std::string(const std::filesystem::path& folder)> hash;
  // The network for a value of the parameter `variant`. Empty: there is only one.
  std::function<Network(const std::string& variant)> variant = {};
};

using WorkloadFactory = Workload (*)();

// With its variant and loss. Throws usage for a variant that the workload does not have.
Network make_network(const Workload& workload, const Point& parameters);

}  // namespace paceline
