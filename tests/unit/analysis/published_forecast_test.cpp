// The prediction by laws, held against published series: the numbers of
// results/comparisons/predict.md, which this prints. No point that is predicted is seen.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>

#include "analysis/predict/forecast.h"
#include "results/published.h"

namespace paceline {
namespace {

enum class By { rate, time };

struct PublishedSeries {
  std::string folder, match;  // a part of its name; empty: all
  double told_up_to;
  By by = By::rate;
};

// Names of series, with their costs by size.
std::map<std::string, std::vector<SizedCost>> series_in(const std::string& folder, By by) {
  const auto path = std::filesystem::path(PACELINE_SOURCE_DIR) / "results/reference" / folder;
  std::map<std::string, std::vector<SizedCost>> all;
  for (const Record& record : read_published(path)) {
    const std::string name =
        fmt::format("{}, {}, {}", record->provenance.stack, record->provenance.hardware,
                    record->parameters.text("precision").value_or(""));
    const double p = record->task_layout().gpus;
    all[name].push_back({p, by == By::time ? p * *record->timing.fit_seconds
                                           : p / *record->throughput.samples_per_second});
  }
  for (auto& [name, points] : all) std::ranges::sort(points, {}, &SizedCost::replicas);
  return all;
}

struct Errors {
  double sum = 0, worst = 0;
  int points = 0, covered = 0;

  // The first `told` points predict `size`.
  double add(const std::vector<SizedCost>& points_of, std::size_t told, const SizedCost& size,
             Scaling scaling) {
    const Forecast forecast({points_of.begin(), points_of.begin() + static_cast<int>(told)},
                            scaling);
    const double error = 100 * (forecast.at(size.replicas) / size.cost - 1);
    const Interval interval = forecast.interval(size.replicas);
    sum += std::abs(error);
    worst = std::max(worst, std::abs(error));
    covered += interval.low <= size.cost && size.cost <= interval.high;
    ++points;
    return error;
  }
  double mean() const { return sum / points; }
  double coverage() const { return static_cast<double>(covered) / points; }
  std::string text(const std::string& what) const {
    return fmt::format("{}: {} points, mean {:.1f} %, worst {:.1f} %, {:.0f} % in the interval\n",
                       what, points, mean(), worst, 100 * coverage());
  }
};

TEST(PublishedForecast, SixteenHeldOutPointsOfNineSeries) {
  const std::vector<PublishedSeries> nine = {
      {"kempner-resnet50", "", 8, By::time},
      {"ncsa-resnet50", "2020-02", 16},
      {"ncsa-resnet50", "2020-05", 16},
      {"larger-resnet50", "Gaudi", 32},
      {"larger-resnet50", "A100 PCIe", 16},
      {"imagenet-resnet50", "DLPerf OneFlow, V100 16GB 4x8, fp32", 16},
      {"larger-resnet50", "NGC MXNet", 16},
      {"larger-resnet50", "NGC PyTorch", 16},
      {"jsc-clip-vit-l14", "", 32}};
  Errors errors;
  for (const PublishedSeries& asked : nine) {
    for (const auto& [name, points] : series_in(asked.folder, asked.by)) {
      if (name.find(asked.match) == std::string::npos) continue;
      const auto told = static_cast<std::size_t>(std::ranges::count_if(
          points, [&](const SizedCost& each) { return each.replicas <= asked.told_up_to; }));
      for (std::size_t i = told; i < points.size(); ++i) {
        std::cout << fmt::format("{}: {:.0f} GPUs {:+.1f} %\n", name, points[i].replicas,
                                 errors.add(points, told, points[i], Scaling::weak));
      }
    }
  }
  std::cout << errors.text("nine series");
  EXPECT_EQ(errors.points, 16);
  EXPECT_NEAR(errors.mean(), 5.4, 0.1);
  EXPECT_NEAR(errors.worst, 15.8, 0.1);
  EXPECT_GE(errors.coverage(), 0.85);
}

// Every larger size, up to eight times, from every two or more smaller ones.
Errors errors_of_all(const std::string& folder, Scaling scaling, std::size_t fewest) {
  Errors errors;
  for (const auto& [name, points] : series_in(folder, By::rate)) {
    for (std::size_t told = fewest; told < points.size(); ++told) {
      for (std::size_t i = told; i < points.size(); ++i) {
        if (points[i].replicas <= 8 * points[told - 1].replicas) {
          errors.add(points, told, points[i], scaling);
        }
      }
    }
  }
  return errors;
}

TEST(PublishedForecast, SeriesOfCscToldTwoSizesOrMore) {
  const Errors two = errors_of_all("csc-resnet50", Scaling::weak, 2);
  const Errors three = errors_of_all("csc-resnet50", Scaling::weak, 3);
  // Its script holds the global batch.
  const Errors strong_two = errors_of_all("csc-gpt-neo", Scaling::strong, 2);
  const Errors strong_three = errors_of_all("csc-gpt-neo", Scaling::strong, 3);
  std::cout << two.text("CSC ResNet-50, told 2 sizes or more")
            << three.text("CSC ResNet-50, told 3 sizes or more")
            << strong_two.text("CSC GPT-Neo, told 2 sizes or more")
            << strong_three.text("CSC GPT-Neo, told 3 sizes or more");
  EXPECT_NEAR(two.mean(), 5.2, 0.1);
  EXPECT_NEAR(three.mean(), 2.4, 0.1);
  EXPECT_NEAR(strong_two.mean(), 10.0, 0.1);
  EXPECT_NEAR(strong_three.mean(), 5.2, 0.1);
  for (const Errors* errors : {&two, &three, &strong_three}) EXPECT_GE(errors->coverage(), 0.85);
}

}  // namespace
}  // namespace paceline
