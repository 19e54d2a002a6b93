#include "engine/device/cuda/dnn/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/core/text.h"

namespace paceline::cuda {

namespace {

constexpr int kWarmUps = 3, kRuns = 10;
// A way that takes so many times the best one's median in a first run is not worth more runs; one
// that takes so many in the run before, which may load libraries for half a second, not even that.
constexpr double kFarSlower = 3, kFarTooSlow = 30, kLoadingSeconds = 0.5;
// Times the allowance that a result may be off before its way is excluded for good: a long sum in
// another order may just miss it.
constexpr double kFarOff = 2;
// Results that are kept to compare others with, each with memory of its own.
constexpr std::size_t kMostGroups = 4;

using Results = std::vector<std::shared_ptr<void>>;  // null for tensors that are only read

// From one candidate's results to another's, of the tensor that is farthest off; see Agreement.
struct Distance {
  double norm = 0, element = 0;
  std::size_t tensor = 0;  // the one of that norm
  bool same_bits = true;
  bool from_zeros = false;  // of some tensor all of the reference is zero
};

struct Usable {
  const Candidate* candidate;
  std::shared_ptr<Implementation> implementation;
  double seconds = 0;
  std::optional<std::size_t> group = {};  // kMostGroups: of none that is kept; empty: not compared
};

// Memory to try candidates in: the tensors at their real sizes, and the largest workspace so far.
class Bench {
 public:
  Bench(Tuner& tuner, const std::vector<TensorSize>& sizes, const ChoiceRules& rules)
      : tuner_(tuner), sizes_(sizes) {
    if (rules.measures) flushed_ = tuner_.allocate_flushed();
    for (const TensorSize& size : sizes) {
      std::shared_ptr<void> memory = tuner_.allocate(size.bytes());
      tuner_.randomize(memory.get(), size.elements, size.type);
      operands_.tensors[tensors_.size()] = memory.get();
      tensors_.push_back(std::move(memory));
      const bool kept = size.use == TensorSize::Use::added_to;
      before_.push_back(kept ? copy(before_.size()) : nullptr);
    }
  }

  // Computes once, from the same operands as every other candidate.
  void compute(const std::shared_ptr<Implementation>& implementation) {
    const Tuner::Work work = this->work(implementation);
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      void* const tensor = tensors_[i].get();
      if (sizes_[i].use == TensorSize::Use::written) tuner_.poison(tensor, sizes_[i].bytes());
      if (before_[i]) tuner_.copy(tensor, before_[i].get(), sizes_[i].bytes());
    }
    if (workspace_bytes_ > 0) tuner_.poison(workspace_.get(), workspace_bytes_);
    tuner_.run(work);
  }

  // Empty if the card lacks the memory.
  std::optional<Results> copy_results() const {
    Results results;
    try {
      for (std::size_t i = 0; i < sizes_.size(); ++i) {
        results.push_back(sizes_[i].use == TensorSize::Use::read ? nullptr : copy(i));
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) throw;
      log::warning("a result is not compared: {}", error.what());
      return std::nullopt;
    }
    return results;
  }

  const Results& results() const { return tensors_; }  // of the last run

  // Infinite where an element is not finite.
  Distance distance(const Results& results, const Results& reference) const {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    Distance farthest;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const TensorSize& size = sizes_[i];
      if (size.use == TensorSize::Use::read) continue;
      const ResultDifference found =
          tuner_.compare(results[i].get(), reference[i].get(), size.elements, size.type);
      if (found.changed > 0) farthest.same_bits = false;
      if (found.reference_squares == 0) farthest.from_zeros = true;
      if (found.squares == 0) continue;
      const double norm = std::sqrt(found.squares / found.reference_squares);
      const double mean = std::sqrt(found.reference_squares / static_cast<double>(size.elements));
      if (!(norm <= farthest.norm)) {
        farthest.norm = std::isfinite(norm) ? norm : kInfinite;
        farthest.tensor = i;
      }
      farthest.element = std::max(farthest.element, mean > 0 ? found.largest / mean : kInfinite);
    }
    return farthest;
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
    return [implementation, operands = operands_](Stream stream) {
      implementation->run(operands, stream);
    };
  }

 private:
  std::shared_ptr<void> copy(std::size_t tensor) const {
    std::shared_ptr<void> memory = tuner_.allocate(sizes_[tensor].bytes());
    tuner_.copy(memory.get(), tensors_[tensor].get(), sizes_[tensor].bytes());
    return memory;
  }

