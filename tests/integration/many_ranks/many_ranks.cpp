// many_ranks N SECONDS: how long N ranks take to find each other, to compare what they must have in
// common, to hear of one that died, and how long a post-mortem of them takes. Fails past the
// limits.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "tests/integration/many_ranks/remains.h"
#include "tests/integration/many_ranks/world.h"

namespace paceline {
namespace {

constexpr double kMostMegabytes = 200;
constexpr std::size_t kMostFaults = 5;

class Limits {
 public:
  void check(const std::string& what, double value, const char* unit, double most) {
    const bool ok = value <= most;
    fmt::print("{:<58} {:>8.3f} {}{}\n", what, value, unit,
               ok ? "" : fmt::format(": over the limit of {:g}", most));
    if (!ok) ++over_;
  }
  void fault(const std::string& words) {
    fmt::print("{}\n", words);
    ++over_;
  }
  bool kept() const { return over_ == 0; }

 private:
  int over_ = 0;
};

int run(int ranks, double most_seconds) {
  Limits limits;
  const int victim = ranks * 7 / 10;
  const RemainsFigures artifacts = judge_artifacts(ranks, victim);
  const WorldFigures world = run_world(ranks);
  fmt::print("{} ranks\n", ranks);
  limits.check("all have joined the store", world.joined, "s", most_seconds);
  limits.check("all have met", world.met, "s", most_seconds);
  limits.check("all have compared configuration and cards", world.agreed, "s", most_seconds);
  limits.check("a rank's other configuration is named by all, after", world.differed, "s",
               most_seconds);
  limits.check("memory of rank 0, which hosts the store", world.rank0_mb, "MB", kMostMegabytes);
  limits.check("its open files", world.rank0_descriptors, "", 2.0 * ranks + 100);
  limits.check("a killed rank is named by all, after", world.heard, "s", most_seconds);
  limits.check("cards of all ranks compared", check_cards(ranks), "s", most_seconds / 10);
  limits.check("verdict from the files of all ranks", artifacts.judged, "s", most_seconds);
  limits.check("memory for it", artifacts.peak_mb, "MB", kMostMegabytes);
  const std::string named = fmt::format("rank {} on n{:04} ", victim, victim / 8);
  if (artifacts.line.find(named) == std::string::npos)
    limits.fault("the verdict is: " + artifacts.line);
  for (std::size_t i = 0; i < std::min(kMostFaults, world.faults.size()); ++i) {
    limits.fault(world.faults[i]);
  }
  if (world.faults.size() > kMostFaults)
    fmt::print("and {} more\n", world.faults.size() - kMostFaults);
  return limits.kept() ? 0 : 1;
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  const auto ranks = argc == 3 ? paceline::to_integer(argv[1]) : std::nullopt;
  const auto seconds = argc == 3 ? paceline::to_real(argv[2]) : std::nullopt;
  if (!ranks || !seconds || *ranks < 8 || *ranks > 100000) {
    fmt::print(stderr, "many_ranks RANKS SECONDS\n");
    return 64;
  }
  try {
    return paceline::run(static_cast<int>(*ranks), *seconds);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 70;
  }
}
