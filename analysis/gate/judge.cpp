#include "analysis/gate/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/evidence/covariates.h"
#include "analysis/gate/quantity.h"
#include "analysis/gate/weigh.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// A point whose runs no longer end well is worse than a slow one.
std::optional<Check> check_of_absence(const Subject& baseline, const Subject* current,
                                      double threshold) {
  if (baseline.runs == 0 || (current && current->runs > 0)) return std::nullopt;
  Check check;
  check.subject = baseline.name;
  check.threshold = threshold;
  check.baseline_runs = baseline.runs;
  if (current && current->left_out > 0) {
    check.reason = fmt::format(
        "no run of the current side counts: {} left out (resumed, throttled, traced or skipped)",
        current->left_out);
    if (current->lost > 0) {
      check.reason += fmt::format(", {} did not end well: {}", current->lost, current->why);
    }
  } else if (current && current->lost >= kFewestRuns && baseline.runs >= kFewestRuns) {
    check.verdict = Verdict::regression;
    check.reason = fmt::format("none of {} runs ended well: {}", current->lost, current->why);
  } else if (current && current->not_ended > 0) {
    check.reason = fmt::format("no run ended well, {} tried: {}", current->not_ended, current->why);
  } else {
    check.reason = "the current side has no run that counts";
  }
  return check;
}

// One-sided, Fisher's: that `of_now` runs of equal builds have `failed_now` failures or more, where
// both sides together have as many as they have.
double p_of_failures(std::size_t failed_before, std::size_t of_before, std::size_t failed_now,
                     std::size_t of_now) {
  const auto log_choose = [](std::size_t n, std::size_t k) {
    const auto log_factorial = [](std::size_t m) {
      return std::lgamma(static_cast<double>(m) + 1);
    };
    return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
  };
  const std::size_t failed = failed_before + failed_now;
  double p = 0;
  for (std::size_t k = failed_now; k <= std::min(failed, of_now); ++k) {
    if (failed - k > of_before) continue;
    p += std::exp(log_choose(of_now, k) + log_choose(of_before, failed - k) -
                  log_choose(of_before + of_now, failed));
  }
  return std::min(1.0, p);
}

// A point of which more runs fail than did.
std::optional<Check> check_of_failures(const Subject& baseline, const Subject& current,
                                       double level, double threshold) {
  if (current.lost == 0 || baseline.runs == 0 || current.runs == 0) return std::nullopt;
  const std::size_t before = baseline.runs + baseline.lost, now = current.runs + current.lost;
  if (p_of_failures(baseline.lost, before, current.lost, now) >= level) return std::nullopt;
  Check check;
  check.subject = baseline.name;
  check.threshold = threshold;
  check.baseline_runs = before;
  check.current_runs = now;
  check.verdict = Verdict::regression;
  check.reason = fmt::format("{} of {} runs did not end well, of the baseline {} of {}: {}",
                             current.lost, now, baseline.lost, before, current.why);
  return check;
}

std::optional<Check> check_of_work(const Subject& baseline, const Subject& current,
                                   double threshold) {
  constexpr double kSame = 0.01;
  if (!(baseline.work > 0 && current.work > 0)) return std::nullopt;
  if (std::abs(current.work / baseline.work - 1) <= kSame) return std::nullopt;
  Check check;
  check.subject = baseline.name;
  check.threshold = threshold;
  check.baseline_runs = baseline.runs;
  check.current_runs = current.runs;
  check.more_rounds_help = false;
  check.reason = fmt::format(
      "a run trains on {:.0f} samples, one of the baseline on {:.0f}: not the same work",
      current.work, baseline.work);
  return check;
}

// What runs have come to that no check speaks of.
std::string failures_note(const Side& side, const Subject& subject) {
  if (subject.lost == 0 || subject.runs == 0) return "";
  return fmt::format("{}: {} of {} runs of {} did not end well: {}", side.name, subject.lost,
                     subject.runs + subject.lost, subject.name, subject.why);
}

