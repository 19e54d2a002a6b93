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
  std::string summary;  // one line for `paceline list workloads`
  Network network;      // in the variant of the defaults
  Point defaults;       // parameters that this workload sets; the rest have common defaults
  // Folder name below data/; empty: there is none, and samples are synthetic, or `load` makes them.
  std::string data_set;
  std::size_t train_samples = 0, test_samples = 0;  // of the whole set, for synthetic input
  // `options` are for samples that are encoded images; where samples lie in memory they say
  // nothing.
  std::function<DatasetPair(const std::filesystem::path& folder, const InputOptions& options)> load;
  std::function<std::string(const std::filesystem::path& folder)> hash;
  // The network for a value of the parameter `variant`; empty: there is only one.
  std::function<Network(const std::string& variant)> variant = {};
};

using WorkloadFactory = Workload (*)();

// In its variant and with its loss. Throws usage for a variant that the workload does not have.
Network network_of(const Workload& workload, const Point& parameters);

}  // namespace paceline
