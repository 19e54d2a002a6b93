// What a run's energy says, and where rows can be compared by it.
#pragma once

#include <optional>
#include <string>

#include "analysis/statistics/statistics.h"
#include "analysis/study/study.h"

namespace paceline {

inline constexpr double kWattHour = 3600;  // joules

// Of training, without evaluation and checkpoints; idle power is part of it. Empty: not known.
std::optional<double> energy_joules(const Run& run);
std::optional<double> joules_per_sample(const Run& run);
std::optional<double> energy_seconds(const Run& run);  // for which the meters ran
std::optional<double> idle_watts(const Run& run);
std::optional<double> joules_beside_training(const Run& run);  // evaluation and checkpoints
// Joules times seconds (energy-delay product).
std::optional<double> energy_delay(const Run& run);

// "GPUs + CPUs", "node, shared with other jobs". "unlike": not the same for all runs. Empty: no run
// has an energy.
std::string energy_covers(const Row& row);

// Samples per joule of `row` over those of `base`. Empty unless the same meters cover both, and
// nobody else.
std::optional<Ratio> energy_efficiency(const Row& base, const Row& row);

// Why runs have no figure: "12 runs without a meter". Empty: all have one.
std::string missing_energy(const Study& study);

// Meters of the same thing that differ by more than a tenth: "GPUs: GPU power counts 12 % more than
// GPU counter (5 runs)". May be empty.
std::string unlike_meters(const Study& study);

}  // namespace paceline
