// What trainings on emulated GPUs share: the fake NCCL, and GPUs for its replicas.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/integration/train/training.h"
#include "tests/support/scratch.h"

namespace paceline::training {

class OnFakeNccl : public ::testing::Test {
 protected:
  OnFakeNccl() {
    setenv("PACELINE_CUDA_LIBS", FAKE_NCCL, 1);
    setenv("FAKE_NCCL_FOLDER", scratch_.path().c_str(), 1);
    gpus_.select = [](int) {};
    gpus_.clear = [](void* data, std::size_t bytes) { std::memset(data, 0, bytes); };
  }
  ~OnFakeNccl() override { unsetenv("FAKE_NCCL_FAIL_CALL"); }
  void use_gpus(training::Run& run, int replicas) {
    gpus_.gpus.clear();
    for (int i = 0; i < replicas; ++i) {
      gpus_.gpus.push_back({i, "pci " + std::to_string(i), "", ""});
    }
    run.config.replicas = replicas;
    run.backend = "nccl";
    run.gpus = &gpus_;
  }
  // What NCCL would not have allowed.
  std::string misuse() const { return file_text(scratch_ / "misuse"); }

 private:
  Scratch scratch_;
  ReplicaGpus gpus_;
};

// Between any two parameters of the first replicas.
inline double largest_difference(const Result& a, const Result& b) {
  double most = 0;
  for (const auto& [name, values] : b.parameters[0]) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      most = std::max(most, std::abs(values[i] - a.parameters[0].at(name)[i]));
    }
  }
  return most;
}

}  // namespace paceline::training
