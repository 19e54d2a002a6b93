// The parts of a replay against timelines, links and maxima that were computed by hand.
#include <gtest/gtest.h>

#include "analysis/predict/laws.h"
#include "analysis/predict/network.h"
#include "analysis/predict/step_replay.h"
#include "engine/core/bucket_cuts.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

// Input 1, forward 2, backward 4, update 2, other 1: ten seconds without communication.
StepSeconds ten() {
  return {1, 2, 4, 0, 2, 1};
}

TEST(StepReplay, WithoutOverlapSumsFollowBackward) {
  StepReplay replay(2, {{0.5, 0.5, 3}, {1, 0.5, 2}}, false);
  for (int step = 0; step < 3; ++step) {
    // Backward ends at 7, sums at 10 and 12; the first update hides one second of the second sum.
    EXPECT_DOUBLE_EQ(replay.step({ten(), ten()}), 14);
  }
}

TEST(StepReplay, ASumThatEndsBeforeBackwardCostsNothing) {
  StepReplay replay(2, {{0.25, 0.9, 3}, {1, 0.1, 0}}, true);
  EXPECT_DOUBLE_EQ(replay.step({ten(), ten()}), 10);
}

TEST(StepReplay, TheLastBucketIsExposed) {
  StepReplay replay(2, {{0.25, 0.75, 1}, {1, 0.25, 2}}, true);
  // Backward ends at 7, when the first bucket is summed; its update ends at 8.5, the sum at 9.
  EXPECT_DOUBLE_EQ(replay.step({ten(), ten()}), 9 + 0.5 + 1);
}

TEST(StepReplay, ALateBucketDelaysTheNextOnTheLane) {
  // Ready at 5 and 6, summed from 5 to 9 and from 9 to 10.
  StepReplay replay(1, {{0.5, 0.5, 4}, {0.75, 0.5, 1}}, true);
  EXPECT_DOUBLE_EQ(replay.step({ten()}), 12);
}

TEST(StepReplay, ClippingWaitsForAllSums) {
  StepReplay replay(1, {{0.25, 0.75, 1}, {1, 0.25, 2}}, true, true);
  EXPECT_DOUBLE_EQ(replay.step({ten()}), 9 + 2 + 1);
}

TEST(StepReplay, AllWaitForTheLateRank) {
  StepReplay replay(3, {{1, 1, 1}}, true);
  StepSeconds late = ten();
  late.forward += 6;
  EXPECT_DOUBLE_EQ(replay.step({ten(), ten(), late}), 17);
}

TEST(LinkNetworks, FormsCostWhatTheirHeadersDefine) {
  LinkNetwork network{SumForm::ring, 0, {{"node", 0, 1e-3, 1e6, 1}}};
  EXPECT_DOUBLE_EQ(network.seconds(1e6, 1), 0);
  EXPECT_DOUBLE_EQ(network.seconds(1e6, 2), 1e-3 + 1);
  EXPECT_DOUBLE_EQ(network.seconds(1e6, 8), 14e-3 + 1.75);
  network.form = SumForm::tree;
  EXPECT_DOUBLE_EQ(network.seconds(1e6, 8), 6e-3 + 2);
}

TEST(LinkNetworks, ARingOverTwoLevelsHasTheSlowLinksBandwidthAndEachLinksLatency) {
  LinkNetwork network{SumForm::ring, 0, {{"core", 4, 1e-6, 1e9, 1}, {"node", 0, 1e-3, 1e6, 1}}};
  EXPECT_DOUBLE_EQ(network.seconds(1e6, 4), 6e-6 + 1.5e-3);
  // Two nodes: of seven links on the way six are inside.
  EXPECT_DOUBLE_EQ(network.seconds(1e6, 8), 2 * (6 * 1e-6 + 1e-3) + 1.75);
  network.form = SumForm::hierarchical;
  EXPECT_DOUBLE_EQ(network.seconds(1e6, 8), (6e-6 + 1.5e-3) + (1e-3 + 1));
  network.levels[1].shared_by = 4;
  EXPECT_DOUBLE_EQ(network.seconds(1e6, 8), (6e-6 + 1.5e-3) + (1e-3 + 4));
  EXPECT_EQ(network.highest_level(1), -1);
  EXPECT_EQ(network.highest_level(4), 0);
  EXPECT_EQ(network.highest_level(5), 1);
  EXPECT_FALSE(network.capacity());
}

