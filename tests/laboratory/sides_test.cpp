// Two folders side by side where nothing changed, or something did.
#include <gtest/gtest.h>

#include <regex>

#include "analysis/gate/report_sides.h"
#include "tests/laboratory/rate.h"
#include "tests/laboratory/records.h"

namespace paceline::laboratory {
namespace {

// Session effects of whole sessions, and of each point in them.
StoreContent folder(double sessions, int count, double slower, std::uint32_t seed) {
  const Law law = step_law("communication grows with replicas").law(Scaling::fixed_epochs);
  Noise noise{.run = 0.01, .session = sessions};
  noise.event = [slower](const Place&) { return slower; };
  return make_content(law, {.sessions = count, .first_session = static_cast<int>(seed % 10000)},
                      noise, seed);
}

ReportSide side(const char* name, StoreContent content) {
  ReportSide made{name, std::move(content), {}};
  made.studies = make_studies(made.content);
  return made;
}

// What the comparison says of points that differ; empty: it claims nothing.
std::string claim(const StoreContent& monday, const StoreContent& tuesday) {
  const auto section = compare_sides(side("monday", monday), side("tuesday", tuesday));
  if (!section) return "";
  static const std::regex kNone("slower beyond the noise in 0, faster in 0");
  static const std::regex kOpen(
      "not known|cannot be told|do(es)? not tell|undecided|more than sessions");
  for (const Statement& each : section->findings) {
    const std::string& finding = each.text;
    const bool claims = finding.find("slower") != std::string::npos &&
                        !std::regex_search(finding, kNone) && !std::regex_search(finding, kOpen);
    if (claims) return finding;
  }
  return "";
}

TEST(LaboratorySides, TwoFoldersOfWhichNothingChangedDoNotDiffer) {
  std::uint32_t seed = 1;
  for (const double sessions : {0.0, 0.005, 0.01, 0.02}) {
    for (const int count : {1, 3, 5}) {
      Rate claims;
      for (int i = 0; i < studies(200); ++i, seed += 2) {
        claims.add(!claim(folder(sessions, count, 1, 2 * seed),
                          folder(sessions, count, 1, 2 * seed + 5001))
                        .empty());
      }
      EXPECT_TRUE(at_most(claims, 0.05,
                          "a point differs beyond the noise, sessions vary by " +
                              std::to_string(100 * sessions) + " %, " + std::to_string(count) +
                              " each"));
    }
  }
}

TEST(LaboratorySides, FoldersOfSeveralSessionsShowALargeChange) {
  Rate found;
  for (int i = 0; i < studies(100); ++i) {
    const auto seed = static_cast<std::uint32_t>(20001 + 2 * i);
    found.add(claim(folder(0.005, 5, 1, seed), folder(0.005, 5, 1.1, seed + 5001)).find("slower") !=
              std::string::npos);
  }
  EXPECT_TRUE(at_least(found, 0.95, "10 % slower over five sessions each is found"));
}

}  // namespace
}  // namespace paceline::laboratory
