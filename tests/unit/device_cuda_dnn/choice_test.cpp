#include "engine/device/cuda/dnn/choice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/expect_error.h"
#include "tests/unit/device_cuda_dnn/fake_tuner.h"

namespace paceline::cuda {
namespace {

using Use = TensorSize::Use;

// A plane, and sums beside it.
constexpr std::size_t kPlane = 200, kSums = 8;
const std::vector<TensorSize> kSizes{{100, DType::bf16},
                                     {50, DType::bf16},
                                     {kPlane, DType::bf16, Use::written},
                                     {kSums, DType::f32, Use::written}};
const ChoiceRules kMeasured{
    .workspace_limit = 1000, .measures = true, .agreement = {.norm = 0.02, .element = 0.2}};
const ChoiceRules kFirst{.workspace_limit = 1000};

// Ways with a number each; the tuner's time of a way is read from the one that ran last.
class Ways {
 public:
  struct Way {
    double seconds = 1e-3;
    std::size_t workspace = 0;
    bool builds = true, captures = true, runs = true, compiles = false;
    // What it computes: the elements of the plane, the last of them, and the sums.
    float plane = 1, last = 0, sum = 3;
    bool adds = false;             // to what stands in the plane
    std::size_t written = kPlane;  // elements
    float drift = 0;               // of the plane, from run to run
    bool ours = false;
  };

  explicit Ways(std::vector<Way> ways) : ways_(std::move(ways)) {
    tuner.seconds = [this] { return ways_[ran_].seconds; };
    tuner.captures = [this] {
      return ways_[ran_].captures ? Support::yes() : Support::no("does not fit a graph");
    };
  }

  Offered offered() {
    Offered all;
    all.count = static_cast<int>(ways_.size()) + 1;
    all.refused = "engine 99 varies";
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      Candidate candidate;
      candidate.recipe.engine = static_cast<std::int64_t>(i);
      if (ways_[i].ours) candidate.recipe.library = Recipe::Library::own;
      candidate.compiles = ways_[i].compiles;
      candidate.build = [this, i] { return build(i); };
      all.candidates.push_back(candidate);
    }
    return all;
  }

  Chosen choose_by(ChoiceRules rules) {
    rules.trying = [this](const Recipe& recipe) { tried.push_back(recipe.engine); };
    rules.exclude = [this](const Recipe& recipe, const std::string& because) {
      excluded.push_back({recipe.engine, because});
      return true;
    };
    return choose("a product", offered(), sizes, rules, &tuner);
  }

  std::size_t ran() const { return ran_; }  // last

  FakeTuner tuner;
  std::vector<TensorSize> sizes = kSizes;
  std::vector<std::int64_t> tried;
  std::vector<std::pair<std::int64_t, std::string>> excluded;

 private:
  class Implemented : public Implementation {
   public:
    Implemented(Ways& of, std::size_t number) : of_(of), number_(number) {}
    std::size_t workspace_bytes() const override { return of_.ways_[number_].workspace; }
    void run(const Operands& operands, Stream) override {
      Way& way = of_.ways_[number_];
      of_.ran_ = number_;
      if (!way.runs) throw Error(ErrorKind::internal, "execution failed");
      auto* plane = static_cast<Bf16*>(operands.tensors[2]);
      for (std::size_t i = 0; i < way.written; ++i) {
        const float before = way.adds ? to_float(plane[i]) : 0;
        const bool is_last = i + 1 == kPlane && way.last != 0;
        plane[i] = from_float<Bf16>(before + (is_last ? way.last : way.plane));
      }
      std::fill_n(static_cast<float*>(operands.tensors[3]), kSums, way.sum);
      way.plane += way.drift;
    }

   private:
    Ways& of_;
    std::size_t number_;
  };

  std::shared_ptr<Implementation> build(std::size_t number) {
    if (!ways_[number].builds) throw Error(ErrorKind::usage, "not supported");
    return std::make_shared<Implemented>(*this, number);
  }

