#include "tests/laboratory/rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string_view>

namespace paceline::laboratory {

namespace {

constexpr double kDeviations = 3;

::testing::AssertionResult held(bool holds, const Rate& rate, double nominal, const char* relation,
                                const std::string& what) {
  const std::string line =
      fmt::format("{}: {}; {} {:.1f} %", what, rate.text(), relation, 100 * nominal);
  std::cout << (holds ? "    " : "  ! ") << line << '\n';
  return (holds ? ::testing::AssertionSuccess() : ::testing::AssertionFailure()) << line;
}

double slack(const Rate& rate, double nominal) {
  return kDeviations * std::sqrt(nominal * (1 - nominal) * rate.of);
}

}  // namespace

int studies(int full) {
  const char* asked = std::getenv("PACELINE_LABORATORY");
  return asked && std::string_view(asked) == "full" ? full : std::max(20, full / 20);
}

std::string Rate::text() const {
  return fmt::format("{} of {}, {:.1f} %", times, of, 100 * share());
}

::testing::AssertionResult at_most(const Rate& rate, double nominal, const std::string& what) {
  const bool holds = rate.times <= nominal * rate.of + slack(rate, nominal);
  return held(holds && rate.of > 0, rate, nominal, "at most", what);
}

::testing::AssertionResult at_least(const Rate& rate, double nominal, const std::string& what) {
  const bool holds = rate.times >= nominal * rate.of - slack(rate, nominal);
  return held(holds && rate.of > 0, rate, nominal, "at least", what);
}

}  // namespace paceline::laboratory
