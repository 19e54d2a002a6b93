// The section of a study in a report, and that of benchmarked all-reduces.
#pragma once

#include <string>
#include <vector>

#include "analysis/document/columns.h"
#include "analysis/document/document.h"
#include "analysis/study/scaling_series.h"

namespace paceline {

struct ProvenanceFact;  // findings/findings.h

using RowColumns = ColumnsOf<RowFacts>;

// The groups that --columns adds.
void add_cost(RowColumns& all, const Study& study);
void add_energy(RowColumns& all, const Study& study);

Cell rate_cell(const Unit& unit, std::optional<Estimate> rate);

// Cells of `make`, which name the number of runs if not all runs of a row have `fact`:
// "0.701 (1 run)".
std::function<Cell(const RowFacts&)> of_runs(const RunFact& fact,
                                             std::function<Cell(const RowFacts&)> make);

// paired, welch, mixed or none.
std::string interval_kinds(const Comparison& comparison);
// {NAME: [{"value", "runs"}]}
Json provenance_json(const std::vector<ProvenanceFact>& facts);

// Applies --columns. A choice is a list of keys ("gpu_hours") and groups ("cost"). With "+" in
// front they are added to the columns that are shown without a choice, with "-" they are left out;
// others replace those columns. Point, verdict, layout, axes and the number of runs always stay.
// Every format has the chosen columns only. Throws usage, suggesting a name, if the table has no
// such column.
void choose_columns(Section& section, const std::vector<std::string>& choice);

// The rows of a study in the order of the table: by system and size, and of each size first those
// that others are compared with. Includes gaps.
std::vector<RowFacts> reading_order(const Study& study, const Comparison& comparison,
                                    const std::vector<RowFacts>& facts);

// Of a table of many of these rows, a screen has the fastest of each size.
void fold_rows(const std::vector<RowFacts>& rows, bool rates, Table& table);

// Columns without data are hidden, except for essential ones; programs get all columns. Facts in
// JSON: {"workload", "precision", "scaling", "work": {"epochs": 2}, "base", "reference_program" (of
// several programs the first; else empty), "interval" (paired, welch, mixed, none), "controls":
// [{"point", "runs", "ratio", "ratio_low", "ratio_high", "differs"}], "broken_rules": [{"rule",
// "what", "fix"}], "provenance": {NAME: [{"value", "runs"}]}, "left_out": [all records and runs
// that are in no row]}.
Section make_section(const Study& study, const Comparison& comparison,
                     const std::vector<RowFacts>& facts);

// Records of collectives, those that are comparable side by side, with the columns of nccl-tests:
// algbw is bytes / time; busbw = algbw * 2 (n-1)/n is what each rank must at least send and
// receive. So busbw compares with a link's rate for any n (github.com/NVIDIA/nccl-tests,
// PERFORMANCE.md). JSON has the records.
Document collectives_document(const std::vector<Record>& records);

}  // namespace paceline
