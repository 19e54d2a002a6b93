// The sentences of the legend that say what the records are: how many were ignored and why, what
// is synthetic, published, oversubscribed, throttled, traced or from unlike machines.
#pragma once

#include <string>
#include <vector>

#include "analysis/study.h"

namespace paceline {

// Records that could not be read, and runs that did not complete and were not run again.
std::vector<std::string> record_notes(const StoreContent& content, const std::vector<Run>& runs);

// Of the rows of one table.
std::vector<std::string> row_notes(const Study& study);

// "oversubscribed, synthetic": what must be known of a row before it is believed; of a gap, why
// it is one; or nothing.
std::string row_label(const Row& row);

// The label that all rows have, for the title; or nothing.
std::string common_label(const Study& study);

}  // namespace paceline
