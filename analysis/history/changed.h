// What records state differently before and after a shift. It may have come with the shift by
// chance: nothing here speaks of causes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/history/series.h"

namespace paceline {

struct ChangedFact {
  std::string name;           // "library", "modules", "host n17"
  std::string before, after;  // the values, as far as they differ
  bool is_software = false;
  // How well the value tells before from after: the mean of the shares of sessions on both sides
  // that have a value which is more frequent on their side. 1: always, 0.5: not at all.
  double separation = 0;
  std::size_t elsewhere = 0;  // changes between sessions of one level
  bool at_shift = false;      // the sessions on both sides of the shift differ
};

struct Changes {
  std::vector<ChangedFact> facts;  // the best separating first
  bool knows_software = false;     // some session on each side states software
  bool knows_anything = false;
};

// Compares the sessions [begin, earliest) with [latest, end).
Changes changes_across(const HistorySeries& series, std::size_t begin, std::size_t earliest,
                       std::size_t latest, std::size_t end);

// "Software changed with it: library A -> B. ..." or what else is known.
std::vector<std::string> make_sentences(const Changes& changes);

}  // namespace paceline
