#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <map>
#include <set>

#include "analysis/findings/findings.h"
#include "analysis/study/contrast.h"
#include "analysis/study/scaling_series.h"
#include "engine/core/text.h"
#include "engine/facts/timing.h"
#include "results/parameters.h"

namespace paceline {

namespace {

constexpr double kUnlikeMeans = 0.01;          // arithmetic over geometric, less 1
constexpr double kUnlikeLengths = 1.1;         // the longest run over the shortest
constexpr double kLongTail = 1.25;             // the mean step over the median
constexpr double kAboveIdeal = 1.02;           // a speed-up without an interval over the replicas
constexpr double kFarApart = 2;                // a size over the one before it on a line
constexpr std::size_t kLeastForNormality = 5;  // times
constexpr double kNotNormal = 0.01;            // p-value

// `has_single`: there is a run of one replica, which --base best could choose.
std::string suggest_base(const Base& base, bool has_single, bool has_backends) {
  switch (base.kind) {
    case Base::matched:
      if (!has_single) return "run one replica, too, or compare with --base smallest";
      return fmt::format("run one replica {} CPUs, or compare with --base best",
                         has_backends ? "of the same backend and" : "with the same");
    case Base::best:
      return "run one replica, or compare with --base smallest";
    case Base::smallest:
    case Base::setting:
      break;
  }
  return fmt::format("run {} with them, too", base.text());
}

class Checker {
 public:
  Checker(const Study& study, const Comparison& comparison, const std::vector<RowFacts>& facts)
      : study_(study), comparison_(comparison), facts_(facts) {}

  std::vector<BrokenRule> check() {
    check_base();
    check_subset();
    check_means();
    check_averaged_ratios();
    check_spread();
    check_normality();
    check_comparisons();
    check_tails();
    check_setup();
    check_clock();
    check_bounds();
    check_lines();
    return std::move(broken_);
  }

 private:
  void add(int rule, const std::string& what, const std::string& fix) {
    broken_.push_back({rule, what, fix});
  }

  // A study of one size compares settings and needs no speed-up.
  void check_base() {
    if (study_.scaling == Scaling::one_size) return;
    const std::size_t without = count_where(facts_, [](const RowFacts& row) {
      return row.run()->layout.gpus > 1 && !row.speed_up && reached_goal(*row.row);
    });
    if (without == 0) return;
    // Whether each system of a row without a base has one.
    const bool has_single = std::all_of(facts_.begin(), facts_.end(), [&](const RowFacts& row) {
      return row.speed_up || std::any_of(facts_.begin(), facts_.end(), [&](const RowFacts& one) {
               return one.run()->layout.gpus == 1 && one.run().system == row.run().system;
             });
    });
    add(1, counted(without, "row") + " of several replicas without a base",
        suggest_base(comparison_.base, has_single, !facts_.front().run().backend.empty()));
  }

  void check_subset() {
    if (!study_.chosen.empty()) {
      add(2, "only a part of the records is shown (" + study_.chosen + ")",
          "say why the others do not matter");
    }
    if (!study_.gaps.empty()) {
      add(2, counted(study_.gaps.size(), "point") + " without a result",
          "run them, or say why not");
    }
  }

  void check_means() {
    double most = 0;
    std::size_t unlike = 0;
    for (const RowFacts& row : facts_) {
      const std::vector<double> times = known_values(row.row->runs, &Run::fit_seconds);
      if (times.size() < 2) continue;
      double sum = 0;
      for (const double time : times) sum += time;
      const double off = sum / static_cast<double>(times.size()) / geometric_mean(times).value - 1;
      if (off > kUnlikeMeans) ++unlike;
      most = std::max(most, off);
    }
    if (unlike == 0) return;
    add(3,
        fmt::format("the arithmetic mean of {} is up to {:.1f} % above the geometric one",
                    counted(unlike, "row"), 100 * most),
        "look at the slowest runs: was the machine busy?");
  }

  void check_averaged_ratios() {
    const std::size_t rows = count_where(facts_, [](const RowFacts& row) {
      const std::vector<double> times = known_values(row.row->runs, &Run::fit_seconds);
      if (!row.utilization || times.size() < 2) return false;
      const auto [least, most] = std::minmax_element(times.begin(), times.end());
      return *most > kUnlikeLengths * *least;
    });
    if (rows == 0) return;
    add(4, "GPU utilization is averaged over runs of different length in " + counted(rows, "row"),
        "judge by " + study_.unit.rate());
  }

  void check_spread() {
    const std::size_t single =
        count_where(facts_, [](const RowFacts& row) { return units_in(*row.row) < 2; });
    if (single > 0) {
      add(5,
          fmt::format("{} of {} {} one {}, so no interval", single, counted(facts_.size(), "row"),
                      single == 1 ? "has" : "have", unit()),
          is_published() ? "publish the spread beside the mean"
                         : more_runs(kFewestRuns) + " or more");
    }
    const std::size_t tainted =
        count_where(facts_, [](const RowFacts& row) { return row.row->tainted; });
    if (tainted > 0) {
      add(5,
          counted(tainted, "row") + " with only resumed, throttled, oversubscribed or traced runs",
          "run them again undisturbed");
    }
  }

