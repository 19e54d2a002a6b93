// The prediction by laws, held against published series and against exact laws: the numbers of
// results/comparisons/predict.md and docs/error-rates.md, which this prints. No point that is
// predicted is seen.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <random>
#include <stdexcept>

#include "analysis/predict/laws.h"
#include "analysis/predict/prediction.h"
#include "engine/facts/timing.h"
#include "results/shipped.h"
#include "results/store.h"

namespace paceline {
namespace {

// Names of series, with their costs by size: seconds of a sample, times replicas.
std::map<std::string, std::vector<SizedCost>> series_in(const std::string& folder) {
  const auto path = std::filesystem::path(PACELINE_SOURCE_DIR) / "results/reference" / folder;
  std::map<std::string, std::vector<SizedCost>> all;
  for (const Record& record : read_published(path)) {
    const std::string name =
        fmt::format("{}, {}, {}", record->provenance.stack, record->provenance.hardware,
                    record->parameters.text("precision").value_or(""));
    const double p = record->task_layout().gpus;
    all[name].push_back({p, p / *record->throughput->samples_per_second});
  }
  for (auto& [name, points] : all) std::ranges::sort(points, {}, &SizedCost::replicas);
  return all;
}

struct Errors {
  double sum = 0, worst = 0;
  int points = 0, covered = 0;