// "the machine was busy in 3 of 12 runs of the current, e.g. 18 % of ..."; or nothing.
std::string busy_warning(const Side& side) {
  std::size_t busy = 0, runs = 0;
  std::string why;
  for (const Subject& subject : side.subjects) {
    busy += subject.busy;
    runs += subject.runs;
    if (why.empty()) why = subject.busy_why;
  }
  if (busy == 0) return "";
  return fmt::format("the machine was busy in {} of {} of the {}, e.g. {}", busy,
                     counted(runs, "run"), side.name, why);
}

// Fresh runs of a fixed number hang as seldom as the first ones did: a pass by them alone would be
// half of what is known. Until it is decided, they are enough by themselves.
void keep_in_mind(Check& fresh, const StandingOut& first, bool is_sequential) {
  StandingOut& now = fresh.standing_out;
  if (fresh.verdict != Verdict::pass || is_sequential || !first.is_worse_by(fresh.threshold))
    return;
  const auto before = static_cast<double>(first.rounds), after = static_cast<double>(now.rounds);
  const double change = now.text.empty() ? *fresh.change : now.change;
  const double of_both = (before * first.change + after * change) / (before + after);
  if (of_both < fresh.threshold) return;
  const QuantityInfo& info = quantity_info(fresh.quantity);
  fresh.verdict = Verdict::undecided;
  fresh.is_worse_below_threshold = false;
  fresh.reason = fmt::format(
      "more rounds decide (--until-decided): in the first runs, {}; over first and fresh ones the "
      "mean is {} by {}",
      first.text, worse_word(info), change_text(of_both, info));
}

class Judge {
 public:
  Judge(const Side& baseline, const Side& current, const GateOptions& options)
      : baseline_(baseline), current_(current), options_(options) {}

  Judgement judge() {
    const Matches matches = match_subjects(baseline_, current_, options_.one_spec);
    for (std::size_t i = 0; i < baseline_.subjects.size(); ++i) {
      const auto other = matches.of_baseline[i];
      weigh_subject(baseline_.subjects[i], other ? &current_.subjects[*other] : nullptr);
    }
    if (weighed_.empty()) throw_nothing_common(matches);
    adjust();
    Judgement judgement;
    for (Weighed& each : weighed_) {
      judgement.is_sequential = judgement.is_sequential || each.difference.sequences > 0;
      if (each.check.evidence != Replication::none) decide(each, weighed_.size());
      note_standing_out(each.check);
      judgement.checks.push_back(std::move(each.check));
    }
    judgement.notes = matches.notes;
    judgement.notes.insert(judgement.notes.end(), notes_.begin(), notes_.end());
    for (const auto& [unit, subjects] : rated_) {
      add_note(judgement, subjects, ("compared by " + unit).c_str());
    }
    add_note(judgement, aside_, "only runs of rounds that both sides have are compared");
    for (const auto& [note, subjects] : left_aside_) add_note(judgement, subjects, note.c_str());
    for (const Side* side : {&baseline_, &current_}) {
      if (std::string busy = busy_warning(*side); !busy.empty()) {
        judgement.warnings.push_back(std::move(busy));
      }
      if (side->builds.size() > 1) {
        judgement.notes.push_back(
            fmt::format("the {} has runs of several builds: {}", side->name,
                        join({side->builds.begin(), side->builds.end()}, ", ")));
      }
      judgement.notes.insert(judgement.notes.end(), side->notes.begin(), side->notes.end());
    }
    judgement.warnings.insert(judgement.warnings.end(), one_sided_.begin(), one_sided_.end());
    return judgement;
  }

 private:
  // "mnist-cnn gpus=2 and 13 more points: ..."
  static void add_note(Judgement& judgement, const std::vector<std::string>& subjects,
                       const char* what) {
    if (subjects.empty()) return;
    const std::size_t more = subjects.size() - 1;
    const std::string others = more > 0 ? fmt::format(" and {}", counted(more, "more point")) : "";
    judgement.notes.push_back(fmt::format("{}{}: {}", subjects.front(), others, what));
  }

