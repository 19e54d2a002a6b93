#include "engine/facts/fact.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/core/json.h"
#include "engine/facts/collective.h"
#include "engine/facts/input.h"
#include "engine/facts/json.h"
#include "engine/facts/provenance.h"
#include "engine/facts/rank.h"
#include "engine/facts/training.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

struct Inner {
  PACELINE_FACT(fact::Real, depth, "");
  PACELINE_FACT(int, level, "");
  PACELINE_END_FACTS
};

struct Outer {
  PACELINE_FACT(fact::Text, name, "", kRequired);
  PACELINE_FACT(fact::Real, loss, "", kLoss);
  PACELINE_FACT(std::optional<Inner>, inlined, "", kInlined);
  PACELINE_FACT(std::vector<Inner>, list, "");
  PACELINE_FACT_FROM(3, int, count, "", kCount);
  PACELINE_END_FACTS
};

struct Boxed {
  PACELINE_FACT(fact::Box<Throughput>, rate, "");
  PACELINE_FACT(fact::Box<std::optional<StragglerFacts>>, straggler, "");
  PACELINE_END_FACTS
};

Outer parse(const char* text) {
  return parse_facts<Outer>(Json::parse(text), "a file");
}

std::string error(const char* text) {
  return catch_error([&] { parse(text); });
}

TEST(Fact, GoesToJsonAndBack) {
  const Outer outer{
      .name = "x", .inlined = Inner{.depth = 0.5, .level = 2}, .list = {{.level = 1}}};
  const Json json = facts_to_json(outer);
  EXPECT_EQ(json.dump(), R"({"name":"x","depth":0.5,"level":2,"list":[{"level":1}],"count":3})");
  const Outer back = parse_facts<Outer>(json, "a file");
  EXPECT_EQ(facts_to_json(back), json);
  EXPECT_FALSE(parse(R"({"name":"x"})").inlined);
}

TEST(Fact, NumbersKeepWhatIsNotKnown) {
  const Inner known{.depth = 0.5, .level = 2}, unknown{.depth = {}, .level = 2};
  EXPECT_EQ(from_numbers<Inner>(to_numbers(known)).depth, 0.5);
  EXPECT_EQ(from_numbers<Inner>(to_numbers(unknown)).depth, std::nullopt);
  EXPECT_EQ(from_numbers<Inner>(to_numbers(unknown)).level, 2);
}

TEST(Fact, ALossThatIsNotFiniteIsNull) {
  EXPECT_EQ(facts_to_json(Outer{.name = "x", .loss = std::nan("")}).dump(),
            R"({"name":"x","loss":null,"count":3})");
  EXPECT_TRUE(std::isnan(parse(R"({"name":"x","loss":null})").loss.value()));
  EXPECT_FALSE(parse(R"({"name":"x"})").loss);
}

TEST(Fact, BadValuesNameFileAndKey) {
  for (const auto& [text, words] : std::initializer_list<std::pair<const char*, const char*>>{
           {"[]", "should be an object"},
           {"{}", "key /name"},
           {R"({"name":1})", "should be a text"},
           {R"({"name":"x","count":0})", "should be a whole number of at least 1, not 0"},
           {R"({"name":"x","list":[{"level":1},{"level":-1}]})", "key /list/1/level"},
           {R"({"name":"x","depth":"deep"})", "key /depth"}}) {
    EXPECT_NE(error(text).find(words), std::string::npos) << text << ": " << error(text);
    EXPECT_NE(error(text).find("a file"), std::string::npos) << text;
  }
}

TEST(Fact, NumbersAreSummedByName) {
  InputCounts sum{.fetched = 1, .resize_seconds = 0.5};
  sum += {.fetched = 2, .source_pixels = 7, .resize_seconds = 0.25};
  EXPECT_EQ(facts_to_json(sum),
            facts_to_json(InputCounts{.fetched = 3, .source_pixels = 7, .resize_seconds = 0.75}));
}

template <typename Facts>
std::size_t count_facts() {
  Facts facts;
  std::set<std::string> names;
  visit_facts(facts, [&](const FactInfo& fact, const auto&) { names.insert(fact.name); });
  return names.size();
}

TEST(Fact, ABoxIsItsValue) {
  Boxed one;
  EXPECT_EQ(facts_to_json(one).dump(), "{}");
  one.rate->steps = 3;
  Boxed other = one;
  other.rate->steps = 4;
  one.straggler->emplace().rank = 1;
  EXPECT_EQ(facts_to_json(other).dump(), R"({"rate":{"steps":4}})");
  other = std::move(one);
  EXPECT_EQ(facts_to_json(other).dump(), R"({"rate":{"steps":3},"straggler":{"rank":1}})");
}

// One that stood behind PACELINE_END_FACTS would be in no record.
TEST(Fact, AllOfTheHeadersAreVisited) {
  const std::size_t visited =
      count_facts<StepQuantiles>() + count_facts<Timing>() + count_facts<Throughput>() +
      count_facts<PhaseSeconds>() + count_facts<StragglerFacts>() + count_facts<CheckpointFacts>() +
      count_facts<TraceFacts>() + count_facts<RankOutlier>() + count_facts<RankFacts>() +
      count_facts<RanksFacts>() + count_facts<MemoryFacts>() + count_facts<ReadyGradientsFacts>() +
      count_facts<PlanFacts>() + count_facts<ProbeFacts>() + count_facts<EpochFacts>() +
      count_facts<GoalFacts>() + count_facts<QualityFacts>() + count_facts<InputCounts>() +
      count_facts<InputFacts>() + count_facts<GpuFacts>() + count_facts<MeterFacts>() +
      count_facts<EnergyFacts>() + count_facts<NodeFacts>() + count_facts<NetworkPort>() +
      count_facts<LoadFacts>() + count_facts<Allocation>() + count_facts<ScreenedFacts>() +
      count_facts<ProgramFacts>() + count_facts<ImportFacts>() + count_facts<Provenance>() +
      count_facts<ProfileFacts>() + count_facts<CollectiveRow>() + count_facts<CollectiveFacts>();
  std::size_t written = 0;
  const std::filesystem::path folder = PACELINE_SOURCE_DIR "/engine/facts";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".h" || file.path().filename() == "fact.h") continue;
    const std::string text = read_text(file.path());
    for (auto at = text.find("PACELINE_FACT("); at != std::string::npos;
         at = text.find("PACELINE_FACT(", at + 1)) {
      ++written;
    }
  }
  EXPECT_GT(written, 150U);
  EXPECT_EQ(visited, written);
}

}  // namespace
}  // namespace paceline
