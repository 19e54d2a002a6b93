// How long ranks wait for each other: options of `train` and `bench`, and variables for runs whose
// command is not at hand (a sweep's).
#pragma once

#include <string>

#include "engine/comm/communicator.h"
#include "engine/core/environment.h"

namespace CLI {
class App;
}

namespace paceline {

// As typed; empty: not given.
struct DeadlineTexts {
  std::string warn, abort, start, first_sum;
};
// `start`: where there are steps.
void add_deadlines(CLI::App& verb, DeadlineTexts& texts, bool start);

// An option goes before its variable (PACELINE_WARN_SECONDS, ..._ABORT_..., ..._START_...,
// ..._FIRST_SUM_...), and that before the default: 30 s and 120 s, until the first step has ended
// five times the latter, at least 600 s, and 30 s for the first sum. A shorter deadline shortens an
// unsaid warning to a quarter of it. Throws usage.
Deadlines deadlines_of(const DeadlineTexts& texts, const Environment& environment);

}  // namespace paceline
