#include <chrono>
#include <thread>

#include "engine/core/hash.h"
#include "engine/input/formats/source.h"
#include "workloads/workload.h"

namespace paceline {

// Samples that take a known time to read, so that the serial share of a run is known.
//
// Each sample takes one nap of 10 ms, but the first of each group of 32 takes nine. All replicas
// wait for its eight extra naps at the all-reduce. So a global batch of 32 on N replicas takes 8 +
// 32/N naps, and the serial share is 8/40 = 0.20. All naps have the same length, so a constant
// timer delay cancels.

constexpr std::size_t kSamplesOfGroup = 32;
constexpr int kNapsOfSlowSample = 9;
constexpr double kNapSeconds = 10e-3;

class TimedSource : public SampleSource {
 public:
  // Without `naps`, samples are read instantly, as for a test set.
  TimedSource(std::size_t samples, int classes, bool naps)
      : samples_(samples), classes_(classes), naps_(naps) {}

  std::size_t samples() const override { return samples_; }
  void read(std::size_t i, EncodedSample& sample) const override {
    const int naps = i % kSamplesOfGroup == 0 ? kNapsOfSlowSample : 1;
    for (int nap = 0; naps_ && nap < naps; ++nap) {
      std::this_thread::sleep_for(std::chrono::duration<double>(kNapSeconds));
    }
    sample.height = sample.width = kSide;
    sample.bytes.assign(std::size_t{kSide} * kSide * 3, static_cast<char>(i % 251));
    sample.image = sample.bytes;
    sample.label = label(i);
  }
  std::string where(std::size_t i) const override {
    return "sample " + std::to_string(i) + " of amdahl";
  }
  std::int32_t label(std::size_t i) const override {
    return static_cast<std::int32_t>(i % static_cast<std::size_t>(classes_));
  }
  std::string hash() const override {
    Hash hash;
    hash.add("amdahl 1 " + std::to_string(samples_) + (naps_ ? " naps" : ""));
    return hash.hex();
  }
  std::vector<std::filesystem::path> files() const override { return {}; }

  static constexpr int kSide = 8;

 private:
  std::size_t samples_;
  int classes_;
  bool naps_;
};

namespace {

constexpr int kClasses = 10;
constexpr std::size_t kTrainSamples = 100 * kSamplesOfGroup, kTestSamples = 100;

ImageSet timed_set() {
  ImageSet set;
  set.name = "amdahl";
  set.format = "samples that take a known time";
  for (int label = 0; label < kClasses; ++label) set.classes.push_back(std::to_string(label));
  set.splits["train"] = std::make_shared<TimedSource>(kTrainSamples, kClasses, true);
  set.splits["test"] = std::make_shared<TimedSource>(kTestSamples, kClasses, false);
  return set;
}

DatasetPair load(const std::filesystem::path&, const InputOptions& options) {
  constexpr int kSide = TimedSource::kSide;
  return load_images(timed_set(), "train", "test", {kSide, kSide, 3}, options);
}

std::string hash(const std::filesystem::path&) {
  return timed_set().hash();
}

}  // namespace

// In order (a buffer of one sample does not shuffle), so that each global batch of 32 has its slow
// sample; without a cache, which would know the samples, and input threads, which would read ahead.
Workload make_amdahl() {
  Network network("amdahl", {TimedSource::kSide, TimedSource::kSide, 3}, kClasses);
  network.flatten().dense(kClasses);
  return {.name = "amdahl",
          .summary = "self-test: no data, a fifth of each step is serial by construction",
          .network = std::move(network),
          .defaults = {{"batch_per_replica", std::int64_t{kSamplesOfGroup}},
                       {"shuffle_buffer", 1},
                       {"cache", "off"},
                       {"input_threads", 0},
                       {"evaluate", "none"},
                       {"optimizer", "sgd"}},
          .data_set = "",
          .train_samples = kTrainSamples,
          .test_samples = kTestSamples,
          .load = load,
          .hash = hash};
}

}  // namespace paceline