  void check_normality() {
    std::size_t few = 0;
    std::vector<double> p;
    for (const RowFacts& row : facts_) {
      std::vector<double> logs;
      const auto times = unit_values(*row.row, [](const Run& run) { return run.fit_seconds(); });
      for (const double time : times) logs.push_back(std::log(time));
      if (logs.size() > 1 && logs.size() < kLeastForNormality) ++few;
      if (logs.size() >= kLeastForNormality) p.push_back(normality(logs));
    }
    p = holm_adjusted(p);
    const std::size_t unlike = count_where(p, [](double each) { return each < kNotNormal; });
    if (few > 0) {
      add(6,
          fmt::format("{} with fewer than {} {}s: too few to check that times are log-normal, as "
                      "intervals assume",
                      counted(few, "row"), kLeastForNormality, unit()),
          more_runs(kLeastForNormality));
    }
    if (unlike > 0) {
      add(6,
          fmt::format("the times of {} are not log-normal (Shapiro-Francia, p < {:g})",
                      counted(unlike, "row"), kNotNormal),
          "look for outliers or two modes among the runs");
    }
  }

  void check_comparisons() {
    WeakEvidence doubt;
    std::size_t doubted = 0;
    for (std::size_t i = 0; i < facts_.size(); ++i) {
      if (!facts_[i].speed_up || facts_[i].speed_up->base == i) continue;
      const Row &base = study_.rows[facts_[i].speed_up->base], &row = *facts_[i].row;
      const WeakEvidence here = find_weak_evidence(base, row);
      if (!here) continue;
      doubt.add(here);
      ++doubted;
    }
    if (doubted == 0) return;
    add(7,
        fmt::format("{} cannot be judged against noise ({})", counted(doubted, "speed-up"),
                    doubt.text()),
        doubt.few     ? more_runs(kFewestRuns) + " or more of the row and of its base"
        : doubt.apart ? "run the row and its base in one session"
                      : "run the row and its base again undisturbed");
  }

  void check_tails() {
    std::size_t rows = 0;
    double most = 0;
    for (const RowFacts& row : facts_) {
      double seconds = 0, steps = 0;
      for (const Run& run : row.row->runs) {
        if (!run.steps()) continue;
        seconds += run.phase_sum->step;
        steps += *run.steps() * run.phase_ranks;
      }
      if (!row.step_seconds || !(steps > 0) || !(*row.step_seconds > 0)) continue;
      const double tail = seconds / steps / *row.step_seconds;
      if (tail > kLongTail) ++rows;
      most = std::max(most, tail);
    }
    if (rows == 0) return;
    add(8,
        fmt::format("in {} some steps are very slow: the mean step is up to {:.1f} times the "
                    "median that is shown",
                    counted(rows, "row"), most),
        "look for what interrupts the ranks (p95 and max of timing.step_seconds)");
  }

  void check_setup() {
    std::set<std::string> missing, machines;
    std::map<std::string, std::set<std::string>> builds;  // of each program
    bool dirty = false, no_commit = false, dirty_program = false;
    for (const RowFacts& row : facts_) {
      for (const Run& run : row.row->runs) {
        find_missing(run, missing);
        if (!run->build().empty()) {
          const std::string tag = run->parameters.text("program").value_or("");
          builds[name_of_program(tag)].insert(run->build());
        }
        if (run->kind == "measured" && !run.system.empty()) machines.insert(run.system);
        dirty = dirty || run->build().ends_with("(dirty)");
        if (!run->provenance.program) continue;
        const ProgramFacts& program = *run->provenance.program;
        no_commit = no_commit || program.commit.empty();
        dirty_program = dirty_program || program.dirty.value_or(false);
      }
    }
    if (!missing.empty()) {
      add(9, "some records do not state: " + join({missing.begin(), missing.end()}, ", "),
          is_published()  ? "state it on the page"
          : is_imported() ? "state what the file does not say with --set on import"
                          : "run them with this version");
    }
    if (dirty)
      add(9, "some runs are of a build with uncommitted changes", "commit, build and run again");
    if (no_commit) {
      add(9, "some runs do not state which version of the program they ran",
          "keep its folder in git");
    }
    if (dirty_program) {
      add(9, "the program's folder had uncommitted changes in some runs", "commit, and run again");
    }
    const bool are_mixed = std::ranges::any_of(
        builds, [](const auto& of_program) { return of_program.second.size() > 1; });
    if (are_mixed) add(9, "runs of several builds stand together", "run all with one build");
    if (machines.size() > 1) {
      add(9, "one table has runs of different machines",
          "report them apart: --only 'system=" + *machines.begin() + "'");
    }
  }