TEST(LinkNetworks, ADescriptionIsReadWithComments) {
  const LinkNetwork network = parse_network(
      "{\"form\": \"tree\", \"call_seconds\": 1e-5, // measured\n \"levels\": [\n"
      "{\"level\": \"core\", \"units\": 4, \"latency_seconds\": 0, \"bytes_per_second\": 4e10},\n"
      "{\"level\": \"switch\", \"units\": 8, \"latency_seconds\": 2e-6, \"bytes_per_second\": 1e9,"
      "\"shared_by\": 2}]}",
      "links.json");
  EXPECT_EQ(network.form, SumForm::tree);
  ASSERT_EQ(network.levels.size(), 2U);
  EXPECT_EQ(network.levels[1].shared_by, 2);
  EXPECT_EQ(network.capacity(), 32);
  EXPECT_DOUBLE_EQ(network.seconds(0, 8), 1e-5 + 2 * 2e-6);
}

TEST(LinkNetworks, EachMistakeNamesLineAndKey) {
  const auto refused = [](const std::string& text, const std::vector<std::string>& parts) {
    expect_error(ErrorKind::input, parts, [&text] { parse_network(text, "links.json"); });
  };
  const std::string node = R"({"level": "node", "latency_seconds": 1, "bytes_per_second": 1})";
  refused("[]", {"links.json", "a JSON object"});
  refused("{}", {"links.json", "no levels"});
  refused("{\"levels\": [],\n\"levls\": 1}", {"links.json:2", "levls", "levels"});
  refused("{\n\"form\": \"rings\", \"levels\": [" + node + "]}", {"links.json:2", "ring"});
  refused("{\"levels\": [\n" + node + ",\n" + node + "]}", {"links.json:2", "units"});
  refused("{\"levels\": [\n{\"level\": \"nodes\"}]}", {"links.json:2", "node"});
  refused("{\"levels\": [\n{\"level\": \"node\", \"latency_seconds\": -1}]}",
          {"links.json:2", "latency_seconds"});
  refused(
      "{\"levels\": [\n{\"level\": \"node\", \"latency_seconds\": 0,\n\"bytes_per_second\": 0}]}",
      {"links.json:3", "bytes_per_second"});
  for (const char* value : {"1e-300", "0.99", "1e19", "\"1\""}) {
    refused(R"({"levels": [{"level": "node", "latency_seconds": 0, "bytes_per_second": )" +
                std::string(value) + "}]}",
            {"links.json:1", "bytes_per_second must be a number from 1 to 1e+18"});
  }
  refused("{\"call_seconds\": 1e7, \"levels\": [" + node + "]}",
          {"links.json:1", "call_seconds must be a number from 0 to 1e+06"});
  refused(
      "{\"levels\": [{\"level\": \"node\", \"units\": 2, \"latency_seconds\": 0, "
      "\"bytes_per_second\": 1},\n{\"level\": \"core\"}]}",
      {"links.json:2", "core stands after node"});
  refused(
      "{\"levels\": [{\"level\": \"node\", \"latency_seconds\": 0, \"bytes_per_second\": 1,\n"
      "\"shared_by\": 1.5}]}",
      {"links.json:2", "shared_by"});
}

TEST(NonnegativeFit, FindsCostsAndLeavesOutWhatIsNone) {
  std::vector<CostPoint> points;
  for (const double x : {1.0, 2.0, 4.0, 8.0}) points.push_back({{1, x, x * x}, 3 + 2 * x});
  const std::vector<double> fit = nonnegative_fit(points);
  EXPECT_NEAR(fit[0], 3, 1e-6);
  EXPECT_NEAR(fit[1], 2, 1e-6);
  EXPECT_NEAR(fit[2], 0, 1e-6);
  for (CostPoint& point : points) point.value = 10 - point.terms[1];
  for (const double cost : nonnegative_fit(points)) EXPECT_GE(cost, 0);
  EXPECT_EQ(nonnegative_fit({{{1, 1}, 5}}), (std::vector<double>{5, 0}));
}

// All-reduces of a network that is known, over several sizes.
std::vector<SumSample> made(const LinkNetwork& network,
                            const std::vector<std::pair<int, int>>& sizes) {
  std::vector<SumSample> samples;
  for (const auto& [replicas, nodes] : sizes) {
    for (const double bytes : {1e3, 1e5, 1e7}) {
      samples.push_back({bytes, 1, replicas, nodes, network.seconds(bytes, replicas)});
    }
  }
  return samples;
}

TEST(LinkFit, FindsLatencyAndBandwidthOfOneLevel) {
  const LinkNetwork truth{SumForm::ring, 0, {{"node", 0, 5e-5, 1.2e7, 1}}};
  const auto links = fit_links(made(truth, {{2, 2}}), 1);
  ASSERT_TRUE(links);
  EXPECT_NEAR(links->network.levels[0].latency_seconds, 5e-5, 1e-8);
  EXPECT_NEAR(links->network.levels[0].bytes_per_second, 1.2e7, 1e3);
  EXPECT_FALSE(links->form_is_known);
  EXPECT_NEAR(links->network.seconds(1e6, 64), truth.seconds(1e6, 64), 1e-6);
}