  void add(double error, bool is_covered) {
    sum += std::abs(error);
    worst = std::max(worst, std::abs(error));
    covered += is_covered;
    ++points;
  }
  void add(const Forecast& forecast, const SizedCost& size) {
    const Interval interval = forecast.interval(size.replicas);
    add(100 * (forecast.at(size.replicas) / size.cost - 1),
        interval.low <= size.cost && size.cost <= interval.high);
  }
  double mean() const { return sum / points; }
  double coverage() const { return static_cast<double>(covered) / points; }
  std::string text(const std::string& what) const {
    return fmt::format("{}: {} points, mean {:.1f} %, worst {:.1f} %, {:.0f} % in the interval\n",
                       what, points, mean(), worst, 100 * coverage());
  }
};

// A series that `paceline predict FOLDER --up-to told_up_to` is asked for.
struct PublishedSeries {
  std::string folder, title;  // a part of the prediction's title
  int told_up_to;
};

// What the command predicts of it.
Prediction make_prediction(const PublishedSeries& series, const PredictOptions& options) {
  const auto path =
      std::filesystem::path(PACELINE_SOURCE_DIR) / "results/reference" / series.folder;
  for (Prediction& each : predict(load_stores({path}), options)) {
    if (each.title.find(series.title) != std::string::npos) return std::move(each);
  }
  throw std::runtime_error("no series " + series.title);
}

// Of worker-time, as costs are: predicted over published, minus 1.
double catch_error(const Prediction& prediction, const SizeValue& size,
                   const SizeValue& published) {
  const double ratio = size.value.value / published.value.value;
  return (prediction.rates ? 1 / ratio : ratio) - 1;
}

TEST(PublishedForecast, TheCommandOnSixteenHeldOutPointsOfNineSeries) {
  const std::vector<PublishedSeries> nine = {
      {"kempner-resnet50", "nccl", 8},
      {"ncsa-resnet50", "amp-O2, fixed-epochs scaling (published)", 16},
      {"ncsa-resnet50", "batch_per_replica 256", 16},
      {"larger-resnet50", "bf16", 32},
      {"larger-resnet50", "fp16", 16},
      {"imagenet-resnet50", "DLPerf OneFlow", 16},
      {"larger-resnet50", "NGC MXNet", 16},
      {"larger-resnet50", "NGC PyTorch", 16},
      {"jsc-clip-vit-l14", "", 32}};
  Errors errors;
  for (const PublishedSeries& asked : nine) {
    PredictOptions options;
    options.gpus = {1 << 20};
    const Prediction published = make_prediction(asked, options);
    options.gpus.clear();
    for (const SizeValue& size : published.sizes) {
      if (size.gpus > asked.told_up_to && !size.is_predicted) options.gpus.push_back(size.gpus);
    }
    options.up_to = asked.told_up_to;
    const Prediction reported = make_prediction(asked, options);
    for (const SizeValue& size : reported.sizes) {
      if (!size.is_predicted) continue;
      const SizeValue& truth = *std::ranges::find(published.sizes, size.gpus, &SizeValue::gpus);
      const double error = 100 * catch_error(reported, size, truth);
      const Interval& interval = *size.value.interval;
      errors.add(error, interval.low <= truth.value.value && truth.value.value <= interval.high);
      std::cout << fmt::format("{}: {} GPUs {:+.1f} %\n", reported.title, size.gpus, error);
    }
  }
  std::cout << errors.text("nine series");
  EXPECT_EQ(errors.points, 16);
  EXPECT_NEAR(errors.mean(), 5.0, 0.05);
  EXPECT_NEAR(errors.worst, 16.9, 0.05);
  EXPECT_EQ(errors.covered, 16);
}

// Every larger size, up to eight times, from every two or more smaller ones.
Errors errors_of_all(const std::string& folder, Scaling scaling, std::size_t fewest) {
  Errors errors;
  for (const auto& [name, points] : series_in(folder)) {
    for (std::size_t reported = fewest; reported < points.size(); ++reported) {
      const Forecast forecast({points.begin(), points.begin() + static_cast<int>(reported)},
                              scaling);
      for (std::size_t i = reported; i < points.size(); ++i) {
        if (points[i].replicas <= 8 * points[reported - 1].replicas) {
          errors.add(forecast, points[i]);
        }
      }
    }
  }
  return errors;
}

TEST(PublishedForecast, SeriesOfCscReportedTwoSizesOrMore) {
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

// Costs that follow one law exactly, with runs that vary by 1 % and five a size. Each overhead is
// 0.3 to 10 % of the cost of one replica, and the last is that times `scale`.
Errors errors_of_law(const Law& law, const std::vector<double>& reported, double times,
                     double scale) {
  constexpr int kTrials = 1000;
  const double noise = 0.01 / std::sqrt(5);
  std::mt19937_64 engine(31);
  std::normal_distribution<double> normal(0, noise);
  std::uniform_real_distribution<double> exponent(std::log(0.003), std::log(0.1));
  Errors errors;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> overheads;
    for (std::size_t i = 1; i < law.terms.size(); ++i) {
      overheads.push_back(std::exp(exponent(engine)));
    }
    if (!overheads.empty()) overheads.back() *= scale;
    const auto cost = [&](double p) {
      double sum = 1;
      for (std::size_t i = 1; i < law.terms.size(); ++i) sum += overheads[i - 1] * law.terms[i](p);
      return sum;
    };
    std::vector<SizedCost> points;
    for (const double p : reported) points.push_back({p, cost(p) * std::exp(normal(engine))});
    const double size = times * reported.back();
    errors.add(Forecast(points, Scaling::weak, noise), {size, cost(size)});
  }
  return errors;
}

// The least coverage of a law over the sizes told and predicted.
double least_coverage(const std::string& name, const Law& law, double scale = 1) {
  double least = 1;
  for (const std::vector<double>& reported : {std::vector<double>{1, 2, 4}, {1, 2, 4, 8}}) {
    for (const double times : {2.0, 4.0, 8.0}) {
      const Errors errors = errors_of_law(law, reported, times, scale);
      std::cout << errors.text(
          fmt::format("{}, told 1 to {:g}, {:g} times", name, reported.back(), times));
      least = std::min(least, errors.coverage());
    }
  }
  return least;
}

TEST(PublishedForecast, SomeExactLawsAreHeldLessOften) {
  const std::vector<Law> laws = laws_for(Scaling::weak, 4);
  for (const Law& law : laws) {
    if (std::string_view(law.name) == "USL") {
      EXPECT_LT(least_coverage("USL", law), 0.8);
      EXPECT_LT(least_coverage("USL, coherence a thirtieth", law, 1.0 / 30), 0.8);
    } else {
      EXPECT_GE(least_coverage(law.name, law), 0.9) << law.name;
    }
  }
  const Law step = {"step", {[](double) { return 1.0; }, [](double p) { return p > 8 ? 1.0 : 0; }}};
  EXPECT_LT(least_coverage("a step of 3 to 100 % beyond 8", step, 10), 0.8);
}

}  // namespace
}  // namespace paceline
