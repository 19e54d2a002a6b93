// Which programs `why` compares, by what its first runs saw.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/core/file.h"
#include "engine/core/text.h"
#include "run/why/first_run.h"
#include "run/why/variants.h"
#include "tests/support/expect_parts.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

// Two ranks of 16 samples a step, of one alone 32.
MeasuredRun make_seen(int ranks, double batch) {
  MeasuredRun run;
  run.ranks = run.local_ranks = ranks;
  run.steps = 100;
  run.seconds = 1;
  run.samples = run.steps * ranks * (batch - 1);  // an epoch's last batch is smaller
  run.batch = batch;
  run.batches = 100;
  run.steps_in_all = 434;
  run.all_cpus = 2;
  return run;
}

std::vector<std::string> names(const MeasuredRun& seen, const std::optional<MeasuredRun>& alone) {
  std::vector<std::string> names, notes;
  for (const Variant& each : choose_variants(seen, alone, 2, notes)) names.push_back(each.name);
  return names;
}

bool has(const std::vector<std::string>& all, const char* name) {
  return std::ranges::count(all, name) > 0;
}

TEST(WhyVariants, ASmallerBatchIsComparedAndTriedAsItIsAlone) {
  const auto smaller = names(make_seen(2, 16), make_seen(1, 32));
  EXPECT_TRUE(has(smaller, kAloneBatch));
  EXPECT_TRUE(has(smaller, kKeptBatch));
  std::vector<std::string> notes;
  MeasuredRun seen = make_seen(2, 16);
  seen.steps_in_all = 86;  // 43 steps of 32
  for (const Variant& each : choose_variants(seen, make_seen(1, 32), 2, notes)) {
    EXPECT_NE(each.name, kKeptBatch);
  }
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("too few steps"), std::string::npos);
  seen.steps_in_all = 434;
  for (const Variant& each : choose_variants(seen, make_seen(1, 32), 2, notes)) {
    if (each.name != kKeptBatch) continue;
    EXPECT_EQ(each.changes,
              R"({"batch":32,"steps":217})");  // the same samples in half the steps
    EXPECT_FALSE(each.is_try());
    EXPECT_EQ(each.text, "batches of 32 a replica instead of 16");
  }
  notes.clear();
  seen.batches = 0;  // it slices tensors itself
  EXPECT_FALSE(has(names(seen, make_seen(1, 32)), kAloneBatch));
  MeasuredRun accumulating = make_seen(1, 16);  // as many samples in two passes
  accumulating.ratio = 2;
  accumulating.samples *= 2;
  seen.batches = 100;
  seen.staying = {"broadcast"};
  for (const Variant& each : choose_variants(seen, accumulating, 2, notes)) {
    EXPECT_NE(each.name, kAloneBatch);
  }
  expect_parts(join(notes, "\n"), {"smaller batch of a replica", "Calls of broadcast stay"});
  MeasuredRun shorter = make_seen(2, 32);
  shorter.samples /= 2;  // epochs of fewer whole batches
  EXPECT_FALSE(has(names(shorter, make_seen(1, 32)), kKeptBatch));
  const auto same = names(make_seen(2, 32), make_seen(1, 32));
  EXPECT_FALSE(has(same, kAloneBatch));
  EXPECT_FALSE(has(same, kKeptBatch));
}

TEST(WhyVariants, ALoaderOnlyTakesCpusFromStepsIfItHasWorkers) {
  MeasuredRun seen = make_seen(2, 16);
  seen.wait = 0.5;
  EXPECT_TRUE(has(names(seen, {}), kNoWait));
  EXPECT_FALSE(has(names(seen, {}), kDropped));
  seen.workers = 2;
  EXPECT_TRUE(has(names(seen, {}), kDropped));
}

// As texts are, each batch of which is as long as its longest.
TEST(WhyVariants, RecordedBatchesThatAreLargerThanLaterOnesAreKnown) {
  MeasuredRun seen = make_seen(2, 16), repeated = seen;
  EXPECT_TRUE(is_as_large_as(repeated, seen));  // none has tensors
  seen.elements = repeated.elements = 1000;
  EXPECT_TRUE(is_as_large_as(repeated, seen));
  repeated.elements = 1050;
  EXPECT_FALSE(is_as_large_as(repeated, seen));
  repeated.samples *= 1.05;
  EXPECT_TRUE(is_as_large_as(repeated, seen));
}

