#include "workloads/amdahl/timed_source.h"
#include "workloads/workload.h"

namespace paceline {

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
  Workload workload{.name = "amdahl",
                    .summary = "self-test: no data, a fifth of each step is serial by construction",
                    .network = std::move(network),
                    .defaults = {},
                    .data_set = "",
                    .train_samples = kTrainSamples,
                    .test_samples = kTestSamples,
                    .load = load,
                    .hash = hash};
  workload.defaults.set("batch_per_replica", std::int64_t{kSamplesOfGroup});
  workload.defaults.set("shuffle_buffer", std::int64_t{1});
  workload.defaults.set("cache", std::string("off"));
  workload.defaults.set("input_threads", std::int64_t{0});
  workload.defaults.set("evaluate", std::string("none"));
  workload.defaults.set("optimizer", std::string("sgd"));
  return workload;
}

}  // namespace paceline
