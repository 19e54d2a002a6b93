// How often something happens, held against how often it may.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace paceline::laboratory {

// The whole laboratory runs with PACELINE_LABORATORY=full, else a part that takes seconds.
int studies(int full);

struct Rate {
  int times = 0, of = 0;

  void add(bool happened) {
    times += happened ? 1 : 0;
    ++of;
  }
  double share() const { return of == 0 ? 0 : static_cast<double>(times) / of; }
  std::string text() const;  // "12 of 400, 3.0 %"
};

// Within three standard deviations of a binomial distribution, so that one in a thousand true
// rates fails, of fixed seeds none. Prints `what` with the rate.
::testing::AssertionResult at_most(const Rate& rate, double nominal, const std::string& what);
::testing::AssertionResult at_least(const Rate& rate, double nominal, const std::string& what);

}  // namespace paceline::laboratory