  bool is_wanted(const std::string& subject, Quantity quantity) const {
    return (options_.quantities.empty() || options_.quantities.contains(quantity)) &&
           (options_.only.empty() || options_.only.contains({subject, quantity}));
  }

  bool is_any_wanted(const std::string& subject) const {
    return std::any_of(quantities().begin(), quantities().end(),
                       [&](const QuantityInfo& info) { return is_wanted(subject, info.quantity); });
  }

  // The level of Fisher's test of one point. With many looks, the one after n runs has 3 / (n (n +
  // 1)) of the error rate, so from 3 runs on all looks together have all of it.
  double level_of_failures(const Subject& before, const Subject& now) const {
    const double level = kSignificance / static_cast<double>(baseline_.subjects.size());
    if (options_.stopping == Stopping::fixed) return level;
    const double n = static_cast<double>(
        std::max({kFewestRuns, before.runs + before.lost, now.runs + now.lost}));
    return level * 3 / (n * (n + 1));
  }

  void note_left_aside(const Weighed& each) {
    const std::string& subject = each.check.subject;
    for (const std::string& note : each.compared.notes) {
      std::vector<std::string>& subjects = left_aside_[note];
      if (subjects.empty() || subjects.back() != subject) subjects.push_back(subject);
    }
    const std::string& one_sided = each.compared.one_sided;
    if (!one_sided.empty()) one_sided_.insert(subject + ": " + one_sided);
  }

  // Unless the reason says so.
  void note_standing_out(const Check& check) {
    const StandingOut& out = check.standing_out;
    if (out.text.empty() || check.reason.starts_with(out.text)) return;
    const QuantityInfo& info = quantity_info(check.quantity);
    left_aside_[fmt::format(
                    "{}; {} (with them the mean changes by {})", out.text,
                    check.outlying_left_aside > 0 ? "left aside" : "too many to leave aside",
                    signed_change_text(out.change, info))]
        .push_back(check.subject);
  }

  void note_unlike(const Subject& before, const Subject& now) {
    for (const auto& [side, subject] :
         {std::pair(&baseline_, &before), std::pair(&current_, &now)}) {
      if (std::string note = failures_note(*side, *subject); !note.empty()) notes_.push_back(note);
    }
    for (const std::string& unlike : differing_covariates(before.members, now.members)) {
      notes_.push_back(before.name + ": " + unlike);
    }
    for (const std::string& effect :
         covariate_effects({{"", &before.members}, {"", &now.members}}, true)) {
      notes_.push_back(before.name + ": " + effect);
    }
    // Of several of the baseline, their differences are in the noise of its sessions.
    own_ = find_own_of_side(before.members, now.members, baseline_.name, current_.name);
    if (own_ && (options_.nodes_may_differ || own_->of_baseline >= kFewestSessions)) {
      notes_.push_back(before.name + ": " + own_->text);
      own_.reset();
    }
  }

  void push_undecided(const Subject& before, const QuantityInfo& info, std::size_t runs,
                      const char* reason) {
    Check check;
    check.subject = before.name;
    check.quantity = info.quantity;
    check.threshold = options_.thresholds.at(info.quantity);
    check.baseline_runs = runs;
    check.reason = reason;
    check.more_rounds_help = false;
    weighed_.push_back({std::move(check), {}});
  }

  void weigh_subject(const Subject& before, const Subject* now) {
    const double threshold = options_.thresholds.at(Quantity::time);
    if (auto check = check_of_absence(before, now, threshold)) {
      if (is_any_wanted(before.name)) weighed_.push_back({std::move(*check), {}});
      return;
    }
    if (!now) return;
    if (before.runs == 0) {
      notes_.push_back(before.name + " is not judged: no run of the baseline counts");
      return;
    }
    note_unlike(before, *now);
    if (auto check = check_of_failures(before, *now, level_of_failures(before, *now), threshold)) {
      if (is_any_wanted(before.name)) weighed_.push_back({std::move(*check), {}});
      return;
    }
    if (auto check = check_of_work(before, *now, threshold)) {
      if (is_any_wanted(before.name)) weighed_.push_back({std::move(*check), {}});
      return;
    }
    const bool rated = before.is_rated || now->is_rated;
    for (const QuantityInfo& info : quantities()) {
      if (is_wanted(before.name, info.quantity)) weigh_quantity(before, *now, info, rated);
    }
  }

