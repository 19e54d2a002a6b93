// Sets in which something recorded, beside the size or the setting, differs between runs.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/laboratory/made.h"
#include "tests/laboratory/page.h"

namespace paceline::laboratory {

namespace {

const char* const kLoses =
    "points of efficiency are (lost|gained) \\[[^\\]]*\\](?!, which cannot be distinguished|; its "
    "cause may be)";
const char* const kVerdict = "^verdict: .*: (faster|slower)$";
const char* const kWarmUp = "first [a-z0-9 ]*steps (take|took|are)|warms? up|warming";
const char* const kOrder = "after (the other|each other|another)|time of day|in the same order";

Made setting(const char* name, const Json& value, double seconds) {
  return {[seconds](double n) { return Parts{.compute = seconds / n}; },
          {.sizes = {4}, .parameters = {{name, value}}},
          {.run = 0.01}};
}

Made with_accuracy(Made each, int runs, std::function<double(const Place&)> accuracy) {
  each.design.runs = runs;
  each.noise.mean_accuracy = std::move(accuracy);
  return each;
}

// Runs of some places on node07, where they take so many times as long.
Made on_node07(Made each, double times, const std::function<bool(const Place&)>& is_there) {
  each.noise.event = [=](const Place& place) { return is_there(place) ? times : 1.0; };
  each.noise.host = [=](const Place& place) { return is_there(place) ? "node07" : "node01"; };
  return each;
}

Made losing(double share, const Design& design = {}, double run = 0.005) {
  return {communicating([share](double n) { return share * (n - 1); }), design, {.run = run}};
}

void add_quality(std::vector<NamedSet>& all) {
  add(all, "43 the fastest trains worse", "lamb is 10 % faster and trains to 90 instead of 97 %",
      together({made(setting("optimizer", "adam", 240)), made(setting("optimizer", "sgd", 240)),
                made(with_accuracy(setting("optimizer", "lamb", 216), 5,
                                   [](const Place&) { return 0.9; }))}),
      {"lower accuracy"}, {"fastest: [^;(]*lamb", "^verdict: .*lamb: faster$"});
  add(all, "44 diverged runs", "2 of 6 runs of 8 replicas learn nothing",
      made(with_accuracy(losing(0.01), 6,
                         [](const Place& place) {
                           return place.replicas == 8 && place.round % 3 == 2 ? 0.1 : 0.97;
                         })),
      {"trained as well|lower accuracy|diverge"},
      {"^verdict: 8 replicas[^:]*: (faster|slower)$", "fastest: [^;(]*8 replicas"});
  add(all, "45 open accuracy", "8 replicas train worse by about half a point, in 3 runs",
      made(with_accuracy(losing(0.01), 3,
                         [](const Place& place) {
                           const double of_eight[] = {0.966, 0.955, 0.968};
                           return place.replicas == 8 ? of_eight[place.round - 1] : 0.97;
                         })),
      {"trained as well|lower accuracy"}, {"^verdict: 8 replicas[^:]*: (faster|slower)$"});
}

void add_nodes(std::vector<NamedSet>& all) {
  add(all, "46 a slow node in some runs", "every other run of 8 replicas was on a slow node",
      made(on_node07(
          {ideal_parts, {.runs = 6}, {.run = 0.005}}, 1.2,
          [](const Place& place) { return place.replicas == 8 && place.round % 2 == 0; })),
      {"node07.*1\\.(1[5-9]|2[0-5]?)|node07.*(1[5-9]|2[0-5])(\\.[0-9])? %"}, {kLoses});
  add(all, "47 a fast node of its own", "65 % efficiency of 8 replicas, which had a faster node",
      made(on_node07(losing(0.077), 0.8, [](const Place& place) { return place.replicas == 8; })),
      {"^sheet: .*node07", "ran only on node07"},
      {"^sheet: .*8 replicas.*: the largest size whose"}, "^sheet: .*node07");
  add(all, "48 one size on one node and on two", "a second node costs 20 %",
      together({made({ideal_parts, {.sizes = {1, 2}, .per_node = 8}, {.run = 0.005}}),
                made({communicating([](double) { return 0.2; }), {.sizes = {2}, .per_node = 1}})}),
      {"2 nodes"}, {"^twice: "});
  add(all, "49 knee at a node", "nothing is lost on one node, 23 % on several",
      made({communicating([](double n) { return n > 4 ? 0.3 : 0; }),
            {.sizes = {1, 2, 4, 8, 16}, .per_node = 4},
            {.run = 0.005}}),
      {"[24] nodes|second node|several nodes|between nodes"},
      {"^peak: ", "cannot exceed", "on 16 replicas: more than in proportion"});
}

void add_sessions(std::vector<NamedSet>& all) {
  Made unequal{ideal_parts,
               {.sizes = {1, 4, 8}, .runs = 6, .sessions = 2},
               with_event(0.005, [](const Place& place) { return place.session == 2 ? 1.15 : 1; })};
  unequal.design.count_runs = [](int replicas, int session) {
    return (replicas == 1) == (session == 1) ? 6 : 1;
  };
  add(all, "50 sessions of unequal shares", "the second session, of most runs of 8, is slower",
      made(unequal), {"no loss beyond the noise"}, {kLoses, "^above_ideal: "});
  const auto drifting = [](Order order, double by) {
    return Made{ideal_parts, {.order = order}, with_event(0.003, [by](const Place& place) {
                  return 1 + by * place.position;
                })};
  };
  add(all, "51 size after size", "the machine slows by 0.5 % a run",
      made(drifting(Order::sequential, 0.005)), {kOrder}, {kLoses, "computing a sample takes"});
  add(all, "52 always in the same order", "the machine slows by 1 % a run",
      made(drifting(Order::fixed, 0.01)), {kOrder}, {kLoses, "computing a sample takes"});
  add(all, "53 a step in the rounds", "all are 8 % slower from round 7 on",
      made({ideal_parts,
            {.runs = 12},
            with_event(0.005, [](const Place& place) { return place.round >= 7 ? 1.08 : 1.0; })}),
      {"from round 7"}, {"times (rise|fall) by"}, "from round 7");
  add(all, "54 each machine has its session", "two machines, of two sessions",
      together({made({ideal_parts, {.sizes = {1, 2, 4}}}),
                changed({ideal_parts, {.sizes = {1, 2, 4}, .first_session = 2}},
                        [](Json& record, int, int) {
                          record["provenance"]["cpu_model"] = "Another CPU";
                        })}),
      {"Another CPU"}, {"how sessions differ is in the ratios"});
}

void add_machines(std::vector<NamedSet>& all) {
  Made throttled{ideal_parts, {}, with_event(0.005, [](const Place& place) {
                   return place.replicas < 4 ? 1.25 : 1.0;
                 })};
  throttled.noise.least_mhz = [](const Place& place) { return place.replicas < 4 ? 2400 : 3000; };
  add(all, "55 clocks fall in long runs", "runs of 1 and 2 replicas had a lower clock",
      made(throttled), {"MHz|clock"}, {"fit into its cache\\?$"});
  add(all, "56 warm-up in the steps", "the first 5 steps of each run take three times as long",
      made({[](double n) { return Parts{.compute = kOne / n + 10, .warm_up = 10}; },
            {.sizes = {1, 2, 4}},
            {.run = 0.005}}),
      {kWarmUp}, {"computing a sample takes 1\\.[1-9][^?]*$"}, kWarmUp);
  const auto busy = [](const Place& place) { return place.replicas == 4 && place.round != 3; };
  Made disturbed{ideal_parts, {.sizes = {1, 2, 4}}, with_event(0.005, [busy](const Place& place) {
                   return busy(place) ? 1.3 : 1.0;
                 })};
  disturbed.noise.recorded_busy = busy;
  const auto program = [](const char* name) {
    return [name](Json& record, int, int) { set_program(record, name); };
  };
  add(all, "57 a disturbed majority", "4 of 5 runs of a on 4 replicas were on a busy machine",
      together({changed(disturbed, program("a")),
                changed({ideal_parts, {.sizes = {4}}, {.run = 0.005}}, program("b"))}),
      {"busy"}, {"trimmed.*speed-up [^;]*3\\.[012]", "^against: .*program b[^:]*: 1\\.[123]"},
      "without runs on a busy machine|busy reference|reference.*busy");
  add(all, "58 a slow base", "the base is 30 % slow, 8 replicas are 65 % efficient",
      made({[](double n) {
              return Parts{.compute = kOne / n * (n == 1 ? 1.3 : 1),
                           .communication = kOne / n * 0.077 * (n - 1)};
            },
            {},
            {.run = 0.005}}),
      {"^sheet: .*(base slow|1\\.[23][0-9]? times|above (the )?ideal|a base that computes)"});
  add(all, "59 late in most runs", "rank 3 is late in 3 of 5 runs, rank 1 in the others",
      changed(losing(0.05),
              [](Json& record, int replicas, int round) {
                if (replicas < 4) return;
                record["straggler"] = {{"rank", round <= 3 ? 3 : 1},
                                       {"host", "node01"},
                                       {"phase", "backward"},
                                       {"excess_seconds_per_step", 0.2},
                                       {"share_of_step", 0.166}};
              }),
      {"3 of 5 runs"});
}

void add_rivals(std::vector<NamedSet>& all) {
  add(all, "60 input for six replicas", "8 and 16 replicas wait for one reader",
      made({[](double n) {
              return Parts{.compute = kOne / n, .input = std::max(0.0, kOne / 6 - kOne / n)};
            },
            {.sizes = {1, 2, 4, 8, 16}},
            {.run = 0.003}}),
      {"input"}, {"^peak: "});
  std::vector<Records> equal;
  for (int i = 1; i <= 8; ++i) equal.push_back(made(setting("bucket_mb", i, 240)));
  add(all, "61 equal settings", "none of eight is faster", together(equal),
      {"cannot be distinguished"}, {kVerdict});
}

void add_controls(std::vector<NamedSet>& all) {
  Made healthy = losing(0.02, {.runs = 4, .sessions = 3}, 0.01);
  healthy.noise.session = 0.01;
  healthy.noise.host = [](const Place& place) {
    return "node0" + std::to_string(1 + (3 * place.replicas + 7 * place.round + place.session) % 4);
  };
  healthy.noise.least_mhz = [](const Place& place) {
    return 3000 + 10 * ((5 * place.replicas + 3 * place.round) % 7);
  };
  add(all, "62 control: nodes, clocks and sessions", "they differ, and change nothing",
      made(healthy), {"communication"},
      {"node0[1-4].*(times as long|slower|faster)|ran only on", "MHz|clock", kOrder,
       "trained as well|lower accuracy", "^twice: ", "^rounds_trend: "});
  add(all, "63 control: a fixed order", "nothing drifts; 8 replicas communicate",
      made(losing(0.02, {.order = Order::fixed})), {"communication"}, {"^rounds_trend: "});
}

}  // namespace

void add_compared(std::vector<NamedSet>& all) {
  add_quality(all);
  add_nodes(all);
  add_sessions(all);
  add_machines(all);
  add_rivals(all);
  add_controls(all);
}

}  // namespace paceline::laboratory
