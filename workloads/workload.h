// A workload: a network, its data and its defaults.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "engine/core/support.h"
#include "engine/input/dataset.h"
#include "engine/plan/network.h"
#include "results/parameters.h"

namespace paceline {

struct Workload {
  std::string name;
  std::string summary;  // one line for `paceline list workloads`
  Network network;
  Point defaults;        // parameters that this workload sets; the rest have common defaults
  std::string data_set;  // folder name below data/
  std::size_t train_samples = 0, test_samples = 0;  // of the whole set, for synthetic input
  std::function<DatasetPair(const std::filesystem::path& folder)> load;
  std::function<std::string(const std::filesystem::path& folder)> hash;
};

using WorkloadFactory = Workload (*)();

}  // namespace paceline
