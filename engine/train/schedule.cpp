#include "engine/train/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

Decay parse_decay(const std::string& name) {
  if (name == "constant") return Decay::constant;
  if (name == "step") return Decay::step;
  if (name == "cosine") return Decay::cosine;
  if (name == "plateau") return Decay::plateau;
  throw usage_error("unknown schedule \"" + name + "\"", "",
                    "known: constant, step, cosine, plateau");
}

std::vector<double> parse_decay_epochs(std::string_view text) {
  std::vector<double> epochs;
  for (const std::string& part : split(text, ',')) {
    const auto epoch = to_real(part);
    const double least = epochs.empty() ? 0 : epochs.back();
    if (!epoch || !std::isfinite(*epoch) || *epoch <= least) {
      throw usage_error(fmt::format("decay_epochs cannot be \"{}\"", text), "",
                        "give growing numbers above zero, as 30,60,80");
    }
    epochs.push_back(*epoch);
  }
  return epochs;
}

Schedule::Schedule(ScheduleSpec spec, double first, double full, double end, double epochs)
    : spec_(std::move(spec)),
      first_(first),
      full_(full),
      end_(end),
      epochs_(epochs),
      fallen_(full) {}

double Schedule::rate(double epochs) const {
  if (epochs >= spec_.warmup_epochs) return decayed(epochs);
  return first_ + epochs / spec_.warmup_epochs * (full_ - first_);
}

double Schedule::decayed(double epochs) const {
  const double room = epochs_ - spec_.warmup_epochs;
  const double t = room > 0 ? std::min(1.0, (epochs - spec_.warmup_epochs) / room) : 1;
  switch (spec_.decay) {
    case Decay::constant:
      return full_;
    case Decay::step: {
      const auto past =
          std::ranges::count_if(spec_.decay_epochs, [&](double epoch) { return epoch <= epochs; });
      return full_ * std::pow(spec_.decay_factor, static_cast<double>(past));
    }
    case Decay::cosine:
      return end_ + (full_ - end_) * (1 + std::cos(std::numbers::pi * t)) / 2;
    case Decay::plateau:
      return fallen_;
  }
  return full_;
}

bool Schedule::end_epoch(const EpochFacts& quality) {
  const auto value = metric_at(quality, spec_.metric);
  if (spec_.decay != Decay::plateau || !value) return false;
  if (resting_ > 0) {
    --resting_;
    waited_ = 0;
  }
  const bool better = !best_ || (is_loss(spec_.metric) ? *value < *best_ - spec_.min_delta
                                                       : *value > *best_ + spec_.min_delta);
  if (better) {
    best_ = value;
    waited_ = 0;
    return false;
  }
  if (resting_ > 0 || ++waited_ < spec_.patience || fallen_ <= end_) return false;
  fallen_ = std::max(fallen_ * spec_.decay_factor, end_);
  resting_ = spec_.cooldown;
  waited_ = 0;
  return true;
}

namespace {

struct Row {
  std::string_view name;
  fact::Real EpochFacts::*value;
};

// In the order of the enumeration.
constexpr std::array<Row, 4> kRows = {{{"test_loss", &EpochFacts::test_loss},
                                       {"test_accuracy", &EpochFacts::test_accuracy},
                                       {"train_loss", &EpochFacts::train_loss},
                                       {"train_accuracy", &EpochFacts::train_accuracy}}};

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

std::optional<double> metric_at(const EpochFacts& quality, Metric metric) {
  return quality.*row_at(metric).value;
}

bool is_loss(Metric metric) {
  return to_string(metric).ends_with("_loss");
}

bool is_of_test(Metric metric) {
  return to_string(metric).starts_with("test_");
}

}  // namespace paceline
