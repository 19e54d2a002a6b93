#include "tests/laboratory/sets.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/laboratory/made.h"
#include "tests/laboratory/page.h"

namespace paceline::laboratory {

namespace {

const std::function<Parts(double)> kLinear = communicating([](double n) { return 0.1 * (n - 1); });

const char* const kApart = "the cause may be ";
const char* const kBound = "the speed-up stays below";
const char* const kPerReplica = "each added replica adds";

void add_laws(std::vector<NamedSet>& all) {
  add(all, "01 Amdahl of the run", "20 % of a run are outside of steps",
      made({[](double n) { return Parts{.compute = 80 / n, .outside = 20}; }}),
      {"outside of steps"}, {kPerReplica, kApart});
  add(all, "02 linear communication", "communication grows with every replica", made({kLinear}),
      {"communication"}, {kApart, "^no_loss: "});
  add(all, "03 communication of a tree", "the fraction falls",
      made({communicating([](double n) { return 0.1 * std::log2(n); })}),
      {"^falls: ", "communication"}, {kBound});
  add(all, "04 ring", "the fraction falls as 1/N",
      made({communicating([](double n) { return 0.2 * (n - 1) / n; })}), {"^falls: "}, {kBound});
  add(all, "05 strong scaling of a ring",
      "all of the base's time is divided; communication is constant",
      made({.parts =
                [](double n) {
                  return Parts{.compute = kOne / n, .communication = kOne * 0.1 * (n - 1) / n};
                },
            .scaling = Scaling::strong}),
      {"communication"}, {"of the base's time is not divided among replicas"});
  add(all, "06 strong scaling, serial compute", "10 % of each step are not divided",
      made({.parts = [](double n) { return Parts{.compute = 90 / n + 10}; },
            .scaling = Scaling::strong}),
      {"compute"});
  add(all, "07 input", "one reader for all",
      made({[](double n) { return Parts{.compute = kOne / n, .input = 15}; }}), {"input"},
      {kApart});
  add(all, "16 above ideal", "the share of each fits into its cache",
      made({[](double n) { return Parts{.compute = kOne / n * (n > 1 ? 0.85 : 1)}; }}),
      {"^above_ideal: "});
  add(all, "20 weak scaling of a tree", "communication grows as the logarithm",
      made({.parts =
                [](double n) {
                  return Parts{.compute = kOne, .communication = n > 1 ? 5 * std::log2(n) : 0};
                },
            .scaling = Scaling::weak}),
      {"communication"}, {"^no_loss: ", kBound});
  add(all, "35 USL", "the speed-up falls beyond a peak",
      made({communicating([](double n) { return 0.02 * n * (n - 1); }),
            {.sizes = {1, 2, 4, 8, 16}}}),
      {"^grows: ", "^peak: "}, {kBound});
  add(all, "36 slow base", "a slow base hides up to 17 % communication", made({[](double n) {
        return Parts{.compute = kOne / n * (n == 1 ? 1.2 : 1),
                     .communication = kOne / n * 0.03 * (n - 1)};
      }}),
      {"communication( or straggler costs)? [0-9]",
       "base.*1\\.[12][0-9]?( \\[[0-9., ]*\\])? times as long|slow base|base is slow"},
      {"^no_loss: ", "cannot be distinguished from noise$"});
  add(all, "37 shared memory", "computing takes longer the more compute", made({[](double n) {
        const std::map<int, double> slower = {{1, 1}, {2, 1.02}, {4, 1.25}, {8, 2.0}};
        return Parts{.compute = kOne / n * slower.at(static_cast<int>(n))};
      }}),
      {"^grows: ", "compute"}, {kBound});
  add(all, "39 one bad size", "4 replicas communicate most",
      made({communicating([](double n) { return n == 2   ? 0.05
                                                : n == 4 ? 0.5
                                                         : 0.35; })}),
      {"communication"}, {"^steady: ", kBound});
  add(all, "40 launch", "10 s of the host in every run",
      made({[](double n) { return Parts{.compute = kOne / n, .launch = 10}; }}), {"launch"},
      {kApart, kPerReplica});
}

void add_few_runs(std::vector<NamedSet>& all) {
  for (const int runs : {1, 2}) {
    add(all, "2" + std::to_string(runs + 1) + " " + std::to_string(runs) + " runs",
        "linear communication", made({kLinear, {.runs = runs}}), {}, {kBound, "highest at"});
  }
  add(all, "24 three runs", "linear communication", made({kLinear, {.runs = 3}}), {"communication"},
      {kApart, "^no_loss: "});
  add(all, "25 three noisy runs", "linear communication",
      made({kLinear, {.runs = 3}, {.run = 0.04}}), {}, {"^above_ideal: ", kApart});
  add(all, "26 no noise at all", "linear communication", made({kLinear, {}, {.run = 0}}),
      {"communication"}, {"not normal", "±0\\.0000"});
  add(all, "41 three runs, 2 % noise", "linear communication",
      made({communicating([](double n) { return 0.06 * (n - 1); }),
            {.sizes = {1, 2, 3, 4}, .runs = 3},
            {.run = 0.02}}),
      {}, {kBound});
  add(all, "30 unlike numbers of runs", "4 replicas have 7 runs, one has 3",
      changed({[](double n) { return Parts{.compute = kOne / n * (1 + 0.05 * (n - 1))}; },
               {.runs = 7},
               {.run = 0.02}},
              [](Json& record, int replicas, int round) {
                if (round > std::map<int, int>{{1, 3}, {2, 5}, {4, 7}, {8, 4}}.at(replicas))
                  fail(record);
              }),
      {}, {"^above_ideal: "});
}

void add_noise(std::vector<NamedSet>& all) {
  const std::vector<std::string> no_claims = {
      "points of efficiency are gained \\[[^\\]]*\\](?!, which cannot be distinguished from noise)",
      "points of efficiency are lost \\[[^\\]]*\\](?!, which cannot be distinguished from noise)"};
  for (const int runs : {3, 5}) {
    add(all, (runs == 3 ? "09" : "10") + (" ideal, noise 5 %, " + std::to_string(runs)) + " runs",
        "ideal", made({ideal_parts, {.runs = runs}, {.run = 0.05}}), {}, no_claims);
  }
  add(all, "11 heavy tails", "constant communication of 5 %",
      made({communicating([](double) { return 0.05; }),
            {},
            {.run = 0.02, .tails = Tails::student2}}),
      {}, {kBound});
  add(all, "15 two modes", "ideal, clocks 12 % apart",
      made({ideal_parts, {.runs = 10}, {.run = 0.003, .tails = Tails::two_modes}}), {}, no_claims);
  add(all, "17 runs that resemble each other", "ideal, AR 0.9 over rounds",
      made({ideal_parts, {}, {.run = 0.04, .resemblance = 0.9}}), {}, no_claims,
      kRoundsIndependent);
  add(all, "27 one outlier", "ideal; one run of 2 replicas took 20 times as long",
      made({ideal_parts,
            {},
            with_event(0.01,
                       [](const Place& place) {
                         return place.replicas == 2 && place.round == 3 ? 20.0 : 1.0;
                       })}),
      {}, {"may hide up to [2-9][0-9]\\.[0-9] points", "fastest by its mean"});
  add(all, "34 busy runs", "2 of 5 runs of 4 replicas are on a busy machine",
      changed({ideal_parts,
               {},
               with_event(0.01,
                          [](const Place& place) {
                            return place.replicas == 4 && place.round % 3 == 2 ? 1.4 : 1.0;
                          })},
              [](Json& record, int replicas, int round) {
                if (replicas == 4 && round % 3 == 2) {
                  record["provenance"]["machine_load"] = {{"busy", true}, {"why", "18 %"}};
                }
              }),
      {"^warning: .*busy"});
  add(all, "42 two equal backends", "equal, noise 2 %",
      together(
          {made({communicating([](double) { return 0.05; }), {.sizes = {1, 2, 4}}, {.run = 0.02}}),
           made({communicating([](double) { return 0.05; }),
                 {.sizes = {2, 4}, .backend = "gloo"},
                 {.run = 0.02}})}),
      {"cannot be distinguished"});
}

void add_order(std::vector<NamedSet>& all) {
  add(all, "12 drift", "ideal; the machine gets slower by 3 % a round",
      made({ideal_parts,
            {.runs = 8},
            with_event(0.004, [](const Place& place) { return 1 + 0.03 * (place.round - 1); })}),
      {"^rounds_trend: "});
  add(all, "13 slow first round", "ideal; the first round of every point is 30 % slower",
      made({ideal_parts,
            {},
            with_event(0.004, [](const Place& place) { return place.round == 1 ? 1.3 : 1.0; })}),
      {"^slow_first_round: "}, {"was the machine busy"});
  add(all, "14 slow first run of the base", "ideal; only the base's first run is cold",
      made({ideal_parts,
            {},
            with_event(0.004,
                       [](const Place& place) {
                         return place.round == 1 && place.replicas == 1 ? 1.3 : 1.0;
                       })}),
      {"round 1|first r(ound|un)"}, {"was the machine busy"});
  Made bad_node{ideal_parts, {}, with_event(0.01, [](const Place& place) {
                  return place.replicas == 8 ? 1.3 : 1.0;
                })};
  bad_node.noise.host = [](const Place& place) {
    return place.replicas == 8 ? "node07" : "node01";
  };
  add(all, "18 a node of its own", "8 replicas ran on a slow node, the others on another",
      made(bad_node), {"ran only on node07, no other row did"});
  const Made session{ideal_parts, {}, {.run = 0.005}};
  Made slower = session;
  slower.design.first_session = 2;
  slower.noise = with_event(0.005, [](const Place&) { return 1.1; });
  add(all, "28 two sessions", "the second is 10 % slower throughout",
      together({made(session), made(slower)}), {"^sessions_differ: "});
  slower.noise =
      with_event(0.005, [](const Place& place) { return place.replicas == 8 ? 1.2 : 1.0; });
  add(all, "29 two sessions, one point", "8 replicas are slower in the second only",
      together({made(session), made(slower)}), {"^sessions_differ: "},
      {"compute: [^?]*points of efficiency are lost", "^grows: "});
}

void add_records(std::vector<NamedSet>& all) {
  add(all, "08 a late rank", "rank 1 is 20 % slower",
      changed({communicating([](double) { return 0.002; }), {.sizes = {1, 2, 4}}},
              [](Json& record, int replicas, int) {
                if (replicas == 1) return;
                Json& phases = record["phases"];
                const double compute = phases[1]["backward"];
                const double late = 0.2 * 2 * compute;
                for (std::size_t rank = 0; rank < phases.size(); ++rank) {
                  const char* part = rank == 1 ? "backward" : "communication";
                  phases[rank][part] = phases[rank][part].get<double>() + late;
                  phases[rank]["step"] = phases[rank]["step"].get<double>() + late;
                }
                record["timing"]["fit_seconds"] =
                    record["timing"]["fit_seconds"].get<double>() + late;
                record["straggler"] = {{"rank", 1},
                                       {"host", "node01"},
                                       {"phase", "backward"},
                                       {"excess_seconds_per_step", late / 100},
                                       {"share_of_step", 0.166}};
              }),
      {"rank 1"});
  add(all, "19 two types of scaling", "fixed epochs and weak scaling in one folder",
      together({made({ideal_parts, {.runs = 3}}),
                made({.parts = [](double) { return Parts{.compute = kOne}; },
                      .design = {.sizes = {2, 4}, .runs = 3, .first_session = 2},
                      .scaling = Scaling::weak})}),
      {"weak"}, {"^refused"});
  add(all, "21 weak scaling, another batch at 8", "the batch of a replica is halved at 8",
      changed({.parts = [](double n) { return Parts{.compute = kOne * (n == 8 ? 0.6 : 1)}; },
               .scaling = Scaling::weak},
              [](Json& record, int replicas, int) {
                if (replicas != 8) return;
                record["parameters"]["batch_per_replica"] = 32;
                record["throughput"]["samples"] = record["throughput"]["samples"].get<double>() / 2;
              }),
      {"8 replicas|gpus=8"});
  add(all, "31 two machines", "1 and 2 on one machine, 4 and 8 on another, twice as fast",
      changed(
          {ideal_parts,
           {},
           with_event(0.01, [](const Place& place) { return place.replicas >= 4 ? 0.5 : 1.0; })},
          [](Json& record, int replicas, int) {
            if (replicas >= 4) record["provenance"]["cpu_model"] = "Another CPU";
          }),
      {"machine"}, {"^above_ideal: ", "^speed_ups: .*8 replicas"});
  add(all, "32 failed runs", "2 of 5 runs of 8 replicas failed, and all of 4",
      changed({ideal_parts},
              [](Json& record, int replicas, int round) {
                if (replicas == 4 || (replicas == 8 && round % 2 == 0)) fail(record);
              }),
      {"(2|3) of 5 runs"});
  add(all, "33 resumed and oversubscribed", "8 replicas only oversubscribed, one run of 2 resumed",
      changed({ideal_parts,
               {},
               with_event(0.01,
                          [](const Place& place) {
                            return place.replicas == 2 && place.round == 3 ? 0.3 : 1.0;
                          })},
              [](Json& record, int replicas, int round) {
                if (replicas == 8) record["flags"]["oversubscribed"] = true;
                if (replicas == 2 && round == 3) record["flags"]["resumed"] = true;
              }),
      {}, {"the speed-ups lie within"},
      "lie within.*oversubscribed|oversubscribed.*lie within|lie within.*only disturbed");
  add(all, "38 lower accuracy", "accuracy falls by 2 points at 8",
      changed({[](double n) { return Parts{.compute = kOne / n * (1 + 0.05 * (n - 1))}; }},
              [](Json& record, int replicas, int round) {
                record["quality"]["test_accuracy"] =
                    0.97 - (replicas == 8 ? 0.02 : 0) + 0.0005 * round;
              }),
      {"lower accuracy|accuracy"},
      {"^(?!.*(lower|worse|accuracy)).*speed-up [0-9./ ]+ for 2, 4, 8 replicas"});
}

}  // namespace

const std::vector<NamedSet>& named_sets() {
  static const std::vector<NamedSet> all = [] {
    std::vector<NamedSet> sets;
    add_laws(sets);
    add_few_runs(sets);
    add_noise(sets);
    add_order(sets);
    add_records(sets);
    add_compared(sets);
    return sets;
  }();
  return all;
}

}  // namespace paceline::laboratory
