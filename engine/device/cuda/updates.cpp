// From gradients to parameters, and the copies of these that products read.
#include <utility>

#include "engine/core/error.h"
#include "engine/device/cuda/kernels/update.h"
#include "engine/device/cuda/program.h"
#include "engine/device/update.h"

namespace paceline::cuda {

void CudaProgram::mark_decay() {
  std::vector<std::uint8_t> marks(decays_.bytes());
  Stretches(plan_).over(0, plan_.arena_elements,
                        [&](std::size_t begin, std::size_t end, bool decays) {
                          for (std::size_t i = begin; i < end; i += kDecayGroup) {
                            marks[i / kDecayGroup] = decays;
                          }
                        });
  runtime_.copy(decays_.data(), marks.data(), marks.size(), compute_.stream());
  runtime_.synchronize_stream(compute_.stream());
}

// Widens the gradients that stand in 16 bits and clears those that cancel: one launch for all of
// these operations, whose pieces follow each other.
void CudaProgram::finish_gradients(int from, int to) {
  const Prepared &first = prepared_[static_cast<std::size_t>(to)],
                 &last = prepared_[static_cast<std::size_t>(from)];
  const unsigned count = last.first_piece + last.pieces - first.first_piece;
  if (count == 0) return;
  with_type(plan_.activation, [&](auto type) {
    using T = decltype(type);
    const auto* pieces = reinterpret_cast<const GradientPiece*>(pieces_.data()) + first.first_piece;
    runtime_.launch(WidenGradients<T>{pieces, reinterpret_cast<const T*>(narrow_gradients_.data()),
                                      reinterpret_cast<float*>(gradients_)},
                    {count, kElementThreads, 0}, compute_.stream());
  });
}

void CudaProgram::prepare_state(Optimizer optimizer) {
  if (std::exchange(has_state_, true)) return;
  const std::size_t bytes = plan_.arena_elements * sizeof(float);
  update_way_ = choose_update(runtime_, products_, optimizer, plan_.arena_elements, options_.math);
  const int arenas = state_arenas(optimizer);
  if (arenas > 0) first_moments_ = runtime_.device_memory(bytes);
  if (arenas > 1) second_moments_ = runtime_.device_memory(bytes);
  if (const double initial = initial_state(optimizer); arenas > 0 && initial != 0) {
    write(floats(first_moments_), std::vector<double>(plan_.arena_elements, initial));
  }
}

void CudaProgram::reserve(Optimizer optimizer, bool accumulates) {
  prepare_state(optimizer);
  if (accumulates) reserve_kept();
}

void CudaProgram::reserve_kept() {
  if (kept_gradients_.data()) return;
  kept_gradients_ = runtime_.device_memory(plan_.arena_elements * sizeof(float));
}

void CudaProgram::set_rule(const UpdateRule& rule) {
  prepare_state(rule.optimizer);
  if (rule_set_ == rule) return;
  if (compute_.in_graph()) {
    throw internal_error("a step updates by another rule than it was announced with");
  }
  rule_set_ = rule;
  runtime_.launch(SetRule{rule, reinterpret_cast<UpdateRule*>(rule_.data()),
                          reinterpret_cast<const LossScale*>(loss_scale_.data())},
                  {1, 1, 0}, compute_.stream());
}

// What of a rule decides which work is queued.
void CudaProgram::add_rule(Replays::Key& key, const UpdateRule& rule) {
  key.push_back(static_cast<std::size_t>(rule.optimizer));
  key.push_back(rule.clip_norm > 0 ? 1 : 0);
  key.push_back(rule.decays() ? 1 : 0);
}

void CudaProgram::accumulate(Accumulate which, std::size_t begin, std::size_t end) {
  reserve_kept();
  float* gradients = reinterpret_cast<float*>(gradients_) + begin;
  float* kept = floats(kept_gradients_) + begin;
  const bool last = which == Accumulate::last;
  replays_.run("accumulation", {3, static_cast<std::size_t>(which), begin, end}, [&] {
    float* to = last ? gradients : kept;
    run_vectors(Convert<float, float>{last ? kept : gradients, to, end - begin,
                                      which == Accumulate::first ? nullptr : to},
                end - begin);
  });
}

void CudaProgram::measure_gradients(const UpdateRule& rule) {
  set_rule(rule);
  auto* sums = reinterpret_cast<double*>(square_sums_.data());
  const unsigned blocks = SquareSums::blocks(plan_.arena_elements);
  const Grid grid{blocks, SquareSums::kThreads, SquareSums::shared_bytes()};
  replays_.run("norm of the gradient", {4}, [&] {
    runtime_.launch(
        SquareSums{reinterpret_cast<const float*>(gradients_), sums, plan_.arena_elements}, grid,
        compute_.stream());
    runtime_.launch(FindClipFactor{sums, blocks, reinterpret_cast<const UpdateRule*>(rule_.data()),
                                   reinterpret_cast<const LossScale*>(loss_scale_.data()),
                                   reinterpret_cast<ClipState*>(clip_.data())},
                    {1, SquareSums::kThreads, SquareSums::shared_bytes()}, compute_.stream());
  });
}

// With a loss scale nothing may change before all gradients are known to be finite: ranges are then
// only looked at, and the last one updates everything.
void CudaProgram::update(const UpdateRule& rule, std::size_t begin, std::size_t end) {
  set_rule(rule);
  Replays::Key key = {2, begin, end};
  add_rule(key, rule);
  replays_.run("update", key, [&] {
    if (!loss_scale_.data()) return update_range(rule, begin, end);
    auto* scale = reinterpret_cast<LossScale*>(loss_scale_.data());
    run(FindInfinite{reinterpret_cast<const float*>(gradients_) + begin, end - begin, scale},
        end - begin);
    if (end < plan_.arena_elements) return;
    update_range(rule, 0, end);
    runtime_.launch(AdjustScale{scale}, {1, 1, 0}, compute_.stream());
  });
}

void CudaProgram::update_range(const UpdateRule& rule, std::size_t begin, std::size_t end) {
  const auto at = [begin](const Memory& memory) {
    return memory.data() ? floats(memory) + begin : nullptr;
  };
  const auto* decays = reinterpret_cast<const std::uint8_t*>(decays_.data());
  with_type(plan_.activation, [&](auto type) {
    using T = decltype(type);
    T* copy = narrow() ? reinterpret_cast<T*>(narrow_parameters_.data()) + begin : nullptr;
    const UpdateWork<T> work{
        at(parameters_),
        at(first_moments_),
        at(second_moments_),
        reinterpret_cast<const float*>(gradients_) + begin,
        copy,
        reinterpret_cast<const UpdateRule*>(rule_.data()),
        reinterpret_cast<const LossScale*>(loss_scale_.data()),
        rule.clip_norm > 0 ? reinterpret_cast<const ClipState*>(clip_.data()) : nullptr,
        rule.decays() ? decays + begin / kDecayGroup : nullptr,
        end - begin};
    if (end > begin) {
      run_update(runtime_, update_way_, work, compute_.stream());
    }
  });
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    const Operation& op = plan_.operations[i];
    if (!prepared_[i].conv) continue;
    const std::size_t weight = offset(op.weight);
    if (weight >= begin && weight < end) refresh_reordered(op, prepared_[i]);
  }
}

void CudaProgram::refresh_reordered(const Operation& op, Prepared& prepared) {
  const PreparedConv& conv = *prepared.conv;
  if (!conv.reordered_w.data()) return;
  with_type(plan_.activation, [&](auto type) {
    using T = decltype(type);
    const std::size_t weights = conv.reordered_w.bytes() / sizeof(T);
    run(ReorderWeights<T>{parameter(op.weight), static_cast<T*>(conv.w), weights,
                          weight_layout(op, conv)},
        weights);
  });
}

// The copies of parameters that products read, after a host wrote parameters.
void CudaProgram::refresh_copies() {
  copies_stale_ = false;
  if (narrow()) {
    with_type(plan_.activation, [&](auto type) {
      using T = decltype(type);
      run_vectors(
          Convert<T, float>{floats(parameters_), reinterpret_cast<T*>(narrow_parameters_.data()),
                            plan_.arena_elements},
          plan_.arena_elements);
    });
  }
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    if (prepared_[i].conv) refresh_reordered(plan_.operations[i], prepared_[i]);
  }
}

}  // namespace paceline::cuda
