// The measures of quality that decide something in a run: its end, or its learning rate.
#pragma once

#include <optional>
#include <string_view>

#include "engine/train/outcome.h"

namespace paceline {

enum class Metric { test_loss, test_accuracy, test_top5, train_loss, train_accuracy };

std::string_view to_string(Metric metric);  // "test_loss"
std::optional<Metric> find_metric(std::string_view name);

// Negative: not measured in this epoch.
double metric_at(const EpochQuality& quality, Metric metric);

bool is_loss(Metric metric);  // smaller is better; of the others, larger
bool is_of_test(Metric metric);

}  // namespace paceline
