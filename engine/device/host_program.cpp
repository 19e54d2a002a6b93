#include "engine/device/host_program.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "engine/core/clock.h"
#include "engine/core/error.h"

namespace paceline {

namespace {

constexpr std::size_t kNormBlock = 8192;  // elements whose squares are added by one thread

// In lanes of double, so that an instruction set changes no bit: the square of a float is exact.
template <typename T>
double square_sum(const T* values, std::size_t count) {
  constexpr std::size_t kLanes = 16;
  double sums[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      const auto value = static_cast<double>(values[i + l]);
      sums[l] += value * value;
    }
  }
  double sum = 0;
  for (const double lane : sums) sum += lane;
  for (; i < count; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

}  // namespace

template <typename T>
HostProgram<T>::HostProgram(const Plan& plan, std::byte* gradients)
    : plan_(plan),
      gradients_(gradients),
      stretches_(plan),
      activations_(host_memory(plan.activation_bytes)),
      parameters_(host_memory(plan.arena_elements * sizeof(T))),
      statistics_(host_memory(plan.statistics_elements * sizeof(T))),
      square_sums_((plan.arena_elements + kNormBlock - 1) / kNormBlock),
      backward_sums_(plan.operations.size()) {
  for (const ParameterInfo& info : plan.statistics) {
    std::fill_n(real(statistics_.data()) + info.offset, info.elements,
                static_cast<T>(info.initial));
  }
}

template <typename T>
void HostProgram<T>::forward(Mode mode) {
  mode_ = mode;
  repeat_forward(0, static_cast<int>(plan_.operations.size()) - 1);
  sums_.samples += batch_.samples * plan_.labels_per_sample;
}

template <typename T>
void HostProgram<T>::run(int index, bool forward) {
  const Operation& op = plan_.operations[static_cast<std::size_t>(index)];
  const bool timed = trace_ || !forward;
  const double begin = timed ? now_seconds() : 0;
  forward ? run_forward(op, index) : run_backward(op, index);
  if (!timed) return;
  const double end = now_seconds();
  if (!forward) count_backward(static_cast<std::size_t>(index), end - begin);
  if (!trace_) return;
  const auto& names = forward ? forward_names_ : backward_names_;
  trace_->note(names[static_cast<std::size_t>(index)], begin, end);
}

// A pass begins with the last operation.
template <typename T>
void HostProgram<T>::count_backward(std::size_t index, double seconds) {
  if (index + 1 == plan_.operations.size()) ++backward_passes_;
  if (backward_passes_ > kUntimedPasses) backward_sums_[index] += seconds;
}

template <typename T>
std::vector<double> HostProgram<T>::backward_seconds() const {
  if (backward_passes_ <= kUntimedPasses) return {};
  std::vector<double> means = backward_sums_;
  for (double& mean : means) mean /= static_cast<double>(backward_passes_ - kUntimedPasses);
  return means;
}

template <typename T>
bool HostProgram<T>::trace(TraceRing* ring) {
  for (std::size_t i = forward_names_.size(); i < plan_.operations.size(); ++i) {
    forward_names_.push_back(plan_.operations[i].name + " forward");
    backward_names_.push_back(plan_.operations[i].name + " backward");
  }
  trace_ = ring;
  return true;
}

template <typename T>
void HostProgram<T>::prepare_state(Optimizer optimizer) {
  if (state_ready_) return;
  const int arenas = state_arenas(optimizer);
  const std::size_t bytes = plan_.arena_elements * sizeof(T);
  if (arenas > 0) {
    state_a_ = host_memory(bytes);
    std::fill_n(real(state_a_.data()), plan_.arena_elements,
                static_cast<T>(initial_state(optimizer)));
  }
  if (arenas > 1) state_b_ = host_memory(bytes);
  state_ready_ = true;
}

template <typename T>
void HostProgram<T>::accumulate(Accumulate which, std::size_t begin, std::size_t end) {
  if (!kept_.data()) kept_ = host_memory(plan_.arena_elements * sizeof(T));
  T* gradients = real(gradients_) + begin;
  T* kept = real(kept_.data()) + begin;
  const auto add = [which, gradients, kept](std::size_t from, std::size_t to) {
    if (which == Accumulate::first) {
      std::copy(gradients + from, gradients + to, kept + from);
      return;
    }
    T* sum = which == Accumulate::more ? kept : gradients;
    for (std::size_t i = from; i < to; ++i) sum[i] = kept[i] + gradients[i];
  };
  in_parts(end - begin, 1, std::ref(add));
}

template <typename T>
void HostProgram<T>::measure_gradients(const UpdateRule& rule) {
  const auto measure = [this](std::size_t from, std::size_t to) {
    for (std::size_t block = from; block < to; ++block) {
      const std::size_t begin = block * kNormBlock;
      square_sums_[block] =
          square_sum(real(gradients_) + begin, std::min(kNormBlock, plan_.arena_elements - begin));
    }
  };
  in_parts(square_sums_.size(), kNormBlock, std::ref(measure));
  gradient_factor_ =
      clip_factor(std::accumulate(square_sums_.begin(), square_sums_.end(), 0.0), rule.clip_norm);
}

template <typename T>
void HostProgram<T>::update(const UpdateRule& rule, std::size_t begin, std::size_t end) {
  prepare_state(rule.optimizer);
  UpdateRule mine = rule;
  if (rule.clip_norm > 0) mine.gradient_factor = gradient_factor_;
  const auto part = [this, &mine, begin](std::size_t from, std::size_t to) {
    update_part(mine, begin + from, begin + to);
  };
  in_parts(end - begin, 1, std::ref(part));
}

template <typename T>
void HostProgram<T>::update_part(const UpdateRule& rule, std::size_t begin, std::size_t end) {
  const auto stretch = [this](const UpdateRule& its, std::size_t from, std::size_t to) {
    const auto at = [from](const Memory& memory) -> T* {
      return memory.data() ? real(memory.data()) + from : nullptr;
    };
    apply(its, at(parameters_), real(gradients_) + from, at(state_a_), at(state_b_), to - from);
  };
  if (!rule.decays()) return stretch(rule, begin, end);
  UpdateRule without = rule;
  without.decay = without.l2 = 0;
  stretches_.over(begin, end, [&](std::size_t from, std::size_t to, bool decays) {
    stretch(decays ? rule : without, from, to);
  });
}

template <typename T>
void HostProgram<T>::write(T* data, const ParameterInfo& info, std::span<const double> values) {
  if (values.size() != info.elements) {
    throw internal_error("wrong number of values", info.name);
  }
  std::ranges::transform(values, data, [](double value) { return static_cast<T>(value); });
}

template <typename T>
ProgramState HostProgram<T>::state(Optimizer optimizer) {
  prepare_state(optimizer);
  const auto first = [](const Memory& memory, std::size_t elements) {
    return std::span<std::byte>(memory.data(), memory.data() ? elements * sizeof(T) : 0);
  };
  return {first(parameters_, plan_.arena_elements),
          first(state_a_, plan_.arena_elements),
          first(state_b_, plan_.arena_elements),
          first(statistics_, plan_.statistics_elements),
          {}};
}

template class HostProgram<float>;
template class HostProgram<double>;

}  // namespace paceline
