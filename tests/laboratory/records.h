// Records of studies by a law, with noise and events.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/random.h"
#include "results/store.h"
#include "tests/laboratory/law.h"

namespace paceline::laboratory {

enum class Tails { normal, student2, student3, two_modes };

// Where a run stands in a study.
struct Place {
  int replicas = 1;
  int session = 1, round = 1;
  int position = 0;  // of its session's runs, in time
};

// Standard deviations of logarithms.
struct Noise {
  double run = 0.01;
  Tails tails = Tails::normal;  // of a run; two modes are 12 % apart
  double parts = 0;             // of each part of a run by itself
  double round = 0;             // shared by the runs of a round
  double session = 0;           // shared by the runs of a session
  double point_of_session = 0;  // of a point within a session
  double placement = 0;         // of a point, the same in all sessions
  double resemblance = 0;       // correlation of a point's runs in neighbouring rounds
  double busy = 0;              // share of runs that take 1.3 to 2 times as long
  bool is_busy_recorded = false;
  double hangs = 0, hang = 2;  // share of runs that hang, and how many times as long they take
  double diverges = 0;         // share of runs that learn nothing
  double accuracy = 0.001;     // on the test set; the standard deviation itself
  // What else happens: a factor of the time. Empty: nothing.
  std::function<double(const Place&)> event{};
  // Runs recorded as busy; what they take longer is the event's.
  std::function<bool(const Place&)> recorded_busy{};
  std::function<std::string(const Place&)> host{};
  std::function<double(const Place&)> mean_accuracy{};  // else 0.97
  std::function<double(const Place&)> least_mhz{};
};

// Of studies whose rounds drift: three times as much as runs vary, which ratios do not see.
Noise of_runs(double run, bool rounds = true);

// Of the sizes of a round in time. sequential: size after size, without rounds.
enum class Order { shuffled, fixed, sequential };

struct Design {
  std::vector<int> sizes = {1, 2, 4, 8};
  std::string backend = "mpi";
  int runs = 5, sessions = 1;
  int first_session = 1, first_round = 1;
  bool rounds = true;  // runs of one repeat share a round
  bool phases = true;  // are in the records
  Order order = Order::shuffled;
  // Of a point in a session; else `runs`, the most.
  std::function<int(int replicas, int session)> count_runs{};
  int per_node = 0;                  // replicas of a node; 0: all of them
  Json parameters = Json::object();  // that the points have beside the others
  // Runs of a point end when its interval is at most this share wide on each side; 0: `runs`.
  double until_precision = 0;
  std::size_t most_runs = 30, first_runs = 3;
};

// One study. The same seed gives the same study.
std::vector<Json> make_records(const Law& law, const Design& design, const Noise& noise,
                               std::uint32_t seed);

StoreContent make_content(const std::vector<Json>& records);
StoreContent make_content(const Law& law, const Design& design, const Noise& noise,
                          std::uint32_t seed);

// "2026-01-02T0300", of the second session.
std::string session_name(int session);

// A run that is not noise alone.
double heavy_tail(RandomSequence& random, Tails tails);

}  // namespace paceline::laboratory
