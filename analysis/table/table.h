// A table as a value: what the text, markdown, CSV and JSON renderers show is the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/findings/provenance.h"
#include "analysis/findings/rules.h"
#include "analysis/study/control.h"
#include "analysis/study/row_facts.h"

namespace paceline {

struct Cell {
  std::string text;             // for people; empty is a gap
  std::optional<double> value;  // for programs; none for texts and gaps
  std::optional<Interval> interval;
};

struct Column {
  std::string key;      // stable: of CSV and JSON, units in the name, shares from 0 to 1
  std::string heading;  // for people; may have two lines
  bool is_text = false;
  bool is_whole = false;
  bool has_interval = false;    // CSV and JSON give KEY_low and KEY_high beside it
  bool shown = true;            // false: text and markdown leave it out, it has no data
  bool is_layout = false;       // where a row ran; the rows may be alike in it
  int detail = 0;               // a narrow terminal leaves out the largest first; 0: it keeps them
  bool margin_is_long = false;  // text, which is narrow, leaves the margin out
  // CSV has the column, or only its interval, behind those of older versions, whose places stay.
  bool is_late = false, interval_is_late = false;
};

struct Table {
  std::string title;
  bool is_comparison = false;  // of studies: rules of publishing are not checked on it
  Work work;
  std::string workload, precision, scaling, base, interval;  // interval: paired, welch, mixed, none
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::vector<bool> is_gap;            // a row each
  std::vector<std::string> row_names;  // a row each: what sets it apart
  std::vector<std::string> commands;   // a row each: makes one more run; empty: not known
  std::vector<std::vector<std::string>> records;  // a row each: the files of its runs
  std::string headline;               // the largest mean speed-up of real work; or nothing
  std::string quiet;                  // whether the machine was; one of the notes; or nothing
  std::vector<std::string> warnings;  // first of all: what flaws these numbers
  std::vector<std::string> findings;  // what the numbers say
  std::vector<BrokenRule> broken;     // rules of publishing
  std::vector<ProvenanceFact> provenance;
  std::vector<ControlCheck> controls;
  std::vector<std::string> notes;     // the legend
  std::vector<std::string> left_out;  // see Study
};

// Whether a shown column says where all rows ran or what they were of, alike in all of two or more:
// pages and papers say it once, below the table.
bool is_alike(const Table& table, std::size_t column);
// "In all rows: nodes 1, runs 5"; or nothing.
std::string alike_text(const Table& table);

// "1.69 ±0.03", or "1.7 [0.9, 3.1]" where the interval is so wide that it is lopsided.
Cell estimate_cell(const Estimate& estimate, int digits);
// With as many digits as were measured; empty where there is nothing.
Cell measured_cell(const std::optional<Estimate>& value);

// Gaps stand among the rows, with 0 runs and their reason in the label. Columns without data are
// not shown, but for the essential ones; programs get them all.
Table make_table(const Study& study, const Comparison& comparison,
                 const std::vector<RowFacts>& facts);

}  // namespace paceline