TEST(WhyVariants, WaitsForTheGpuAreTakenAwayWhereTheyCost) {
  MeasuredRun seen = make_seen(2, 16);
  seen.sync_seconds = 0.005;
  EXPECT_FALSE(has(names(seen, {}), kNoSyncs));
  seen.sync_seconds = 0.05;
  EXPECT_TRUE(has(names(seen, {}), kNoSyncs));
}

// Of DistributedDataParallel over Gloo, two ranks of PyTorch.
TEST(WhyVariants, ProfiledStepsAreDivided) {
  const std::string folder = std::string(PACELINE_SOURCE_DIR) + "/tests/data/kineto/";
  expect_parts(describe_profile(read_kineto_run(
                   {folder + "ddp-gloo-rank0.json.gz", folder + "ddp-gloo-rank1.json.gz"})),
               {"profiled steps rank ", ", the slowest, took ", " % computing, ",
                " % sums that computing does not hide, ", " % in the loader, "});
}

// What processes and minutes change is then the same for all of them.
TEST(WhyVariants, StepsThatAreAlikeAreTakenInTurns) {
  MeasuredRun seen = make_seen(2, 16);
  seen.wait = 0.5;
  seen.workers = 2;
  seen.bucket_mb = 25;
  seen.saves = 100;
  seen.threads = 2;
  seen.save_seconds = 0.2;
  seen.goes_on = true;
  seen.elements = 5 * seen.samples;
  MeasuredRun alone = make_seen(1, 16);
  alone.elements = 5 * alone.samples;
  alone.workers = seen.workers;
  alone.threads = seen.threads;
  alone.epoch_seconds = 0.03;
  const auto launched = [&](const MeasuredRun& of, const MeasuredRun& one) {
    std::vector<std::string> names, notes;
    for (const Variant& each :
         take_turns(choose_variants(of, make_seen(1, 16), 2, notes), of, one)) {
      names.push_back(each.name);
    }
    return join(names, " ");
  };
  EXPECT_EQ(launched(seen, alone), "as-it-is alone-once workers data-dropped");
  std::vector<std::string> notes;
  const auto variants = choose_variants(seen, alone, 2, notes);
  const Json turns = parse_json(take_turns(variants, seen, alone).front().changes).at("turns");
  EXPECT_EQ(
      json_text(turns.at("programs")),
      R"([["as-it-is",[]],["alone",["sums","others"]],["no-sums",["sums"]],["data-at-hand",["data"]],)"
      R"(["no-saves",["saves"]],["threads",["threads"]]])");
  // Three and the four batches that two workers have at hand; steps of 10 ms.
  EXPECT_EQ(turns.at("settle"), 7);
  EXPECT_EQ(turns.at("turn"), 67);
  EXPECT_EQ(turns.at("rounds"), 4);
  EXPECT_DOUBLE_EQ(turns.at("alone_epochs").get<double>(), 0.03 / 100);
  const auto with = [&](auto change) {
    MeasuredRun other = seen;
    change(other);
    return launched(other, alone);
  };
  const std::string all =
      "as-it-is alone no-sums data-at-hand no-saves threads workers data-dropped";
  EXPECT_EQ(with([](MeasuredRun& run) { run.saves = 10; }), all);
  EXPECT_EQ(with([](MeasuredRun& run) { run.epoch_seconds = 0.2; }), all);
  EXPECT_EQ(with([](MeasuredRun& run) { run.epoch_seconds = 0.05; }),
            "as-it-is alone-once workers data-dropped");
  EXPECT_EQ(with([](MeasuredRun& run) { run.goes_on = false; }), all);
  EXPECT_EQ(with([](MeasuredRun& run) { run.is_on_gpu = true; }),
            "as-it-is alone no-sums data-at-hand no-saves workers data-dropped");
  EXPECT_EQ(with([](MeasuredRun& run) { run.bucket_mb = 1; }),
            "as-it-is alone no-sums workers data-dropped buckets");
  EXPECT_EQ(with([](MeasuredRun& run) { run.finds_unused = true; }),
            "as-it-is alone no-sums workers data-dropped");
  EXPECT_EQ(with([](MeasuredRun& run) { run.workers = 16; }),
            "as-it-is alone data-at-hand workers data-dropped");
  // Ranks that wait for each other without sums, too; and one alone that does something else.
  const std::string apart = "as-it-is alone workers data-dropped";
  EXPECT_EQ(with([](MeasuredRun& run) { run.staying = {"broadcast"}; }), apart);
  EXPECT_EQ(with([](MeasuredRun& run) { run.has_sync_norm = true; }), apart);
  for (const auto change : std::vector<void (*)(MeasuredRun&)>{
           [](MeasuredRun& run) { run.threads = 8; }, [](MeasuredRun& run) { run.elements *= 1.1; },
           [](MeasuredRun& run) { run.batch = 12; },
           [](MeasuredRun& run) { run.own_seconds = 0.1; }}) {
    MeasuredRun other = alone;
    change(other);
    EXPECT_EQ(launched(seen, other), apart);
  }
}