  // `rated`: times as seconds a sample.
  static const Samples& find_samples(const Subject& subject, Quantity quantity, bool rated) {
    static const Samples none;
    if (rated && quantity == Quantity::time) return subject.rated;
    const auto it = subject.samples.find(quantity);
    return it == subject.samples.end() ? none : it->second;
  }

  void weigh_quantity(const Subject& before, const Subject& now, const QuantityInfo& info,
                      bool rated) {
    const Samples& baseline = find_samples(before, info.quantity, rated);
    const Samples& current = find_samples(now, info.quantity, rated);
    if (rated && info.quantity == Quantity::time && (baseline.empty() || current.empty())) {
      push_undecided(before, info, before.runs,
                     "neither fit seconds nor a rate is in all runs of both sides");
      return;
    }
    if (baseline.empty()) return;
    if (current.empty()) {
      // A quantity that is gone cannot have got worse, as far as anybody knows.
      if (baseline.size() < kFewestRuns || info.is_of_machine) return;
      push_undecided(before, info, baseline.size(), "the current side's records do not have it");
      return;
    }
    const bool sequential = before.sequential || now.sequential;
    GateOptions options = options_;
    if (sequential) options.stopping = Stopping::by_results;
    weighed_.push_back(weigh_samples(before.name, info, baseline, current, options,
                                     {baseline_.name, current_.name}));
    if (own_ && info.is_of_machine) {
      weighed_.back().compared.why_undecidable =
          own_->text + "; --ab or --rerun runs both on one, --force compares anyway";
    }
    weighed_.back().can_rerun = before.workload != kCommandWorkload;
    if (rated && info.quantity == Quantity::time) {
      rated_[before.unit.rate() +
             (before.unit.is_own() ? "" : ", since not all runs have fit seconds")]
          .push_back(before.name);
    }
    note_left_aside(weighed_.back());
    Check& check = weighed_.back().check;
    if (rated && info.quantity == Quantity::time) {
      check.run_seconds = now.run_seconds;
      check.unit = now.unit;
    }
    const std::size_t left_aside = check.busy_left_aside + check.outlying_left_aside;
    const bool all = check.baseline_runs == baseline.size() && check.current_runs == current.size();
    if (!all && left_aside == 0 && (aside_.empty() || aside_.back() != before.name)) {
      aside_.push_back(before.name);
    }
  }

  // Pairs of one session tell the noise of their point alone by few runs, and together they tell
  // what noise is like here. Not so sessions, which all points share.
  void moderate_pairs() {
    for (const QuantityInfo& info : quantities()) {
      std::vector<Difference*> differences;
      for (Weighed& each : weighed_) {
        const bool alike =
            each.check.quantity == info.quantity && each.check.evidence == Replication::paired;
        if (alike && each.difference.count >= kFewestRuns && each.difference.sequences == 0) {
          differences.push_back(&each.difference);
        }
      }
      moderate(differences);
    }
  }

  void adjust() {
    moderate_pairs();
    std::vector<double> p, of_standing_out;
    double usual = 0, rounds = 0;
    for (Weighed& each : weighed_) {
      fill_in(each);
      p.push_back(each.check.p);
      if (each.check.quantity == Quantity::time) {
        usual += static_cast<double>(each.check.standing_out.baseline);
        rounds += static_cast<double>(each.check.standing_out.rounds);
      }
      of_standing_out.push_back(each.check.standing_out.p);
    }
    const std::vector<double> adjusted = holm_adjusted(p),
                              outlying = holm_adjusted(of_standing_out);
    for (std::size_t i = 0; i < p.size(); ++i) {
      weighed_[i].check.adjusted_p = adjusted[i];
      weighed_[i].check.standing_out.adjusted_p = outlying[i];
      if (rounds > 0) weighed_[i].usual_share = usual / rounds;
    }
  }

