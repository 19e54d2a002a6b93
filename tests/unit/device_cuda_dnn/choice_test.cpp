#include "engine/device/cuda/dnn/choice.h"

#include <gtest/gtest.h>

#include "engine/core/error.h"
#include "tests/support/expect_error.h"
#include "tests/unit/device_cuda_dnn/fake_tuner.h"

namespace paceline::cuda {
namespace {

const std::vector<TensorSize> kSizes{{100, DType::bf16}, {50, DType::bf16}, {200, DType::bf16}};
const ChoiceRules kMeasured{1000, true};
const ChoiceRules kFirst{1000, false};

// Ways with a number each; the tuner's time of a way is read from the one that ran last.
class Ways {
 public:
  struct Way {
    double seconds = 1e-3;
    std::size_t workspace = 0;
    bool builds = true, captures = true, runs = true, compiles = false;
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
      candidate.compiles = ways_[i].compiles;
      candidate.build = [this, i] { return build(i); };
      all.candidates.push_back(candidate);
    }
    return all;
  }

  Chosen choose_by(const ChoiceRules& rules, const Baseline* baseline = nullptr) {
    return choose("a product", offered(), kSizes, rules, &tuner, baseline);
  }
  // The last way is another way to do it all.
  Baseline baseline() {
    return {[this](const Operands&, Stream) { ran_ = ways_.size() - 1; },
            [this](const Operands&, Stream) { ++behind; }};
  }

  std::size_t ran() const { return ran_; }  // last

  FakeTuner tuner;
  int behind = 0;

 private:
  class Implemented : public Implementation {
   public:
    Implemented(Ways& of, std::size_t number) : of_(of), number_(number) {}
    std::size_t workspace_bytes() const override { return of_.ways_[number_].workspace; }
    void run(const Operands&, Stream) override {
      of_.ran_ = number_;
      if (!of_.ways_[number_].runs) throw Error(ErrorKind::internal, "execution failed");
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

TEST(Choice, IsMeasuredBesideAnotherWayToDoItsWork) {
  for (const double seconds : {2e-3, 0.5e-3}) {
    Ways ways({{.seconds = 3e-3}, {.seconds = 1e-3}, {.seconds = seconds, .builds = false}});
    const Baseline baseline = ways.baseline();
    const Choice choice = ways.choose_by(kMeasured, &baseline).choice;
    EXPECT_EQ(choice.recipe.engine, 1);
    EXPECT_EQ(choice.seconds, 1e-3);
    EXPECT_EQ(choice.baseline_seconds, seconds);
    EXPECT_GT(ways.behind, 0);
  }
  Ways unmeasured({{}, {.builds = false}});
  const Baseline baseline = unmeasured.baseline();
  EXPECT_EQ(unmeasured.choose_by(kFirst, &baseline).choice.baseline_seconds, 0);
}

TEST(Choice, UnmeasuredIsTheFirstThatCanBeUsed) {
  Ways ways({{.builds = false}, {.workspace = 2000}, {.captures = false}, {.runs = false}, {}, {}});
  const Choice choice = ways.choose_by(kFirst).choice;
  EXPECT_EQ(choice.recipe.engine, 4);
  EXPECT_EQ(choice.usable, 2);
  EXPECT_EQ(choice.seconds, 0);
  EXPECT_EQ(choice.origin, Choice::Origin::heuristic);
  EXPECT_EQ(ways.tuner.captured, 2);  // what can be and what cannot; none to compare
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
  EXPECT_EQ(ways.tuner.randomized, 3);
  EXPECT_EQ(ways.tuner.allocated, (100U + 50 + 200) * 2 + 300 + 500);
}

// A kernel may have to be loaded, which a capture does not allow.
TEST(Choice, RunsBeforeItCaptures) {
  Ways ways({{}, {}});
  ways.tuner.captures = [&] {
    return ways.tuner.timed_runs > 0 ? Support::yes() : Support::no("is not loaded");
  };
  EXPECT_EQ(ways.choose_by(kFirst).choice.recipe.engine, 0);
}

TEST(Choice, GivesASlowWayTwoRunsOnly) {
  Ways ways({{.seconds = 1e-3}, {.seconds = 50e-3}});
  ways.choose_by(kMeasured);
  EXPECT_EQ(ways.tuner.timed_runs, 2 + 10 + 2);
}

TEST(Choice, GivesAFarTooSlowWayOneRunOnly) {
  Ways ways({{.seconds = 1e-3}, {.seconds = 0.6}});
  ways.choose_by(kMeasured);
  EXPECT_EQ(ways.tuner.timed_runs, 2 + 10 + 1);
  EXPECT_EQ(ways.tuner.captured, 1);
}

// A kernel that writes where it may not breaks all that comes after it.
TEST(Choice, NamesWhatBrokeTheCard) {
  Ways ways({{.seconds = 1e-3}, {.runs = false}, {.seconds = 2e-3}});
  ways.tuner.works = [&] { return ways.ran() != 1; };
  expect_error(ErrorKind::internal, {"cuDNN engine 1 broke the GPU's context", "a product"},
               [&] { ways.choose_by(kMeasured); });
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
