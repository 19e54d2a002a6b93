// Samples that take a known time to read, so that the serial share of a run is known.
//
// Each sample takes one nap of 10 ms, but the first of each group of 32 takes nine. All replicas
// wait for its eight extra naps at the all-reduce. So a global batch of 32 on N replicas takes 8 +
// 32/N naps, and the serial share is 8/40 = 0.20. All naps have the same length, so a constant
// timer delay cancels.
#pragma once

#include "engine/input/formats/source.h"

namespace paceline {

constexpr std::size_t kSamplesOfGroup = 32;
constexpr int kNapsOfSlowSample = 9;
constexpr double kNapSeconds = 10e-3;
constexpr double kSerialShare = 8.0 / 40.0;

class TimedSource : public SampleSource {
 public:
  // Without `naps`, samples are read instantly, as for a test set.
  TimedSource(std::size_t samples, int classes, bool naps);

  std::size_t samples() const override { return samples_; }
  void read(std::size_t i, EncodedSample& sample) const override;
  std::string where(std::size_t i) const override;
  std::int32_t label(std::size_t i) const override;
  std::string hash() const override;
  std::vector<std::filesystem::path> files() const override { return {}; }

  static constexpr int kSide = 8;

 private:
  std::size_t samples_;
  int classes_;
  bool naps_;
};

}  // namespace paceline