  std::vector<Way> ways_;
  std::size_t ran_ = 0;
};

TEST(Choice, IsTheFastestAndNamesTheRunnerUp) {
  Ways ways({{.seconds = 3e-3}, {.seconds = 1e-3}, {.seconds = 2e-3}});
  const Choice choice = ways.choose_by(kMeasured).choice;
  EXPECT_EQ(choice.recipe.engine, 1);
  EXPECT_EQ(choice.seconds, 1e-3);
  EXPECT_EQ(choice.runner_up, "cuDNN engine 2");
  EXPECT_EQ(choice.runner_up_seconds, 2e-3);
  EXPECT_EQ(choice.offered, 4);
  EXPECT_EQ(choice.usable, 3);
  EXPECT_EQ(choice.origin, Choice::Origin::measured);
}

TEST(Choice, UnmeasuredIsTheFirstThatCanBeUsed) {
  Ways ways({{.builds = false}, {.workspace = 2000}, {.captures = false}, {.runs = false}, {}, {}});
  const Choice choice = ways.choose_by(kFirst).choice;
  EXPECT_EQ(choice.recipe.engine, 4);
  EXPECT_EQ(choice.usable, 2);
  EXPECT_EQ(choice.seconds, 0);
  EXPECT_EQ(choice.origin, Choice::Origin::heuristic);
  EXPECT_EQ(ways.tuner.captured, 2);  // what can be and what cannot; none to compare
  EXPECT_EQ(ways.tuner.timed_runs, 0);
  EXPECT_EQ(ways.tuner.flushed, 0);
}

TEST(Choice, DropsWhatFailsHoweverFastItIs) {
  Ways ways({{.seconds = 5e-3},
             {.seconds = 1e-3, .captures = false},
             {.seconds = 1e-3, .runs = false},
             {.seconds = 1e-3, .workspace = 1001},
             {.seconds = 4e-3, .workspace = 1000}});
  const Choice choice = ways.choose_by(kMeasured).choice;
  EXPECT_EQ(choice.recipe.engine, 4);
  EXPECT_EQ(choice.workspace_bytes, 1000U);
  EXPECT_EQ(choice.usable, 2);
}

TEST(Choice, TriesTensorsAtTheirRealSize) {
  Ways ways({{.workspace = 300}, {.workspace = 200}, {.workspace = 500}});
  ways.choose_by(kMeasured);
  EXPECT_EQ(ways.tuner.randomized, 4);
  const std::size_t results = kPlane * 2 + kSums * 4;  // and once more, to compare with
  EXPECT_EQ(ways.tuner.allocated, (100U + 50) * 2 + 2 * results + 300 + 500);
  EXPECT_EQ(ways.tuner.flushed, 1);
}

// A kernel may have to be loaded, which a capture does not allow.
TEST(Choice, RunsBeforeItCaptures) {
  Ways ways({{}, {}});
  ways.tuner.captures = [&] {
    return ways.tuner.ran > 0 ? Support::yes() : Support::no("is not loaded");
  };
  EXPECT_EQ(ways.choose_by(kFirst).choice.recipe.engine, 0);
}

TEST(Choice, TimesASlowWayOnceOnly) {
  Ways ways({{.seconds = 1e-3}, {.seconds = 50e-3}});
  ways.choose_by(kMeasured);
  EXPECT_EQ(ways.tuner.timed_runs, 1 + 10 + 1);
}

TEST(Choice, GivesAFarTooSlowWayOneRunOnly) {
  Ways ways({{.seconds = 1e-3}, {.seconds = 0.6}});
  ways.choose_by(kMeasured);
  EXPECT_EQ(ways.tuner.timed_runs, 1 + 10);
  EXPECT_EQ(ways.tuner.captured, 1);
}

using Excluded = std::vector<std::int64_t>;

Excluded excluded(const Ways& ways, const std::string& because) {
  Excluded engines;
  for (const auto& [engine, why] : ways.excluded) {
    expect_parts(why, {because});
    engines.push_back(engine);
  }
  return engines;
}

TEST(Choice, LeavesOutTheFastestWhereItComputesSomethingElse) {
  Ways ways({{.seconds = 2e-3}, {.seconds = 1e-3, .plane = 7}, {.seconds = 3e-3}});
  const Choice choice = ways.choose_by(kMeasured).choice;
  EXPECT_EQ(choice.recipe.engine, 0);
  EXPECT_EQ(choice.usable, 2);
  EXPECT_EQ(excluded(ways, "not that of 2 others: 6 of their norm off"), Excluded{1});
}

TEST(Choice, LeavesOutWhatTheOthersDoNotCompute) {
  struct Case {
    const char* name;
    std::vector<Ways::Way> ways;
    std::int64_t best;
    const char* because;
    Excluded others;
  };
  const std::vector<Case> cases = {
      {"the first has no right by being the first",
       {{.seconds = 1e-3, .plane = 7}, {.seconds = 3e-3}, {.seconds = 2e-3}},
       2,
       "not that of 2 others",
       {0}},
      {"six results, of which four are kept to compare others with",
       {{.plane = 2}, {.plane = 3}, {}, {.plane = 4}, {.plane = 5}, {.plane = 6}, {}},
       2,
       "not that of 2 others",
       {0, 1, 3, 4, 5}},
      {"of two results that of the first is taken",
       {{.seconds = 2e-3}, {.seconds = 1e-3, .plane = 7}},
       0,
       "not that of 1 other:",
       {1}},
      {"the result of our kernels is right",
       {{.seconds = 2e-3, .ours = true}, {.plane = 7}, {.plane = 7}, {.seconds = 1.5e-3}},
       3,
       "not that of",
       {1, 2}},
      {"all results", {{}, {.seconds = 1e-4, .sum = 4}, {}}, 0, "not that of", {1}},
      {"single elements",
       {{}, {.seconds = 1e-4, .last = 1.5F}, {.seconds = 5e-4, .last = 1.125F}},
       2,
       "not that of 2 others",
       {1}},
      {"what is just off is not taken, nor excluded for good",
       {{}, {.seconds = 1e-4, .last = 1.25F}, {.seconds = 5e-4}},
       2,
       "",
       {}}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    Ways ways(one.ways);
    EXPECT_EQ(ways.choose_by(kMeasured).choice.recipe.engine, one.best);
    EXPECT_EQ(excluded(ways, one.because), one.others);
  }
}

// Each adds to the same plane; one forgets to.
TEST(Choice, ComparesWhatIsAddedFromTheSameBeginning) {
  Ways ways({{.seconds = 2e-3, .adds = true}, {.seconds = 1e-3}, {.seconds = 3e-3, .adds = true}});
  ways.sizes[2].use = Use::added_to;
  EXPECT_EQ(ways.choose_by(kMeasured).choice.recipe.engine, 0);
  EXPECT_EQ(excluded(ways, "not that of 2 others"), Excluded{1});
}

TEST(Choice, LeavesOutWhatDoesNotWriteAll) {
  for (const ChoiceRules& rules : {kMeasured, kFirst}) {
    Ways ways({{.seconds = 1e-4, .written = kPlane - 1}, {}});
    EXPECT_EQ(ways.choose_by(rules).choice.recipe.engine, 1);
    EXPECT_EQ(excluded(ways, "not all of it is written"), Excluded{0});
  }
}

// However many agree on it.
TEST(Choice, LeavesOutZeros) {
  for (const ChoiceRules& rules : {kMeasured, kFirst}) {
    Ways ways({{.plane = 0}, {.plane = 0}, {.seconds = 2e-3}});
    EXPECT_EQ(ways.choose_by(rules).choice.recipe.engine, 2);
    EXPECT_EQ(excluded(ways, "its result is zero"), (Excluded{0, 1}));
  }
}

TEST(Choice, LeavesOutWhatVariesWhereBitsCount) {
  for (ChoiceRules rules : {kMeasured, kFirst}) {
    Ways ways({{.seconds = 1e-4, .drift = 0x1p-7F}, {}});
    EXPECT_EQ(ways.choose_by(rules).choice.recipe.engine, 0);
    EXPECT_TRUE(ways.excluded.empty());
    rules.repeats = true;
    EXPECT_EQ(ways.choose_by(rules).choice.recipe.engine, 1);
    EXPECT_EQ(excluded(ways, "bits differ from run to run"), Excluded{0});
  }
}

// Beside garbage that takes no time the others seem far too slow to be measured well.
TEST(Choice, MeasuresAgainWithoutWhatIsLeftOut) {
  Ways ways({{.seconds = 1e-6, .plane = 7}, {.seconds = 2e-3}, {.seconds = 1.9e-3}});
  EXPECT_EQ(ways.choose_by(kMeasured).choice.recipe.engine, 2);
  EXPECT_EQ(ways.tuner.timed_runs, (11 + 1 + 1) + (11 + 11));
  EXPECT_EQ(ways.tried, (std::vector<std::int64_t>{0, 1, 2, 2, 1}));
}

TEST(Choice, WithoutMemoryToCompareIsTheFastest) {
  Ways ways({{.seconds = 2e-3}, {.seconds = 1e-3}});
  ways.tuner.most_bytes = (100U + 50 + kPlane) * 2 + kSums * 4;
  EXPECT_EQ(ways.choose_by(kMeasured).choice.recipe.engine, 1);
  EXPECT_TRUE(ways.excluded.empty());
}

TEST(Choice, AgreesAsFarAsNumbersAreRounded) {
  EXPECT_NEAR(find_agreement(Math::fp32, 576).norm, 3e-5, 1e-5);
  EXPECT_NEAR(find_agreement(Math::fp32, 3000000).norm, 8e-4, 1e-4);
  EXPECT_NEAR(find_agreement(Math::bf16, 576).norm, 1e-2, 1e-4);
  EXPECT_LT(find_agreement(Math::tf32, 576).norm, find_agreement(Math::bf16, 576).norm);
}

// A kernel that writes where it may not breaks all that comes after it.
TEST(Choice, NamesWhatBrokeTheCard) {
  Ways ways({{.seconds = 1e-3}, {.runs = false}, {.seconds = 2e-3}});
  ways.tuner.works = [&] { return ways.ran() != 1; };
  expect_error(ErrorKind::internal, {"cuDNN engine 1 broke the GPU's context", "a product"},
               [&] { ways.choose_by(kMeasured); });
  EXPECT_EQ(excluded(ways, "broke the GPU's context"), Excluded{1});
}

TEST(Choice, CompilesAFewOnly) {
  Ways ways({{.seconds = 9e-3, .compiles = true},
             {.seconds = 8e-3, .builds = false, .compiles = true},
             {.seconds = 7e-3, .compiles = true},
             {.seconds = 1e-3, .compiles = true},
             {.seconds = 8e-3}});
  ChoiceRules rules = kMeasured;
  rules.most_compiled = 2;
  const Choice choice = ways.choose_by(rules).choice;
  EXPECT_EQ(choice.recipe.engine, 2);
  EXPECT_EQ(choice.usable, 3);
  rules.measures = false;
  EXPECT_EQ(ways.choose_by(rules).choice.usable, 2);  // what need not be compiled is there too
}

TEST(Choice, WithoutMemoryIsTheFirst) {
  Ways ways({{.seconds = 2e-3}, {.seconds = 1e-3}});
  ways.tuner.has_memory = false;
  const Choice choice = ways.choose_by(kMeasured).choice;
  EXPECT_EQ(choice.recipe.engine, 0);
  EXPECT_EQ(choice.origin, Choice::Origin::heuristic);
  EXPECT_EQ(ways.tuner.captured, 0);
}

TEST(Choice, OfNothingReportsWhy) {
  Ways ways(std::vector<Ways::Way>{{.builds = false}});
  expect_error(ErrorKind::usage, {"a product", "engine 99 varies"},
               [&] { ways.choose_by(kMeasured); });
  Ways large(std::vector<Ways::Way>{{.workspace = 5000000}});
  Offered offered = large.offered();
  offered.refused.clear();
  expect_error(ErrorKind::usage, {"a product", "engine 0 needs 5.0 MB of workspace"},
               [&] { choose("a product", offered, kSizes, kFirst, nullptr); });
}

}  // namespace
}  // namespace paceline::cuda
