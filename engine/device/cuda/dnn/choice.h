// Chooses one of several ways to compute a product.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/core/backend_stack.h"
#include "engine/core/dtype.h"
#include "engine/device/cuda/kernels/probe.h"
#include "engine/device/cuda/products.h"

namespace paceline::cuda {

// One way to compute a product, with a name by which a later run can build it again.

// For cuDNN an engine with its knobs; for cuBLASLt an algorithm, its 64 bytes in hexadecimal; for
// our kernels the way as `engine`, of which 0 is the last resort.
struct Recipe {
  enum class Library { cudnn, cublas_lt, own };
  struct Knob {
    std::int64_t type = 0, value = 0;
    friend auto operator<=>(const Knob&, const Knob&) = default;
  };

  Library library = Library::cudnn;
  std::int64_t engine = 0;
  std::vector<Knob> knobs;
  std::string algorithm;

  bool is_first_own() const { return library == Library::own && engine == 0; }
  std::string text() const;  // "cuDNN engine 47 (2=3 14=1)", "cuBLASLt algorithm 66"
  friend bool operator==(const Recipe&, const Recipe&) = default;
};

class Implementation {
 public:
  virtual ~Implementation() = default;
  virtual std::size_t workspace_bytes() const = 0;
  virtual void run(const Operands& operands, Stream stream) = 0;
};

struct Candidate {
  Recipe recipe;
  bool tensor_cores = false;
  bool compiles = false;  // at build time, which takes up to seconds
  // Throws if the library does not support it after all.
  std::function<std::shared_ptr<Implementation>()> build;
};

// The libraries' candidates for a product, most promising first.
struct Offered {
  int count = 0;                      // before filtering
  std::vector<Candidate> candidates;  // after filtering
  std::string refused;                // why the first one was rejected, if any was
};

// What the choice of algorithms needs from a card. The CUDA device implements it.

class Tuner {
 public:
  using Work = std::function<void(Stream)>;  // queues on the stream; may throw

  virtual ~Tuner() = default;
  virtual std::string card() const = 0;  // "NVIDIA H200": choices are stored under this name
  // GPU memory, aligned to 256 bytes, as long as the result exists. Throws usage if there is too
  // little.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  // Fills memory with uniform values in [-1, 1), before anything queued later reads it.
  virtual void randomize(void* memory, std::size_t elements, DType type) = 0;
  // Makes every element NaN.
  virtual void poison(void* memory, std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual ResultDifference compare(const void* result, const void* reference, std::size_t elements,
                                   DType type) = 0;
  // Captures the work into an executable graph, which is then destroyed. An Error of the work ends
  // the capture and gives "no".
  virtual Support capture(const Work& work) = 0;
  // Runs it, and returns its seconds by the host's clock when it is done.
  virtual double run(const Work& work) = 0;
  // The memory by which time() overwrites the card's cache. Must outlive all calls of it.
  virtual std::shared_ptr<void> allocate_flushed() = 0;
  // Seconds of each of `runs` runs, measured with events, after `warm_ups` additional runs.
  // Overwrites the card's cache before each run. Returns when everything is done.
  virtual std::vector<double> time(const Work& work, int warm_ups, int runs) = 0;
};

struct Choice {
  enum class Origin { heuristic, measured, file };

  std::string request;  // to_text(request)
  Recipe recipe;
  bool tensor_cores = false;
  std::size_t workspace_bytes = 0;
  int offered = 0;  // by the libraries
  // How many of these are admitted, supported, have a small enough workspace, and did not fail.
  int usable = 0;
  // Medians. 0 if nothing was measured, or without a runner-up.
  double seconds = 0, runner_up_seconds = 0;
  std::string runner_up;  // text of its recipe
  Origin origin = Origin::heuristic;
};

// How far the results of two candidates may be apart: the norm of their difference as a part of the
// result's norm, and an element's difference as a multiple of the result's root mean square.
struct Agreement {
  double norm = 0, element = 0;
};

// Of sums of `terms` products.
Agreement find_agreement(Math math, std::size_t terms);

struct ChoiceRules {
  std::size_t workspace_limit = 0;  // bytes
  bool measures = false;            // chooses the fastest; else the first usable one
  bool repeats = false;             // leaves out what gives other bits in a second run
  int most_compiled = 3;            // how many candidates that compile at build time to measure
  Agreement agreement = {};
  // Called before a candidate is tried, which may not return.
  std::function<void(const Recipe&)> trying = [](const Recipe&) {};
  // Called for a candidate that computes something else, or that broke the GPU's context, after
  // which this process can compute nothing. True if later processes will leave it out.
  std::function<bool(const Recipe&, const std::string& because)> exclude =
      [](const Recipe&, const std::string&) { return false; };
};

struct Chosen {
  Choice choice;
  std::shared_ptr<Implementation> implementation;
};

// Captures and measures nothing without a tuner (null), or if GPU memory is too small, which is
// logged. Throws usage if no candidate is usable.
//
// Every candidate that may be chosen runs once on the same operands, with its results poisoned
// before. One whose result is not finite, or is zero, is excluded, and, if candidates are measured,
// one whose result is not that of most (where it misses by little, only this time): results that
// agree form groups, and the largest group is right; of groups of a size, the one with the
// candidate that the libraries offer first. Where our kernels are a candidate, the result of their
// first way is right.
Chosen choose(const std::string& request, const Offered& offered,
              const std::vector<TensorSize>& sizes, const ChoiceRules& rules, Tuner* tuner);

}  // namespace paceline::cuda