  static void find_missing(const Run& run, std::set<std::string>& missing) {
    const auto want = [&](const char* name) {
      const bool there = std::any_of(run.origin.begin(), run.origin.end(),
                                     [&](const auto& fact) { return fact.first == name; });
      if (!there) missing.insert(name);
    };
    if (run.made_elsewhere()) {
      want("source");
      want("transport");
      if (run.system.empty()) missing.insert("system");
      if (!run.batch_per_replica) missing.insert("batch");
      return;
    }
    if (run->provenance.program) return want("machine");
    for (const char* name : {"machine", "build", "compiler", "library", "transport", "data"}) {
      want(name);
    }
  }

  void check_clock() {
    const std::size_t silent = count_where(facts_, [](const RowFacts& row) {
      const Run& run = row.run();
      return run->kind != "measured" &&
             (run.fit_seconds() ? run->provenance.time_is : run->provenance.rate_is).empty();
    });
    if (silent == 0) return;
    add(10, "nothing says what the time of " + counted(silent, "row") + " includes",
        "state it in provenance.time_is or rate_is");
  }

  void check_bounds() {
    if (const std::size_t above = count_where(facts_, is_above_ideal); above > 0) {
      add(11, counted(above, "row") + " above the ideal line",
          comparison_.base == Base::matched
              ? "look whether the base is slow, or compare with --base best"
              : "look whether the base is slow");
    }
    const std::size_t unknown = count_where(facts_, [](const RowFacts& row) {
      return std::any_of(row.row->runs.begin(), row.row->runs.end(), [](const Run& run) {
        return run->kind == "measured" && !run->provenance.program && !run->probe.flops_per_second;
      });
    });
    if (unknown > 0) {
      add(11, "the most that the machine can do is not recorded in " + counted(unknown, "row"),
          "run them with this version, which measures it");
    }
  }

  void check_lines() {
    double most = 0;
    for (const ScalingSeries& series : make_scaling_series(study_, comparison_, facts_, true)) {
      for (std::size_t i = 1; i < series.groups.size(); ++i) {
        most =
            std::max(most, static_cast<double>(series.groups[i].gpus) / series.groups[i - 1].gpus);
      }
    }
    if (most <= kFarApart) return;
    add(12, fmt::format("lines join sizes that lie up to {:g} times apart", most),
        "run sizes between, or read only the points");
  }

  bool is_pooled() const { return facts_.front().row->pooled; }
  const char* unit() const { return is_pooled() ? "session" : "run"; }
  std::string more_runs(std::size_t count) const {
    return is_published()  ? fmt::format("publish {} runs", count)
           : is_imported() ? fmt::format("import {} runs", count)
                           : fmt::format("run {} {}", count, is_pooled() ? "sessions" : "repeats");
  }
  bool is_imported() const { return facts_.front().run()->kind == "imported"; }
  bool is_published() const { return facts_.front().run()->kind == "published"; }

  const Study& study_;
  const Comparison& comparison_;
  const std::vector<RowFacts>& facts_;
  std::vector<BrokenRule> broken_;
};

}  // namespace

std::string above_ideal_question(const Study& study) {
  return study.causes.are_open ? ": is the base slow, or does the share of each fit into its cache?"
                               : "";
}

bool is_above_ideal(const RowFacts& row) {
  if (!row.speed_up || row.speed_up->ideal <= 1) return false;
  const Estimate& estimate = row.speed_up->ratio.estimate;
  return estimate.interval ? lies_above(*estimate.interval, row.speed_up->ideal)
                           : estimate.value > kAboveIdeal * row.speed_up->ideal;
}

std::vector<BrokenRule> broken_rules(const Study& study, const Comparison& comparison,
                                     const std::vector<RowFacts>& facts) {
  return Checker(study, comparison, facts).check();
}

std::string format_sentence(const BrokenRule& broken) {
  return fmt::format("rule {}: {}; {}", broken.rule, broken.what, broken.fix);
}

std::string summarize(const std::vector<BrokenRule>& broken) {
  const auto rules = distinct(broken, &BrokenRule::rule);
  const std::string whose = "Rules of Hoefler and Belli (SC15): ";
  if (rules.empty()) {
    return whose + fmt::format("{} rules were checked, none is broken", kRules);
  }
  return whose + fmt::format("{} of {} broken", rules.size(), kRules);
}

double normality(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const boost::math::normal standard;
  double mean = 0;
  for (const double value : values) mean += value / n;
  double products = 0, scores = 0, squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double score =
        boost::math::quantile(standard, (static_cast<double>(i) + 0.625) / (n + 0.25));
    products += score * (values[i] - mean);
    scores += score * score;
    squares += (values[i] - mean) * (values[i] - mean);
  }
  if (values.back() - values.front() <= kRounding * std::max(1.0, std::abs(mean))) return 1;
  const double w = std::min(products * products / (scores * squares), 1 - 1e-12);
  const double u = std::log(n), v = std::log(u);
  const double mu = -1.2725 + 1.0521 * (v - u), sigma = 1.0308 - 0.26758 * (v + 2 / u);
  return boost::math::cdf(boost::math::complement(standard, (std::log(1 - w) - mu) / sigma));
}

}  // namespace paceline
