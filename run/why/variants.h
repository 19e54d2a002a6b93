// The programs whose runs `why` compares: as it is, and with one cost taken away or one setting
// changed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/why/why.h"
#include "engine/core/json.h"
#include "results/import/kineto.h"

namespace paceline {

// Steps before those that are measured.
inline constexpr int kWarmSteps = 34;
// Of a run that counts.
inline constexpr int kFewestCounted = 10, kFewestTurns = 2;

struct Variant {
  std::string name;     // in the evidence
  std::string changes;  // of the hook's settings: a JSON object
  int replicas = 1;
  std::string of_cause = {};  // of a setting: the cause after which it is tried
  std::string text = {};      // of a setting: "2 loader workers instead of 0"

  bool is_try() const { return !of_cause.empty(); }
  // The hook leaves one replica alone where a point has one.
  std::string program() const { return name == kAlone || name == kAloneOnce ? kAsItIs : name; }
};

// What the first runs leave open, the program as it is first. `notes` gets what cannot be measured.
std::vector<Variant> choose_variants(const MeasuredRun& seen,
                                     const std::optional<MeasuredRun>& alone, int cpus,
                                     std::vector<std::string>& notes);

// Those of `variants` that steps of one process can be in turns with the program as it is: what
// differs from process to process, and from one minute to the next, is the same for all of them.
// Where a step is like the others, on CPUs, and DDP makes few buckets. With one replica `alone`
// too, if it does as much work as one of them, while the others wait; else it is a run of its own.
std::vector<Variant> take_turns(const std::vector<Variant>& variants, const MeasuredRun& seen,
                                const std::optional<MeasuredRun>& alone);

// Whether all of so many programs took theirs, one alone at about the cost that it has by itself.
bool took_turns(const MeasuredRun& run, std::size_t programs,
                const std::optional<MeasuredRun>& alone);

// Batches and the values that the host reads are recorded in the steps before the measured ones.
// Where no program needs them, a second of steps will do: in the hook's settings and in those of
// variants.
void shorten_warm_up(std::vector<Variant>& variants, Json& settings, const MeasuredRun& seen);

// Whether samples are as large as there, to within the least cost that is named.
bool is_as_large_as(const MeasuredRun& run, const MeasuredRun& seen);

// Empty if the run, of a program with these changes, counts. Where it may have counted another
// module than the first run, it is without samples then.
std::string why_not_counted(MeasuredRun& run, const MeasuredRun& seen, const std::string& program,
                            const std::string& changes);

// "In 5 profiled steps rank 1, the slowest, took 12 ms for one: 61 % computing, ..."
std::string describe_profile(const KinetoRun& trace);

// A word of the user's, which holds no placeholder of a program's.
std::string escape_placeholders(const std::string& word);

}  // namespace paceline