  Tuner& tuner_;
  const std::vector<TensorSize>& sizes_;
  std::shared_ptr<void> flushed_, workspace_;
  Results tensors_, before_;  // before: of those that are added to
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

  // Drops those that fail, that a graph cannot hold, or that compute something else; sorts the rest
  // by time if it is measured, else tries no more than it needs.
  void try_out(Bench& bench, Tuner& tuner) {
    do {
      groups_.clear();
      double best = 0;
      for (auto one = usable_.begin(); one != usable_.end();) {
        try {
          rules_.trying(one->candidate->recipe);
          const std::string wrong = try_out(*one, bench, tuner, best);
          if (wrong.empty()) {
            if (!rules_.measures) return;
            if (best == 0 || one->seconds < best) best = one->seconds;
            ++one;
          } else {
            exclude(*one->candidate, wrong);
            one = usable_.erase(one);
          }
        } catch (const Error& error) {
          refuse(*one->candidate, error.what());
          check_card(tuner, *one->candidate);
          one = usable_.erase(one);
        }
      }
      std::ranges::stable_sort(
          usable_, [](const Usable& a, const Usable& b) { return a.seconds < b.seconds; });
    } while (exclude_minority(bench));  // whose times others were weighed against
  }

  // Several ways may be settings of one kernel: one line says it of them all.
  void warn_of_excluded() const {
    if (left_out_ == 0) return;
    log::warning("{}: {}{}", request_, left_out_first_,
                 left_out_ > 1 ? fmt::format("; in all {} ways are left out", left_out_) : "");
  }

  Chosen result(int offered) const {
    if (usable_.empty()) {
      throw usage_error("no way to compute " + request_ + ": " +
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
    choice.origin = first.seconds > 0 ? Choice::Origin::measured : Choice::Origin::heuristic;
    if (usable_.size() > 1) {
      choice.runner_up = usable_[1].candidate->recipe.text();
      choice.runner_up_seconds = usable_[1].seconds;
    }
    return {std::move(choice), first.implementation};
  }

 private:
  // Sets the seconds of a run, if that is measured. Returns what is wrong with its results. A first
  // run comes before the capture: it may have to load its kernels.
  std::string try_out(Usable& one, Bench& bench, Tuner& tuner, double best) {
    const Tuner::Work work = bench.work(one.implementation);
    const double cold = tuner.run(work);
    one.group.reset();
    if (best > 0 && cold >= std::max(kLoadingSeconds, kFarTooSlow * best)) {
      one.seconds = cold;
      return "";
    }
    if (const Support captured = tuner.capture(work); !captured) {
      throw usage_error(captured.because());
    }
    if (std::string wrong = check(one, bench); !wrong.empty() || !rules_.measures) return wrong;
    const double first = tuner.time(work, 0, 1).front();
    const bool is_far_slower = best > 0 && first >= kFarSlower * best;
    one.seconds = is_far_slower ? first : median(tuner.time(work, kWarmUps, kRuns));
    return "";
  }

  // Returns what is wrong with the results by themselves; else finds their group.
  std::string check(Usable& one, Bench& bench) {
    bench.compute(one.implementation);
    const Results& results = bench.results();
    const Distance from_itself = bench.distance(results, results);
    if (std::isinf(from_itself.norm)) {
      return fmt::format("its result is not finite, or not all of it is written (tensor {})",
                         from_itself.tensor);
    }
    if (from_itself.from_zeros) return "its result is zero, of operands that are not";
    if (rules_.repeats) {
      const std::optional<Results> first = bench.copy_results();
      bench.compute(one.implementation);
      if (first && !bench.distance(results, *first).same_bits) {
        return "its bits differ from run to run";
      }
    }
    if (!rules_.measures) return "";
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const Distance found = bench.distance(results, groups_[i]);
      if (found.norm > rules_.agreement.norm || found.element > rules_.agreement.element) continue;
      one.group = i;
      return "";
    }
    std::optional<Results> kept;
    if (groups_.size() < kMostGroups) kept = bench.copy_results();
    if (kept || !groups_.empty()) one.group = kept ? groups_.size() : kMostGroups;
    if (kept) groups_.push_back(std::move(*kept));
    return "";
  }

  // Whether the fastest was among them. See choose().
  bool exclude_minority(const Bench& bench) {
    if (groups_.empty() || usable_.empty()) return false;
    const auto members = [&](std::size_t group) {
      return std::ranges::count_if(usable_, [&](const Usable& one) { return one.group == group; });
    };
    std::size_t right = 0;
    for (std::size_t i = 1; i < groups_.size(); ++i) {
      if (members(i) > members(right)) right = i;
    }
    const auto ours = std::ranges::find_if(
        usable_, [](const Usable& one) { return one.candidate->recipe.is_first_own(); });
    if (ours != usable_.end() && ours->group && *ours->group < groups_.size()) {
      right = *ours->group;
    }
    const auto others = members(right);
    if (others == 0) return false;
    const auto is_wrong = [&](const Usable& one) { return one.group && *one.group != right; };
    const bool wrong_is_fastest = is_wrong(usable_.front());
    for (const Usable& one : usable_) {
      if (!is_wrong(one)) continue;
      const Distance off = *one.group < groups_.size()
                               ? bench.distance(groups_[*one.group], groups_[right])
                               : Distance{};
      const std::string because =
          fmt::format("its result is not that of {} other{}{}", others, others > 1 ? "s" : "",
                      off.norm > 0 ? fmt::format(": {:.2g} of their norm off", off.norm) : "");
      if (off.norm > 0 && off.norm <= kFarOff * rules_.agreement.norm &&
          off.element <= kFarOff * rules_.agreement.element) {
        refuse(*one.candidate, because);
      } else {
        exclude(*one.candidate, because);
      }
    }
    std::erase_if(usable_, is_wrong);
    return wrong_is_fastest;
  }

  // What a kernel broke stays broken for this process, and all that follow would be blamed for it.
  void check_card(Tuner& tuner, const Candidate& candidate) const {
    try {
      tuner.run([](Stream) {});
    } catch (const Error& error) {
      throw internal_error(fmt::format("{} broke the GPU's context when it was tried for {}: {}",
                                       candidate.recipe.text(), request_, error.what()),
                           "",
                           rules_.exclude(candidate.recipe, "it broke the GPU's context")
                               ? "run it again: from now on it is left out"
                               : "report it; another batch or precision may not offer it");
    }
  }

  void exclude(const Candidate& candidate, const std::string& because) {
    if (left_out_++ == 0) left_out_first_ = candidate.recipe.text() + " is left out: " + because;
    if (refused_.empty()) refused_ = candidate.recipe.text() + ": " + because;
    rules_.exclude(candidate.recipe, because);
  }

  void refuse(const Candidate& candidate, const std::string& because) {
    log::debug("{}: {} {}", request_, candidate.recipe.text(), because);
    if (refused_.empty()) refused_ = candidate.recipe.text() + " " + because;
  }

  const std::string& request_;
  const ChoiceRules& rules_;
  std::string refused_;
  std::vector<Usable> usable_;
  std::vector<Results> groups_;  // of candidates that agree, in the order of their first ones
  int left_out_ = 0;
  std::string left_out_first_;
};

}  // namespace

