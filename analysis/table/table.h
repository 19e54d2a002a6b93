// A table as a plain value, the common input of the text, Markdown, CSV and JSON renderers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/findings/findings.h"
#include "analysis/study/scaling_series.h"
#include "analysis/study/switches.h"

namespace paceline {

struct Cell {
  std::string text;             // for people; empty: a gap
  std::optional<double> value;  // for programs; empty for texts and gaps
  std::optional<Interval> interval;
};

struct Column {
  std::string key;      // stable name in CSV and JSON; includes the unit; shares are from 0 to 1
  std::string heading;  // for people; may have two lines
  bool is_text = false;
  bool is_whole = false;
  bool has_interval = false;  // CSV and JSON have KEY_low and KEY_high too
  bool shown = true;          // false: text and Markdown omit it
  bool has_data = false;
  bool is_layout = false;  // describes where a row ran; may be equal in all rows
  int detail = 0;  // narrow terminals omit columns with the largest value first; 0: never omitted
  bool margin_is_long = false;   // the text format omits its margin
  std::string group = "layout";  // by which --columns names several
  bool is_extra = false;         // only shown if it is chosen; programs get it
  std::string note = {};         // of an extra column, for the legend
  std::string absence = {};      // the same if it has no data: why not
};

struct Table {
  std::string title;
  bool is_comparison = false;  // compares studies; the rules of publishing do not apply
  Work work;
  std::string workload, precision, scaling, base, interval;  // interval: paired, welch, mixed, none
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::vector<bool> is_gap;            // one per row
  std::vector<std::string> row_names;  // one per row: what distinguishes it
  std::vector<std::string> commands;   // one per row: command for one more run; empty: unknown
  std::vector<std::vector<std::string>> records;  // one per row: the files of its runs
  std::string headline;  // the largest mean speed-up of real work; may be empty
  std::string load;      // what others took of the machine; one of the notes; may be empty
  std::vector<std::string> warnings;  // problems with these numbers, shown first
  std::vector<std::string> findings;  // conclusions from the numbers
  std::vector<BrokenRule> broken;     // violated rules of publishing
  std::vector<ProvenanceFact> provenance;
  std::vector<ControlCheck> controls;
  std::vector<std::string> notes;     // the legend
  std::vector<std::string> left_out;  // see Study
};

// Whether a visible layout column has the same value in all of two or more rows. HTML and LaTeX
// show such values once, below the table.
bool is_alike(const Table& table, std::size_t column);
// "In all rows: nodes 1, runs 5". May be empty.
std::string alike_text(const Table& table);

// "1.69 ±0.03" with the larger side of the interval, or "1.7 [0.9, 3.1]" of a wide one.
Cell estimate_cell(const Estimate& estimate, int digits);
// With as many digits as were measured. Empty without a value.
Cell measured_cell(const std::optional<Estimate>& value);

// Gaps are sorted among the rows, with 0 runs and their reason as label. Columns without data are
// hidden, except for essential ones; programs get all columns.
Table make_table(const Study& study, const Comparison& comparison,
                 const std::vector<RowFacts>& facts);

}  // namespace paceline