TEST(WhyVariants, TurnsAreThoseOfAllProgramsAndOneAloneCostsWhatItDoes) {
  MeasuredRun alone = make_seen(1, 16);
  alone.elements = 5 * alone.samples;
  MeasuredRun run = make_seen(2, 16);
  run.turns = {make_seen(2, 16), alone};
  run.turns.back().program = kAlone;
  EXPECT_TRUE(took_turns(run, 3, alone));
  EXPECT_FALSE(took_turns(run, 4, alone));
  const auto with = [&](auto change) {
    MeasuredRun other = run;
    change(other.turns.back());
    return took_turns(other, 3, alone);
  };
  EXPECT_FALSE(with([](MeasuredRun& turn) { turn.steps = kFewestCounted - 1; }));
  EXPECT_TRUE(with([](MeasuredRun& turn) { turn.seconds *= 1.25; }));
  EXPECT_FALSE(with([](MeasuredRun& turn) { turn.seconds *= 1.35; }));
  EXPECT_FALSE(with([](MeasuredRun& turn) { turn.elements *= 1.1; }));
}

// As many steps are measured; batches, and values that the host reads, need all steps before.
TEST(WhyVariants, AWarmUpOfSlowStepsIsShortWhereNothingIsRecordedInIt) {
  const auto settings_of = [](double steps_a_second, const char* name, Json& changes) {
    MeasuredRun seen = make_seen(2, 16);
    seen.seconds = seen.steps / steps_a_second;
    std::vector<Variant> variants = {{kAsItIs, "{}"}, {name, R"({"steps": 60})"}};
    Json settings = {{"warm", kWarmSteps}, {"steps", 134}};
    shorten_warm_up(variants, settings, seen);
    changes = parse_json(variants[1].changes);
    EXPECT_EQ(variants[0].changes, "{}");
    return settings;
  };
  Json changes;
  EXPECT_EQ(settings_of(8, kKeptBatch, changes), (Json{{"warm", 8}, {"steps", 108}}));
  EXPECT_EQ(changes, (Json{{"steps", 34}}));
  EXPECT_EQ(settings_of(0.5, kNoSums, changes), (Json{{"warm", 5}, {"steps", 105}}));
  EXPECT_EQ(settings_of(200, kNoSums, changes), (Json{{"warm", 34}, {"steps", 134}}));
  for (const char* name : {kNoWait, kDropped, kNoSyncs}) {
    EXPECT_EQ(settings_of(8, name, changes), (Json{{"warm", 34}, {"steps", 134}})) << name;
    EXPECT_EQ(changes, (Json{{"steps", 60}}));
  }
}

TEST(WhyFirstRun, WarnsOfProcessesThatAreNotHeld) {
  const Scratch scratch;
  WhyEvidence evidence;
  warn_of_unheld(scratch.path(), evidence);
  EXPECT_TRUE(evidence.warnings.empty());
  replace_file(scratch.path() / "unheld", "");
  warn_of_unheld(scratch.path(), evidence);
  EXPECT_EQ(evidence.warnings.size(), 1U);
}

}  // namespace
}  // namespace paceline
