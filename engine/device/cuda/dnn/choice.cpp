#include "engine/device/cuda/dnn/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/core/text.h"

namespace paceline::cuda {

namespace {

constexpr int kWarmUps = 3, kRuns = 10, kTurns = 2;
// A way that takes so many times the best one's median in a first run is not worth more runs; one
// that takes so many in the run before, which may load libraries for half a second, not even that.
constexpr double kFarSlower = 3, kFarTooSlow = 30, kLoadingSeconds = 0.5;

struct Usable {
  const Candidate* candidate;
  std::shared_ptr<Implementation> implementation;
  double seconds = 0;
};

// Memory to try candidates in: the tensors at their real sizes, and the largest workspace so far.
class Bench {
 public:
  Bench(Tuner& tuner, const std::vector<TensorSize>& sizes, const Baseline* baseline)
      : tuner_(tuner), baseline_(baseline) {
    for (const TensorSize& size : sizes) {
      std::shared_ptr<void> memory = tuner_.allocate(size.elements * size_of(size.type));
      tuner_.randomize(memory.get(), size.elements, size.type);
      operands_.tensors[tensors_.size()] = memory.get();
      tensors_.push_back(std::move(memory));
    }
  }

  // Throws where it cannot run, or the card lacks the memory.
  Tuner::Work work(const std::shared_ptr<Implementation>& implementation) {
    if (implementation->workspace_bytes() > workspace_bytes_) {
      workspace_.reset();
      workspace_bytes_ = 0;
      workspace_ = tuner_.allocate(implementation->workspace_bytes());
      workspace_bytes_ = implementation->workspace_bytes();
    }
    operands_.workspace = workspace_.get();
    return [implementation, operands = operands_, baseline = baseline_](Stream stream) {
      implementation->run(operands, stream);
      if (baseline) baseline->behind(operands, stream);
    };
  }

  // Its workspace is its own.
  Tuner::Work apart() const {
    return [operands = operands_, baseline = baseline_](Stream stream) {
      baseline->apart(operands, stream);
    };
  }

