// What the ranks of a large run leave in its status folder, and how long a verdict of it takes.
#pragma once

#include <string>

namespace paceline {

struct RemainsFigures {
  double judged = 0;   // seconds from the files to the line
  double peak_mb = 0;  // of the process that judged
  std::string line;
};

// Files of a run in which `victim` vanished and all others lost it. In a process of its own.
RemainsFigures judge_artifacts(int ranks, int victim);

// Seconds that the checks take which compare the cards of all ranks, on nodes of 8.
double check_cards(int ranks);

}  // namespace paceline
