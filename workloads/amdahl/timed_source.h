// Samples that take a known time to read, so that the serial share of a run is known.
//
// Every sample takes one nap of 10 ms. In each group of 32 the first takes nine: eight more, for
// which all replicas wait at the all-reduce, whichever of them has it. A global batch of 32 on N
// replicas so takes 8 + 32/N naps, and 8 of 40 is the share that no replicas divide: 0.20. Naps are
// all of one length, so that a timer that is late by as much each time changes nothing.
#pragma once

#include "engine/input/formats/source.h"

namespace paceline {

constexpr std::size_t kSamplesOfGroup = 32;
constexpr int kNapsOfSlowSample = 9;
constexpr double kNapSeconds = 10e-3;
constexpr double kSerialShare = 8.0 / 40.0;

class TimedSource : public SampleSource {
 public:
  // Without `naps` samples are there at once, as for a test set.
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
