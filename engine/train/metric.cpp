#include "engine/train/metric.h"

#include <array>

namespace paceline {

namespace {

struct Row {
  std::string_view name;
  double EpochQuality::*value;
};

// In the order of the enumeration.
constexpr std::array<Row, 5> kRows = {{{"test_loss", &EpochQuality::test_loss},
                                       {"test_accuracy", &EpochQuality::test_accuracy},
                                       {"test_top5", &EpochQuality::test_top5},
                                       {"train_loss", &EpochQuality::train_loss},
                                       {"train_accuracy", &EpochQuality::train_accuracy}}};

const Row& row_at(Metric metric) {
  return kRows.at(static_cast<std::size_t>(metric));
}

}  // namespace

std::string_view to_string(Metric metric) {
  return row_at(metric).name;
}

std::optional<Metric> find_metric(std::string_view name) {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<Metric>(i);
  }
  return std::nullopt;
}

double metric_at(const EpochQuality& quality, Metric metric) {
  return quality.*row_at(metric).value;
}

bool is_loss(Metric metric) {
  return to_string(metric).ends_with("_loss");
}

bool is_of_test(Metric metric) {
  return to_string(metric).starts_with("test_");
}

}  // namespace paceline
