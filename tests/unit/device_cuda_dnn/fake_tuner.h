// A card that is not there: says the times that it was told. If it runs the work, its memory is the
// host's; else it gives none.
#pragma once

#include <cstring>
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
  std::size_t most_bytes = std::size_t{1} << 40;  // in all
  bool runs = true;                               // calls the work; else it is only counted
  // Seconds of a run and whether a graph can hold it, asked after the work has run once.
  std::function<double()> seconds = [] { return 1e-3; };
  std::function<Support()> captures = [] { return Support::yes(); };
  std::function<bool()> works = [] { return true; };  // else whatever runs fails

  std::size_t allocated = 0;  // bytes
  int randomized = 0, captured = 0, ran = 0, timed_runs = 0, flushed = 0;

  std::string card() const override { return name; }

  std::shared_ptr<void> allocate(std::size_t bytes) override {
    if (!has_memory || allocated + bytes > most_bytes) throw Error(ErrorKind::usage, "no memory");
    allocated += bytes;
    return std::shared_ptr<char[]>(new char[runs ? bytes : 1]());
  }
  // A quarter in the first tensor, a half in the second, and so on.
  void randomize(void* memory, std::size_t elements, DType type) override {
    const float value = 0.25F * static_cast<float>(++randomized);
    for (std::size_t i = 0; runs && i < elements; ++i) {
      if (type == DType::f32) static_cast<float*>(memory)[i] = value;
      if (type == DType::bf16) static_cast<Bf16*>(memory)[i] = from_float<Bf16>(value);
      if (type == DType::f16) static_cast<Half*>(memory)[i] = from_float<Half>(value);
    }
  }
  void poison(void* memory, std::size_t bytes) override {
    if (runs) std::memset(memory, 0xFF, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (runs) std::memcpy(to, from, bytes);
  }
  ResultDifference compare(const void* result, const void* reference, std::size_t elements,
                           DType type) override {
    ResultDifference all;
    if (!runs) all.reference_squares = 1;
    for (std::size_t i = 0; runs && i < elements; ++i) {
      const double a = element(result, i, type), b = element(reference, i, type);
      const auto place = [&](const void* in) {
        return static_cast<const char*>(in) + i * size_of(type);
      };
      const bool changed = std::memcmp(place(result), place(reference), size_of(type)) != 0;
      all.add({(a - b) * (a - b), b * b, a > b ? a - b : b - a, changed ? 1.0 : 0.0});
    }
    return all;
  }
  Support capture(const Work& work) override {
    ++captured;
    if (runs) work(nullptr);
    return captures();
  }
  double run(const Work& work) override {
    ++ran;
    if (runs) work(nullptr);
    check();
    return seconds();
  }
  std::shared_ptr<void> allocate_flushed() override {
    ++flushed;
    return allocate(0);
  }
  std::vector<double> time(const Work& work, int warm_ups, int runs_asked) override {
    for (int i = 0; runs && i < warm_ups + runs_asked; ++i) work(nullptr);
    check();
    timed_runs += runs_asked;
    return std::vector<double>(static_cast<std::size_t>(runs_asked), seconds());
  }

 private:
  void check() const {
    if (!works()) throw Error(ErrorKind::internal, "an illegal memory access was encountered");
  }
  static double element(const void* data, std::size_t i, DType type) {
    if (type == DType::f32) return static_cast<double>(static_cast<const float*>(data)[i]);
    return static_cast<double>(type == DType::bf16 ? to_float(static_cast<const Bf16*>(data)[i])
                                                   : to_float(static_cast<const Half*>(data)[i]));
  }
};

}  // namespace paceline::cuda