 private:
  Tuner& tuner_;
  const Baseline* baseline_;
  std::vector<std::shared_ptr<void>> tensors_;
  std::shared_ptr<void> workspace_;
  Operands operands_;
  std::size_t workspace_bytes_ = 0;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Chooser {
 public:
  Chooser(const std::string& request, const ChoiceRules& rules, std::string refused)
      : request_(request), rules_(rules), refused_(std::move(refused)) {}

  void build(const std::vector<Candidate>& candidates) {
    const int most_compiled = rules_.measures ? rules_.most_compiled : 1;
    int compiled = 0;
    for (const Candidate& candidate : candidates) {
      if (candidate.compiles && compiled == most_compiled) continue;
      try {
        std::shared_ptr<Implementation> implementation = candidate.build();
        if (implementation->workspace_bytes() > rules_.workspace_limit) {
          refuse(candidate,
                 fmt::format("needs {} of workspace, {} are allowed",
                             format_bytes(static_cast<double>(implementation->workspace_bytes())),
                             format_bytes(static_cast<double>(rules_.workspace_limit))));
        } else {
          usable_.push_back({&candidate, std::move(implementation)});
          if (candidate.compiles) ++compiled;
        }
      } catch (const Error& error) {
        refuse(candidate, error.what());
      }
    }
  }

  // Drops those that fail or that a graph cannot hold; sorts the rest by time if it is measured,
  // else tries no more than it needs.
  void try_out(Bench& bench, Tuner& tuner) {
    double best = 0;
    for (auto one = usable_.begin(); one != usable_.end();) {
      try {
        one->seconds = try_out(bench.work(one->implementation), tuner, best);
        if (!rules_.measures) return;
        if (best == 0 || one->seconds < best) best = one->seconds;
        ++one;
      } catch (const Error& error) {
        refuse(*one->candidate, error.what());
        check_card(tuner, *one->candidate);
        one = usable_.erase(one);
      }
    }
    std::stable_sort(usable_.begin(), usable_.end(),
                     [](const Usable& a, const Usable& b) { return a.seconds < b.seconds; });
  }

  // In turns, because the card's clocks move.
  void try_baseline(Bench& bench, Tuner& tuner) {
    if (!rules_.measures || usable_.empty()) return;
    Usable& best = usable_.front();
    std::vector<double> own, baselines;
    for (int turn = 0; turn < kTurns; ++turn) {
      for (auto& [times, work] : {std::pair{&own, bench.work(best.implementation)},
                                  std::pair{&baselines, bench.apart()}}) {
        const std::vector<double> more = tuner.time(work, kWarmUps, kRuns / kTurns);
        times->insert(times->end(), more.begin(), more.end());
      }
    }
    best.seconds = median(std::move(own));
    baseline_seconds_ = median(std::move(baselines));
  }

  Chosen result(int offered) const {
    if (usable_.empty()) {
      throw Error(ErrorKind::usage,
                  "no way to compute " + request_ + ": " +
                      (refused_.empty() ? "nothing is offered" : refused_),
                  "", "choose another precision or batch, or allow more workspace");
    }
    const Usable& first = usable_.front();
    Choice choice;
    choice.request = request_;
    choice.recipe = first.candidate->recipe;
    choice.tensor_cores = first.candidate->tensor_cores;
    choice.workspace_bytes = first.implementation->workspace_bytes();
    choice.offered = offered;
    choice.usable = static_cast<int>(usable_.size());
    choice.seconds = first.seconds;
    choice.baseline_seconds = baseline_seconds_;
    choice.origin = first.seconds > 0 ? Choice::Origin::measured : Choice::Origin::heuristic;
    if (usable_.size() > 1) {
      choice.runner_up = usable_[1].candidate->recipe.text();
      choice.runner_up_seconds = usable_[1].seconds;
    }
    return {std::move(choice), first.implementation};
  }

 private:
  // Seconds of a run, 0 where it is not measured. A first run comes before the capture: it may have
  // to load its kernels.
  double try_out(const Tuner::Work& work, Tuner& tuner, double best) const {
    const double cold = tuner.time(work, 0, 1).front();
    if (best > 0 && cold >= std::max(kLoadingSeconds, kFarTooSlow * best)) return cold;
    if (const Support captured = tuner.capture(work); !captured) {
      throw Error(ErrorKind::usage, captured.because());
    }
    if (!rules_.measures) return 0;
    const double first = tuner.time(work, 0, 1).front();
    const bool is_far_slower = best > 0 && first >= kFarSlower * best;
    return is_far_slower ? first : median(tuner.time(work, kWarmUps, kRuns));
  }

  // What a kernel broke stays broken for this process, and all that follow would be blamed for it.
  void check_card(Tuner& tuner, const Candidate& candidate) const {
    try {
      tuner.time([](Stream) {}, 0, 1);
    } catch (const Error& error) {
      throw Error(ErrorKind::internal,
                  fmt::format("{} broke the GPU's context when it was tried for {}: {}",
                              candidate.recipe.text(), request_, error.what()),
                  "",
                  rules_.broke(candidate.recipe)
                      ? "run it again: from now on it is left out"
                      : "report it; another batch or precision may not offer it");
    }
  }

  void refuse(const Candidate& candidate, const std::string& because) {
    log::debug("{}: {} {}", request_, candidate.recipe.text(), because);
    if (refused_.empty()) refused_ = candidate.recipe.text() + " " + because;
  }

  const std::string& request_;
  const ChoiceRules& rules_;
  std::string refused_;
  std::vector<Usable> usable_;
  double baseline_seconds_ = 0;
};

}  // namespace

Chosen choose(const std::string& request, const Offered& offered,
              const std::vector<TensorSize>& sizes, const ChoiceRules& rules, Tuner* tuner,
              const Baseline* baseline) {
  Chooser chooser(request, rules, offered.refused);
  chooser.build(offered.candidates);
  if (tuner) {
    std::optional<Bench> bench;
    try {
      bench.emplace(*tuner, sizes, baseline);
    } catch (const Error& error) {
      log::warning("{} is not tried out: {}", request, error.what());
    }
    if (bench) chooser.try_out(*bench, *tuner);
    if (bench && baseline) chooser.try_baseline(*bench, *tuner);
  }
  return chooser.result(offered.count);
}

std::string Recipe::text() const {
  if (library == Library::cublas_lt) return fmt::format("cuBLASLt algorithm {}", engine);
  std::vector<std::string> settings;
  for (const Knob& knob : knobs) settings.push_back(fmt::format("{}={}", knob.type, knob.value));
  return fmt::format("cuDNN engine {}{}", engine,
                     settings.empty() ? "" : " (" + join(settings, " ") + ")");
}

}  // namespace paceline::cuda
