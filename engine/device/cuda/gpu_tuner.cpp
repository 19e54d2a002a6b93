#include <algorithm>
#include <limits>
#include <utility>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/device/cuda/gpu_runtime.h"
#include "engine/device/cuda/kernels/probe.h"
#include "engine/device/cuda/lane.h"

namespace paceline::cuda {

namespace {

constexpr std::size_t kFlushed = std::size_t{256} << 20;  // more than any card's cache
constexpr unsigned kThreads = 256;
constexpr double kIdleSeconds = 0.25, kWakeSeconds = 0.1;
constexpr unsigned kBlocksEach = 8;
constexpr int kRounds = 20000;  // some milliseconds

class GpuTuner final : public Tuner {
 public:
  GpuTuner(Runtime& runtime, std::string card)
      : runtime_(runtime), card_(std::move(card)), lane_(runtime), begin_(runtime), end_(runtime) {}

  std::string card() const override { return card_; }

  std::shared_ptr<void> allocate(std::size_t bytes) override {
    auto memory = std::make_shared<Memory>(runtime_.device_memory(bytes));
    return {memory, memory->data()};
  }

  void randomize(void* memory, std::size_t elements, DType type) override {
    with_type(type, [&](auto element) {
      using T = decltype(element);
      runtime_.launch(Randomize<T>{static_cast<T*>(memory), elements, ++seed_},
                      {count_blocks(elements), kThreads, 0}, lane_.stream());
    });
    lane_.drain();
  }

  void poison(void* memory, std::size_t bytes) override {
    runtime_.fill(memory, 0xFF, bytes, lane_.stream());
  }

  void copy(void* to, const void* from, std::size_t bytes) override {
    runtime_.copy(to, from, bytes, lane_.stream());
  }

  ResultDifference compare(const void* result, const void* reference, std::size_t elements,
                           DType type) override {
    std::vector<ResultDifference> found(count_blocks(elements));
    const std::size_t most = count_blocks(std::numeric_limits<std::size_t>::max() / 2);
    if (!differences_.data()) differences_ = runtime_.device_memory(most * sizeof found[0]);
    auto* differences = reinterpret_cast<ResultDifference*>(differences_.data());
    with_type(type, [&](auto element) {
      using T = decltype(element);
      runtime_.launch(
          Compare<T>{static_cast<const T*>(result), static_cast<const T*>(reference), elements,
                     differences},
          {static_cast<unsigned>(found.size()), Compare<T>::kThreads, Compare<T>::shared_bytes()},
          lane_.stream());
    });
    runtime_.copy(found.data(), differences, found.size() * sizeof found[0], lane_.stream());
    lane_.drain();
    ResultDifference all;
    for (const ResultDifference& one : found) all.add(one);
    return all;
  }

  Support capture(const Work& work) override {
    runtime_.begin_capture(lane_.stream());
    try {
      work(lane_.stream());
      runtime_.end_capture(lane_.stream());
      return Support::yes();
    } catch (const Error& error) {
      runtime_.cancel_capture(lane_.stream());
      return Support::no(error.what());
    }
  }

  double run(const Work& work) override {
    const double begin = now_seconds();
    work(lane_.stream());
    lane_.drain();
    return now_seconds() - begin;
  }

  std::shared_ptr<void> allocate_flushed() override {
    auto memory = std::make_shared<Memory>(runtime_.device_memory(kFlushed));
    flushed_ = memory;
    return memory;
  }

  std::vector<double> time(const Work& work, int warm_ups, int runs) override {
    const std::shared_ptr<Memory> flushed = flushed_.lock();
    if (!flushed) throw internal_error("nothing to overwrite the card's cache by");
    wake(*flushed);
    for (int i = 0; i < warm_ups; ++i) work(lane_.stream());
    std::vector<double> seconds;
    for (int i = 0; i < runs; ++i) {
      runtime_.fill(flushed->data(), 0, flushed->bytes(), lane_.stream());
      runtime_.record(begin_, lane_.stream());
      work(lane_.stream());
      runtime_.record(end_, lane_.stream());
      lane_.drain();
      seconds.push_back(runtime_.seconds_between(begin_, end_));
    }
    busy_until_ = now_seconds();
    return seconds;
  }

 private:
  unsigned count_blocks(std::size_t elements) const {
    const std::size_t most = kBlocksEach * runtime_.multiprocessors();
    return static_cast<unsigned>(std::clamp<std::size_t>(elements / kThreads, 1, most));
  }

  // A card that had nothing to do lowers its clocks: what is measured first would look slow.
  void wake(const Memory& memory) {
    const double begin = now_seconds();
    if (begin - busy_until_ < kIdleSeconds) return;
    const unsigned blocks = kBlocksEach * runtime_.multiprocessors();
    while (now_seconds() - begin < kWakeSeconds) {
      runtime_.launch(MultiplyAdd{reinterpret_cast<float*>(memory.data()), kRounds},
                      {blocks, kThreads, 0}, lane_.stream());
      lane_.drain();
    }
  }

  Runtime& runtime_;
  std::string card_;
  StreamLane lane_;
  OwnedEvent begin_, end_;
  Memory differences_;
  std::weak_ptr<Memory> flushed_;  // not kept: the program needs the room
  double busy_until_ = -kIdleSeconds;
  std::uint32_t seed_ = 0;
};

}  // namespace

std::unique_ptr<Tuner> make_gpu_tuner(Runtime& runtime, std::string card) {
  return std::make_unique<GpuTuner>(runtime, std::move(card));
}

}  // namespace paceline::cuda
