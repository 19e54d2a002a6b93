// Work and what bounds it, timed in turns, so that what disturbs the machine disturbs both.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>

#include "tests/bench/bound.h"

namespace paceline::bench {

// The benchmark's loop around `work`, of which a call does `amount` in the bound's unit. A *turn*
// is about a millisecond of calls of the work and then as long of the bound, each after one call
// that is not timed, so that either finds its own data in the caches. The counter `bound` is the
// median over turns of the bound's time for that amount over the work's: 1 is as fast as can be,
// 0.5 takes twice as long. To be registered with UseManualTime().
void take_turns(benchmark::State& state, const std::function<void()>& work, double amount,
                Bound& bound);

// The same without a bound, where none was found.
void take_turns(benchmark::State& state, const std::function<void()>& work);

}  // namespace paceline::bench
