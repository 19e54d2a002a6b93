#include "tests/laboratory/law.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace paceline::laboratory {

namespace {

constexpr double kSteps = 100;

StepLaw changed(const char* name, const std::function<void(StepLaw&)>& change) {
  StepLaw law;
  law.name = name;
  change(law);
  return law;
}

StepLaw communicating(const char* name, std::function<double(double)> communication) {
  return changed(name, [&](StepLaw& law) { law.communication = std::move(communication); });
}

}  // namespace

double Law::cost(int replicas) const {
  const Parts run = parts(replicas);
  return scaling == Scaling::weak ? run.in_steps() / replicas : run.total();
}

double Law::fraction(int replicas) const {
  return (replicas / speed_up(replicas) - 1) / (replicas - 1);
}

std::vector<Law::Lost> Law::losses(int replicas) const {
  const bool weak = scaling == Scaling::weak;
  const Parts base = parts(1), here = parts(replicas);
  // Worker-seconds of the same samples.
  const double workers = weak ? 1 : replicas;
  const double whole = workers * (weak ? here.in_steps() : here.total());
  const auto lost = [&](const char* label, double Parts::*part) {
    return Lost{label, (workers * here.*part - base.*part) / whole};
  };
  std::vector<Lost> all = {lost("input", &Parts::input),
                           lost("communication or straggler", &Parts::communication),
                           lost("launch", &Parts::launch), lost("compute", &Parts::compute)};
  if (!weak) all.push_back(lost("outside of steps", &Parts::outside));
  std::ranges::stable_sort(all, std::greater<>(), &Lost::points);
  return all;
}

Law StepLaw::law(Scaling scaling) const {
  const bool strong = scaling == Scaling::strong, weak = scaling == Scaling::weak;
  return {name, scaling, [law = *this, strong, weak](int replicas) {
            const double n = replicas, share = strong ? 1 / n : 1;  // of the batch
            const double steps = strong || weak ? kSteps : kSteps / n;
            Parts parts;
            parts.warm_up = 2 * std::min<double>(law.warm_up, steps) * share;
            parts.compute =
                steps * share * (1 + (replicas == 1 ? law.slow_base : law.slow_many(n))) +
                parts.warm_up;
            parts.launch = steps * law.per_step;
            parts.input = steps * share * n * law.per_sample;
            if (law.enough_for > 0) {
              parts.input += steps * share * std::max(0.0, n / law.enough_for - 1);
            }
            parts.communication = replicas > 1 ? steps * law.communication(n) : 0;
            parts.outside = kSteps * law.per_run;
            return parts;
          }};
}

const std::vector<StepLaw>& step_laws() {
  static const std::vector<StepLaw> all = {
      changed("ideal", [](StepLaw&) {}),
      changed("serial part of the run", [](StepLaw& law) { law.per_run = 0.2; }),
      changed("serial part of the step", [](StepLaw& law) { law.per_step = 0.1; }),
      changed("serial input", [](StepLaw& law) { law.per_sample = 0.15; }),
      communicating("communication grows with replicas", [](double n) { return 0.12 * (n - 1); }),
      communicating("communication grows with the square",
                    [](double n) { return 0.03 * n * (n - 1); }),
      communicating("communication grows with the logarithm",
                    [](double n) { return 0.1 * std::log2(n); }),
      communicating("communication of a ring", [](double n) { return 0.2 * (n - 1) / n; }),
      communicating("communication is constant", [](double) { return 0.15; }),
      communicating("late ranks", [](double n) { return 0.1 * std::sqrt(std::log(n)); }),
      changed("shared memory", [](StepLaw& law) { law.slow_many = [](double) { return 0.2; }; }),
      changed("slow base", [](StepLaw& law) { law.slow_base = 0.3; }),
      changed("slow base, growing communication",
              [](StepLaw& law) {
                law.slow_base = 0.1;
                law.communication = [](double n) { return 0.1 * (n - 1); };
              }),
      communicating("overhead", [](double n) { return 1.2 * n; }),
      changed("serial part and growing communication",
              [](StepLaw& law) {
                law.per_run = 0.05;
                law.communication = [](double n) { return 0.04 * (n - 1); };
              }),
      // As where ranks do not fill their nodes.
      communicating("one bad size", [](double n) { return (n == 4 ? 0.5 : 0.1) * (n - 1); }),
      changed("input for three replicas", [](StepLaw& law) { law.enough_for = 3; }),
      communicating("knee at a node", [](double n) { return n > 4 ? 0.3 : 0.02; }),
      communicating("communication of a tree",
                    [](double n) { return 0.1 * std::ceil(std::log2(n)); }),
      // From the fifth replica on they share a core.
      changed("hyper-threads", [](StepLaw& law) {
        law.slow_many = [](double n) { return n > 4 ? n / (4 + (n - 4) / 4) - 1 : 0; };
      })};
  return all;
}

const StepLaw& step_law(const std::string& name) {
  const auto it = std::ranges::find(step_laws(), name, &StepLaw::name);
  if (it == step_laws().end()) throw std::invalid_argument("no law is called " + name);
  return *it;
}

Law ideal_law() {
  return step_law("ideal").law(Scaling::fixed_epochs);
}

Law overhead_law(const std::string& name, const std::function<double(double)>& overhead) {
  return {name, Scaling::fixed_epochs, [overhead](int replicas) {
            const double share = kLawSeconds / replicas;
            return Parts{.compute = share * std::min(1.0, overhead(replicas)),
                         .communication = share * std::max(0.0, overhead(replicas) - 1)};
          }};
}

}  // namespace paceline::laboratory
