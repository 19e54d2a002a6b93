// Settings and programs of one size, side by side: the verdict column, the column against a
// reference, and the fastest, where the truth is known. "cannot tell" counts as not found.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/findings/best.h"
#include "tests/laboratory/made.h"
#include "tests/laboratory/page.h"
#include "tests/laboratory/rate.h"
#include "tests/laboratory/records.h"

namespace paceline::laboratory {
namespace {

// Five runs each of values 1 to `count` of a parameter; the last is another one than the others.
StoreContent make_settings(int count, const Noise& noise, const Noise& of_last,
                           std::uint32_t seed) {
  std::vector<Json> records;
  for (int i = 1; i <= count; ++i) {
    const auto own =
        make_records(ideal_law(), {.sizes = {4}, .parameters = {{"bucket_mb", i}}},
                     i == count ? of_last : noise, seed * 100 + static_cast<std::uint32_t>(i));
    records.insert(records.end(), own.begin(), own.end());
  }
  return make_content(records);
}

Study make_study(const StoreContent& content) {
  return make_studies(content).at(0);
}

bool is_verdict(const std::string& text) {
  return text == "faster" || text == "slower";
}

// The verdict of a value; empty: none.
std::string find_verdict(const Study& study, int value) {
  const std::string name = "bucket_mb " + std::to_string(value);
  for (const auto& [point, cell] : column_cells(make_report_section(study), "verdict")) {
    if (point.ends_with(name)) return cell.text;
  }
  return "";
}

TEST(LaboratorySettings, OfEqualOnesNoneIsFasterOrSlower) {
  std::uint32_t seed = 1;
  for (const int count : {4, 8, 16}) {
    for (const auto& [name, noise] : std::vector<std::pair<const char*, Noise>>{
             {"1 %", {.run = 0.01}}, {"t3", {.run = 0.02, .tails = Tails::student3}}}) {
      Rate verdicts, alone;
      for (int i = 0; i < studies(200); ++i) {
        const Study study = make_study(make_settings(count, noise, noise, ++seed));
        verdicts.add(
            std::ranges::any_of(column_cells(make_report_section(study), "verdict"),
                                [](const auto& each) { return is_verdict(each.second.text); }));
        alone.add(fastest_sentence(study, find_best(study, 0.05)).find("cannot be distinguished") ==
                  std::string::npos);
      }
      const std::string what = fmt::format("{} equal settings, {}: ", count, name);
      EXPECT_TRUE(at_most(verdicts, 0.05, what + "a verdict faster or slower"));
      EXPECT_TRUE(at_most(alone, 0.05, what + "one is named the fastest"));
    }
  }
}

TEST(LaboratorySettings, OnesThatAreFivePercentApartAreNamed) {
  std::uint32_t seed = 10000;
  for (const int count : {4, 8, 16}) {
    for (const double factor : {0.95, 1.05}) {
      Noise noise{.run = 0.01}, last = with_event(0.01, [factor](const Place&) { return factor; });
      Rate named, alone;
      for (int i = 0; i < studies(200); ++i) {
        const Study study = make_study(make_settings(count, noise, last, ++seed));
        named.add(find_verdict(study, count) == (factor < 1 ? "faster" : "slower"));
        alone.add(find_best(study, 0.05).alike.empty());
      }
      const std::string what =
          fmt::format("1 of {} settings takes {} times as long: ", count, factor);
      EXPECT_TRUE(at_least(named, 0.9, what + "its verdict"));
      // Of more, all of the others would have to be slower beyond the noise.
      if (factor < 1 && count == 4) {
        EXPECT_TRUE(at_least(alone, 0.9, what + "it is named the fastest"));
      }
    }
  }
}

// Of which a network is worse, or may be: a share of its runs learns nothing, or it is two points
// worse. Its time tells nothing, so its verdict names that.
TEST(LaboratorySettings, OnesThatTrainWorseHaveNoVerdictAlone) {
  struct Kind {
    const char* name;
    double diverges, accuracy;
  };
  std::uint32_t seed = 20000;
  for (const Kind& kind : {Kind{"a third of the runs diverges", 0.33, 0.97},
                           Kind{"accuracy is two points lower", 0, 0.95}}) {
    Rate unmarked, fastest;
    for (int i = 0; i < studies(200); ++i) {
      Noise noise{.run = 0.01}, last = with_event(0.01, [](const Place&) { return 0.9; });
      last.diverges = kind.diverges;
      last.mean_accuracy = [&](const Place&) { return kind.accuracy; };
      const StoreContent content = make_settings(4, noise, last, ++seed);
      const bool is_worse = std::ranges::any_of(content.records, [](const Record& record) {
        return record->quality.test_accuracy.value_or(0) < 0.96;
      });
      if (!is_worse) continue;
      const Study study = make_study(content);
      unmarked.add(is_verdict(find_verdict(study, 4)));
      fastest.add(find_best(study, 0.05).best.name.find("bucket_mb 4") != std::string::npos);
    }
    EXPECT_TRUE(at_most(unmarked, 0, std::string(kind.name) + ": a verdict without it"));
    EXPECT_TRUE(at_most(fastest, 0, std::string(kind.name) + ": it is the fastest"));
  }
}

TEST(LaboratorySettings, OnesThatTrainAlikeAreCompared) {
  std::uint32_t seed = 30000;
  for (const int runs : {3, 5}) {
    Rate marked;
    for (int i = 0; i < studies(200); ++i) {
      const Page page = read_page(make_content(ideal_law(), {.runs = runs}, {.run = 0.01}, ++seed));
      marked.add(page.says("^verdict: .*(accuracy|trained as well)|lower accuracy"));
    }
    EXPECT_TRUE(at_most(marked, 0.05,
                        fmt::format("accuracies that vary by 0.1 points, {} runs: marked", runs)));
  }
}

// Programs on 1, 2 and 4 replicas, of which the last one is 5 % slower: whether the interval of a
// point excludes that it equals its reference.
TEST(LaboratorySettings, AgainstAReferenceProgramsDifferIfTheyDo) {
  std::vector<Records> programs;
  for (const char* name : {"a", "b", "c"}) {
    const double times = *name == 'c' ? 1.05 : 1;
    programs.push_back(changed(
        {ideal_parts, {.sizes = {1, 2, 4}}, with_event(0.01, [=](const Place&) { return times; })},
        [name](Json& record, int, int) { set_program(record, name); }));
  }
  Rate equal, slower;
  for (int i = 0; i < studies(200); ++i) {
    const Study study = make_study(make_content(together(programs)(static_cast<std::uint32_t>(i))));
    for (const auto& [point, cell] :
         column_cells(make_report_section(study), "against_reference")) {
      const bool differs = cell.interval && !(cell.interval->low <= 1 && 1 <= cell.interval->high);
      if (point.find("program b") != std::string::npos) equal.add(differs);
      if (point.find("program c") != std::string::npos) slower.add(differs);
    }
  }
  EXPECT_TRUE(at_most(equal, 0.05, "an equal program differs from its reference"));
  EXPECT_TRUE(at_least(slower, 0.9, "a program that is 5 % slower differs"));
}

}  // namespace
}  // namespace paceline::laboratory
