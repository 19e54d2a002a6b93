#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "analysis/statistics/anytime.h"
#include "analysis/statistics/robust.h"
#include "engine/core/random.h"

namespace paceline {
namespace {

class MadeRounds {
 public:
  explicit MadeRounds(double resemblance, std::uint32_t index = 0)
      : resemblance_(resemblance), random_(20261125, Stream::synthetic, 10 + index) {}

  std::vector<double> make(int count, double mean = 0) {
    std::vector<double> values;
    double state = random_.normal();
    for (int i = 0; i < count; ++i) {
      if (i > 0) {
        state =
            resemblance_ * state + std::sqrt(1 - resemblance_ * resemblance_) * random_.normal();
      }
      values.push_back(mean + state);
    }
    return values;
  }

 private:
  double resemblance_;
  RandomSequence random_;
};

double ever_rejected(double resemblance, int studies, int most) {
  MadeRounds rounds(resemblance);
  int rejected = 0;
  for (int study = 0; study < studies; ++study) {
    const std::vector<double> values = rounds.make(most);
    for (std::size_t n = 3; n <= values.size(); ++n) {
      if (AnytimeRounds({values.data(), n}).p_value() >= 0.05) continue;
      ++rejected;
      break;
    }
  }
  return static_cast<double>(rejected) / studies;
}

TEST(AnytimeRounds, KeepTheErrorWhereRoundsResembleEachOther) {
  for (const double resemblance : {0.0, 0.3, 0.5, 0.65, kMostResemblance}) {
    EXPECT_LE(ever_rejected(resemblance, 2000, 60), 0.05) << resemblance;
  }
}

TEST(AnytimeRounds, FindWhatIsThere) {
  MadeRounds rounds(0);
  int found = 0;
  for (int study = 0; study < 200; ++study) {
    found += AnytimeRounds(rounds.make(15, 4)).p_value() < 0.05;
  }
  EXPECT_GT(found, 180);
}

TEST(AnytimeRounds, TheIntervalIsWhatIsNotRejected) {
  const std::vector<double> values = MadeRounds(0).make(12, 1);
  const AnytimeRounds test(values);
  const auto interval = test.interval();
  ASSERT_TRUE(interval);
  EXPECT_NEAR(test.evidence_against(interval->low), 20, 1e-3);
  EXPECT_NEAR(test.evidence_against(interval->high), 20, 1e-3);
  EXPECT_LT(test.evidence_against((interval->low + interval->high) / 2), 20);
  std::vector<double> moved = values;
  for (double& value : moved) value = 10 + 3 * value;
  const auto wide = AnytimeRounds(moved).interval();
  EXPECT_NEAR(wide->low, 10 + 3 * interval->low, 1e-6);
  EXPECT_NEAR(wide->high, 10 + 3 * interval->high, 1e-6);
}

TEST(AnytimeRounds, FewRoundsHaveNoInterval) {
  EXPECT_FALSE(AnytimeRounds(std::vector{1.0}).interval());
  EXPECT_FALSE(AnytimeRounds(std::vector{1.0, 1.1, 0.9}).interval());
  EXPECT_EQ(AnytimeRounds(std::vector{0.0, 0.0, 0.0, 0.0}).p_value(), 1);
  // Equal differences, however large, take as many rounds to be told from a slow wave.
  const std::vector<double> equal(10, 0.05);
  EXPECT_LT(AnytimeRounds(equal).p_value(), 0.001);
  EXPECT_NEAR(AnytimeRounds(equal).interval()->low, 0.05, 1e-6);
}

TEST(AnytimeRounds, ResemblanceIsEstimated) {
  double slow = 0, fast = 0;
  MadeRounds alike(0.95, 1), apart(0, 2);
  for (int study = 0; study < 50; ++study) {
    slow += AnytimeRounds(alike.make(40)).resemblance() / 50;
    fast += AnytimeRounds(apart.make(40)).resemblance() / 50;
  }
  EXPECT_GT(slow, 0.75);
  EXPECT_LT(fast, 0.2);
}

TEST(Outliers, AreFarFromTheOthersAndFew) {
  EXPECT_EQ(outlying(std::vector{0.0, 0.01, -0.01, 0.5, 0.0}, 0.1), std::vector<std::size_t>{3});
  EXPECT_TRUE(outlying(std::vector{0.0, 0.01, -0.01, 0.09, 0.0}, 0.1).empty()) << "not by 10 %";
  EXPECT_TRUE(outlying(std::vector{0.0, 0.1, -0.1, 0.4, 0.05}, 0.1).empty()) << "noisy";
  EXPECT_TRUE(outlying(std::vector{0.0, 0.01, 0.5, 0.5, 0.0}, 0.1).empty()) << "a second mode";
  EXPECT_TRUE(outlying(std::vector{0.0, 0.0, 0.5}, 0.1).empty()) << "too few to tell";
}

}  // namespace
}  // namespace paceline