TEST(LinkFit, SeveralSizesDetermineTheForm) {
  for (const SumForm form : kSumForms) {
    const LinkNetwork truth{form, 1e-5, {{"core", 4, 2e-6, 4e9, 1}, {"node", 0, 5e-5, 1e8, 1}}};
    const auto links = fit_links(made(truth, {{2, 1}, {4, 1}, {8, 2}, {16, 4}}), 4);
    ASSERT_TRUE(links);
    EXPECT_EQ(links->network.form, form) << to_string(form);
    EXPECT_TRUE(links->form_is_known) << to_string(form);
    EXPECT_NEAR(links->network.seconds(2e6, 64) / truth.seconds(2e6, 64), 1, 0.02)
        << to_string(form);
  }
}

// A bucket of tokens lets small messages pass at once.
TEST(LinkFit, QuickSmallMessagesDoNotBendTheBandwidth) {
  const LinkNetwork truth{SumForm::ring, 0, {{"node", 0, 1e-4, 1.2e7, 1}}};
  std::vector<SumSample> samples = made(truth, {{2, 2}, {4, 4}});
  for (SumSample& sample : samples) {
    if (sample.bytes < 1e4) sample.seconds = 2e-5;
  }
  EXPECT_NEAR(fit_links(samples, 1)->network.seconds(1e6, 8) / truth.seconds(1e6, 8), 1, 0.03);
}

TEST(LinkFit, NothingOfTwoReplicasIsNothing) {
  EXPECT_FALSE(fit_links({}, 1));
  EXPECT_FALSE(fit_links({{1e6, 1, 1, 1, 0.1}}, 1));
}

// A rank that takes 10 or 20 seconds, as a coin falls.
std::vector<StepSeconds> coin(std::uint32_t number) {
  RandomSequence random(1, Stream::order, number);
  std::vector<StepSeconds> steps;
  for (int i = 0; i < 400; ++i)
    steps.push_back({0, random.below(2) == 0 ? 10.0 : 20.0, 0, 0, 0, 0});
  return steps;
}

double mean_of_slowest(const std::vector<std::vector<StepSeconds>>& measured, std::size_t ranks) {
  StepReplay replay(ranks, {{1, 1, 0}}, true);
  RankDraws draws(measured, 7);
  std::vector<StepSeconds> drawn(ranks);
  double sum = 0;
  for (int i = 0; i < 2000; ++i) {
    draws.next(drawn);
    sum += replay.step(drawn) / 2000;
  }
  return sum;
}

TEST(RankDraws, TheSlowestOfRanksThatAreLateEachForItself) {
  const std::vector<std::vector<StepSeconds>> one = {coin(1)};
  EXPECT_NEAR(mean_of_slowest(one, 1), 15, 0.5);
  EXPECT_NEAR(mean_of_slowest(one, 2), 10 * 0.25 + 20 * 0.75, 0.5);  // 1 - 1/2^p are slow
  EXPECT_NEAR(mean_of_slowest(one, 4), 10 / 16.0 + 20 * 15 / 16.0, 0.5);
  EXPECT_NEAR(mean_of_slowest(one, 64), 20, 0.01);
  EXPECT_NEAR(mean_of_slowest({coin(1), coin(2)}, 64), 20, 1);
}

TEST(RankDraws, RanksThatAreLateTogetherAreNoSlowerThanOne) {
  const std::vector<std::vector<StepSeconds>> together = {coin(1), coin(1)};
  EXPECT_NEAR(common_share(together), 1, 1e-9);
  EXPECT_LT(common_share({coin(1), coin(2)}), 0.15);
  EXPECT_NEAR(mean_of_slowest(together, 64), 15, 0.5);
}

TEST(RankDraws, ALastingDifferenceStays) {
  std::vector<StepSeconds> slow = coin(1);
  for (StepSeconds& step : slow) step.forward += 100;
  EXPECT_NEAR(mean_of_slowest({coin(1), slow}, 2), 115, 1);
}

TEST(BucketCuts, FillUpToTheCapAndKeepASmallLast) {
  using Cuts = std::vector<std::size_t>;
  EXPECT_EQ(bucket_cuts({10}, 5, 1), Cuts{0});
  EXPECT_EQ(bucket_cuts({10, 20, 30, 40}, 20, 10), (Cuts{1, 2, 3}));
  EXPECT_EQ(bucket_cuts({10, 20, 30, 40}, 100, 100), Cuts{3});
  EXPECT_EQ(bucket_cuts({10, 20, 30, 40}, 100, 10), (Cuts{2, 3}));
}

}  // namespace
}  // namespace paceline
