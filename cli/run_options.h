// Options of verbs that start ranks.
#pragma once

#include <map>
#include <string>

#include "engine/comm/communicator.h"
#include "engine/core/environment.h"
#include "results/parameters.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace paceline {

// All parameters of a run as options of `train`, in groups by task.

class ParameterTexts {
 public:
  void add_to(CLI::App& verb);
  Point parse() const;  // those that were given; throws usage

 private:
  std::map<std::string, std::string> texts_;  // by name, as typed
  CLI::Option* tensorboard_ = nullptr;        // its value may be left out
};

// How long ranks wait for each other: options of `train` and `bench`, and environment variables for
// runs that others start (a sweep).

// As typed. Empty: not given.
struct DeadlineTexts {
  std::string warn, abort, start, first_sum;
};
// `start`: the verb has steps, so it has the start deadline too.
void add_deadlines(CLI::App& verb, DeadlineTexts& texts, bool start);

// An option wins over its variable (PACELINE_WARN_SECONDS, ..._ABORT_..., ..._START_...,
// ..._FIRST_SUM_...), and the variable over the default. Defaults: warn at 30 s; abort at 120 s;
// until the end of the first step abort at five times that, at least 600 s; 30 s for the first sum.
// A shorter abort deadline reduces a default warning to a quarter of it. Throws usage.
Deadlines parse_deadlines(const DeadlineTexts& texts, const Environment& environment);

}  // namespace paceline
