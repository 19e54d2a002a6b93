// How the columns and cells of a table are made.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/document/document.h"

namespace paceline {

// A wider side of an interval, over the value, is no margin: the table gives both ends.
inline constexpr double kWideMargin = 0.25;

// Four significant digits, but no decimals that were never measured.
int count_digits(double value, bool exact);
Cell number(std::optional<double> value, int digits);
Cell whole(std::optional<std::int64_t> value);
Cell percent(std::optional<double> share, int digits = 1);
// "1.69 ±0.03" with the larger side of the interval, or "1.7 [0.9, 3.1]" of a wide one. No more
// digits than the interval supports, or `exact` if that is given instead of its margin, but what is
// above zero in all of it never reads as zero.
Cell estimate_cell(const Estimate& estimate, int digits, double exact = 0);
// In percent for people, as a share for programs.
Cell percent_estimate(const std::optional<Estimate>& share, int digits);
// With as many digits as were measured. Empty without a value.
Cell measured_cell(const std::optional<Estimate>& value);

// The columns of a table, each with a function from a row to its cell. What follows a column is
// about that one: columns.whole("runs", "runs", &Check::current_runs).layout().
template <typename Row>
class ColumnsOf {
 public:
  template <typename Result>
  using Of = std::function<Result(const Row&)>;

  ColumnsOf& add(Column column, Of<Cell> cell) {
    columns_.emplace_back(std::move(column), std::move(cell));
    return *this;
  }
  ColumnsOf& real(std::string key, std::string heading, Of<Cell> cell) {
    return add({.key = std::move(key), .heading = std::move(heading)}, std::move(cell));
  }
  ColumnsOf& interval(std::string key, std::string heading, Of<Cell> cell) {
    real(std::move(key), std::move(heading), std::move(cell)).last().has_interval = true;
    return *this;
  }
  ColumnsOf& text(std::string key, std::string heading, Of<std::string> text) {
    real(std::move(key), std::move(heading),
         [text = std::move(text)](const Row& row) { return Cell{text(row)}; });
    last().is_text = true;
    return *this;
  }
  ColumnsOf& whole(std::string key, std::string heading, Of<std::optional<std::int64_t>> value) {
    real(std::move(key), std::move(heading),
         [value = std::move(value)](const Row& row) { return paceline::whole(value(row)); });
    last().is_whole = true;
    return *this;
  }
  // For programs.
  ColumnsOf& flag(std::string key, Of<bool> is) {
    real(std::move(key), "", [is = std::move(is)](const Row& row) {
      return Cell{"", is(row) ? 1.0 : 0.0};
    });
    last().is_flag = true;
    return programs();
  }

  // Narrow terminals omit it first: rows are named by what differs.
  ColumnsOf& layout() { return set(&Column::is_layout, true).detail(10); }
  ColumnsOf& detail(int rank) { return set(&Column::detail, rank); }
  ColumnsOf& essential(bool is = true) { return set(&Column::is_essential, is); }
  ColumnsOf& programs() { return set(&Column::shown, false); }
  ColumnsOf& in(const char* group) { return set(&Column::group, group); }
  ColumnsOf& extra(const char* group, std::string note) {
    return in(group).set(&Column::is_extra, true).set(&Column::note, std::move(note));
  }
  template <typename Member, typename Value>
  ColumnsOf& set(Member member, Value value) {
    last().*member = std::move(value);
    return *this;
  }

  // People see the columns that have data or are essential, and no extra ones.
  Table table(const std::vector<Row>& rows, const std::string& key = "rows") const {
    Table table{.key = key};
    table.rows.resize(rows.size());
    for (const auto& [definition, cell] : columns_) {
      Column& column = table.columns.emplace_back(definition);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        table.rows[i].push_back(cell(rows[i]));
        column.has_data = column.has_data || !table.rows[i].back().text.empty();
      }
      column.shown = column.shown && !column.is_extra && (column.has_data || column.is_essential);
    }
    return table;
  }

 private:
  Column& last() { return columns_.back().first; }

  std::vector<std::pair<Column, Of<Cell>>> columns_;
};

}  // namespace paceline