  [[noreturn]] void throw_nothing_common(const Matches& matches) const {
    const std::vector<std::string>& reasons = matches.notes.empty() ? notes_ : matches.notes;
    throw input_error("no point of the baseline can be compared with the current side" +
                          (reasons.empty() ? "" : ": " + reasons.front()),
                      "", "compare runs of the same points");
  }

  const Side& baseline_;
  const Side& current_;
  const GateOptions& options_;
  std::vector<Weighed> weighed_;
  std::vector<std::string> notes_;
  std::optional<OwnOfSide> own_;                                // of the subject that is weighed
  std::map<std::string, std::vector<std::string>> rated_;       // subjects by what they count
  std::vector<std::string> aside_;                              // subjects
  std::map<std::string, std::vector<std::string>> left_aside_;  // subjects by what is said of them
  std::set<std::string> one_sided_;
};

}  // namespace

std::string_view to_string(Verdict verdict) {
  return verdict == Verdict::pass         ? "pass"
         : verdict == Verdict::regression ? "regression"
                                          : "undecided";
}

int exit_code(Verdict verdict) {
  return verdict == Verdict::pass ? 0 : verdict == Verdict::regression ? 1 : 2;
}

constexpr EnumName<Replication> kEvidenceNames[] = {{Replication::paired, "paired"},
                                                    {Replication::sessions, "sessions"},
                                                    {Replication::runs, "runs"},
                                                    {Replication::apart, "apart"},
                                                    {Replication::none, "none"}};

std::string_view to_string(Replication evidence) {
  return name_in(kEvidenceNames, evidence);
}

Verdict Judgement::verdict() const {
  Verdict verdict = Verdict::pass;
  for (const Check& check : checks) {
    if (check.verdict == Verdict::regression) return Verdict::regression;
    if (check.verdict == Verdict::undecided) verdict = Verdict::undecided;
  }
  return verdict;
}

Judgement judge(const Side& baseline, const Side& current, const GateOptions& options) {
  return Judge(baseline, current, options).judge();
}

std::vector<std::string> unlike_machines(const Side& baseline, const Side& current) {
  std::vector<std::string> differences;
  const auto only_in = [&](const Side& side, const Side& other) {
    for (const std::string& machine : side.machines) {
      if (!other.machines.contains(machine)) {
        differences.push_back(fmt::format("only the {} ran on {}", side.name, machine));
      }
    }
  };
  if (baseline.machines.empty() || current.machines.empty()) return differences;
  only_in(baseline, current);
  only_in(current, baseline);
  return differences;
}

GateOptions find_suspects(const Judgement& first, const GateOptions& options) {
  GateOptions suspects = options;
  suspects.only.clear();
  for (const Check& check : first.checks) {
    if (check.verdict != Verdict::pass) suspects.only.insert({check.subject, check.quantity});
  }
  return suspects;
}

void settle(Judgement& first, const Judgement& fresh) {
  for (Check& check : first.checks) {
    if (check.verdict == Verdict::pass) continue;
    const auto it = std::find_if(fresh.checks.begin(), fresh.checks.end(), [&](const Check& other) {
      return other.subject == check.subject && other.quantity == check.quantity;
    });
    if (it == fresh.checks.end()) continue;
    const std::optional<double> before = check.change;
    const StandingOut out = std::exchange(check, *it).standing_out;
    keep_in_mind(check, out, fresh.is_sequential);
    check.is_fresh = true;
    check.first_change = before;
  }
  first.is_confirmed = true;
  first.is_sequential = first.is_sequential || fresh.is_sequential;
  for (const std::string& warning : fresh.warnings) {
    first.warnings.push_back("fresh runs: " + warning);
  }
  for (const std::string& note : fresh.notes) {
    if (std::ranges::count(first.notes, note) == 0) first.notes.push_back("fresh runs: " + note);
  }
}

}  // namespace paceline
