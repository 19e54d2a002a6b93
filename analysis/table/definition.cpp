#include "analysis/table/definition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/findings/legend.h"
#include "analysis/study/cost.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// A margin that is not zero never reads as zero, and what is only rounding does.
std::string margin(double half_width, double value, int digits) {
  if (half_width <= kRounding * std::abs(value)) return "0";
  while (half_width > 0 && digits < 9 && half_width < 0.5 * std::pow(10.0, -digits)) ++digits;
  return decimal(half_width, digits);
}

}  // namespace

int count_digits(double value, bool exact) {
  if (exact && value == std::floor(value)) return 0;
  const double magnitude = std::abs(value);
  return magnitude >= 1000 ? 0 : magnitude >= 100 ? 1 : magnitude >= 10 ? 2 : 3;
}

Cell number(std::optional<double> value, int digits) {
  if (!value) return {};
  std::string text = decimal(*value, digits);
  if (text.find_first_of("123456789") == std::string::npos && text.starts_with('-'))
    text.erase(0, 1);
  return {text, value, std::nullopt};
}

Cell whole(std::optional<int> value) {
  if (!value) return {};
  return {std::to_string(*value), *value, std::nullopt};
}

Cell percent(std::optional<double> share, int digits) {
  if (!share) return {};
  return {decimal(*share * 100, digits) + " %", share, std::nullopt};
}

Cell percent_estimate(const std::optional<Estimate>& share, int digits) {
  if (!share) return {};
  Estimate in_percent = *share;
  in_percent.value *= 100;
  if (share->interval) {
    in_percent.interval = Interval{share->interval->low * 100, share->interval->high * 100};
  }
  Cell cell = estimate_cell(in_percent, digits);
  cell.text += " %";
  cell.value = share->value;
  cell.interval = share->interval;
  return cell;
}

Cell estimate_cell(const Estimate& estimate, int digits) {
  Cell cell = number(estimate.value, digits);
  if (!estimate.interval) return cell;
  const auto [low, high] = *estimate.interval;
  const double half_width = std::max(high - estimate.value, estimate.value - low);
  cell.interval = estimate.interval;
  cell.text += half_width > kWideMargin * std::abs(estimate.value)
                   ? fmt::format(" [{}, {}]", decimal(low, digits), decimal(high, digits))
                   : " ±" + margin(half_width, estimate.value, digits);
  return cell;
}

Cell measured_cell(const std::optional<Estimate>& value) {
  if (!value) return {};
  return estimate_cell(*value, count_digits(value->value, value->count == 1));
}

void mark_fewer_runs(Cell& cell, const Row& row, const RunFact& of) {
  if (!of || cell.text.empty() || !row.gap.empty()) return;
  const std::size_t known = runs_with(row, of);
  if (known < row.runs.size()) cell.text += " (" + counted(known, "run") + ")";
}

Column text_column(const char* key, const char* heading) {
  return {key, heading, true};
}
Column whole_column(const char* key, const char* heading) {
  return {key, heading, false, true};
}
Column real_column(const char* key, const char* heading) {
  return {key, heading};
}

Column interval_column(const char* key, const char* heading) {
  return {key, heading, false, false, true};
}

Column of_layout(Column column) {
  column.is_layout = true;
  return column;
}

Column detail(int rank, Column column) {
  column.detail = rank;
  return column;
}

Column narrow(Column column) {
  column.margin_is_long = true;
  return column;
}

Column in(const char* group, Column column) {
  column.group = group;
  return column;
}

Column extra(const char* group, Column column, std::string note) {
  column.is_extra = true;
  column.note = std::move(note);
  return in(group, std::move(column));
}

}  // namespace paceline
