// A card that is not there: gives no memory, runs nothing, and says the times that it was told.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "engine/device/cuda/dnn/choice.h"

namespace paceline::cuda {

class FakeTuner : public Tuner {
 public:
  std::string name = "fake card";
  bool has_memory = true;
  bool runs = true;  // calls the work; else it is only counted
  // Seconds of a run and whether a graph can hold it, asked after the work has run once.
  std::function<double()> seconds = [] { return 1e-3; };
  std::function<Support()> captures = [] { return Support::yes(); };
  std::function<bool()> works = [] { return true; };  // else whatever runs fails

  std::size_t allocated = 0;  // bytes
  int randomized = 0, captured = 0, timed_runs = 0;

  std::string card() const override { return name; }

  std::shared_ptr<void> allocate(std::size_t bytes) override {
    if (!has_memory) throw Error(ErrorKind::usage, "no memory");
    allocated += bytes;
    return std::make_shared<char>();
  }
  void randomize(void*, std::size_t, DType) override { ++randomized; }
  Support capture(const Work& work) override {
    ++captured;
    if (runs) work(nullptr);
    return captures();
  }
  std::vector<double> time(const Work& work, int warm_ups, int runs_asked) override {
    for (int i = 0; runs && i < warm_ups + runs_asked; ++i) work(nullptr);
    if (!works()) throw Error(ErrorKind::internal, "an illegal memory access was encountered");
    timed_runs += runs_asked;
    return std::vector<double>(static_cast<std::size_t>(runs_asked), seconds());
  }
};

}  // namespace paceline::cuda
