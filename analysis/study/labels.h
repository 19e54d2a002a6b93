// The sentences of the legend that say what the records are: how many were ignored and why, what
// is synthetic, published, oversubscribed, throttled, traced or from unlike machines.
#pragma once

#include <string>
#include <vector>

#include "analysis/study/study.h"

namespace paceline {

// Records that could not be read and runs that did not complete, a line each.
std::vector<std::string> left_out(const StoreContent& content, const std::vector<Run>& unfinished);

// The same for people: runs of one reason are a line, and after a few lines there is only a number.
std::vector<std::string> left_out_notes(const StoreContent& content,
                                        const std::vector<Run>& unfinished);

// Those of which no other run of their point completed.
std::vector<Run> never_completed(const std::vector<Run>& unfinished,
                                 const std::vector<Run>& completed);

// Of the rows of one table, what comes before them, and what comes behind them.
std::vector<std::string> row_warnings(const Study& study);
std::vector<std::string> row_notes(const Study& study);

// "the machine was quiet (...) in all runs", one of the notes; or nothing.
std::string quiet_note(const Study& study);

// "oversubscribed, synthetic": what must be known of a row before it is believed; of a gap, why
// it is one; or nothing.
std::string row_label(const Row& row);

// Of a row's runs, how many were made while others kept their CPUs busy.
std::size_t busy_runs(const Row& row);

// "mnist-cnn, fp32, fixed-epochs scaling, batch_per_replica 64 (synthetic)"
std::string study_title(const Study& study);

// The label that all rows have, for the title; or nothing.
std::string common_label(const Study& study);

}  // namespace paceline