Chosen choose(const std::string& request, const Offered& offered,
              const std::vector<TensorSize>& sizes, const ChoiceRules& rules, Tuner* tuner) {
  Chooser chooser(request, rules, offered.refused);
  chooser.build(offered.candidates);
  if (tuner) {
    std::optional<Bench> bench;
    try {
      bench.emplace(*tuner, sizes, rules);
    } catch (const Error& error) {
      log::warning("{} is not tried out: {}", request, error.what());
    }
    if (bench) chooser.try_out(*bench, *tuner);
    chooser.warn_of_excluded();
  }
  return chooser.result(offered.count);
}

// Twice what a result may be off (tests/conformance/device_cuda/reference.h), as both may be;
// errors of long sums in fp32 grow with the root of their length. The largest of a billion elements
// is six times their root mean square, of which 16 bits lose up to twice the mean loss.
Agreement find_agreement(Math math, std::size_t terms) {
  constexpr double kLong = 0x1p-22, kLargest = 20;
  const double rounding = math == Math::fp32 ? 1e-5 : math == Math::bf16 ? 5e-3 : 1e-3;
  const double norm = 2 * (rounding + kLong * std::sqrt(static_cast<double>(terms)));
  return {norm, kLargest * norm};
}

std::string Recipe::text() const {
  if (library == Library::own) {
    return is_first_own() ? "own kernels" : fmt::format("own kernels, way {}", engine + 1);
  }
  if (library == Library::cublas_lt) return fmt::format("cuBLASLt algorithm {}", engine);
  std::vector<std::string> settings;
  for (const Knob& knob : knobs) settings.push_back(fmt::format("{}={}", knob.type, knob.value));
  return fmt::format("cuDNN engine {}{}", engine,
                     settings.empty() ? "" : " (" + join(settings, " ") + ")");
}

}  // namespace paceline::cuda
