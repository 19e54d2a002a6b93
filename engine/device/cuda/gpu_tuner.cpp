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
constexpr std::size_t kBlocksEach = 8;
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
    const auto fill = [&](auto element) {
      using T = decltype(element);
      const auto blocks = static_cast<unsigned>(std::min<std::size_t>(
          (elements + kThreads - 1) / kThreads, 8 * runtime_.multiprocessors()));
      runtime_.launch(Randomize<T>{static_cast<T*>(memory), elements, ++seed_},
                      {std::max(1U, blocks), kThreads, 0}, lane_.stream());
    };
    if (type == DType::f32) {
      fill(float{});
    } else if (type == DType::bf16) {
      fill(Bf16{});
    } else if (type == DType::u8) {
      elements /= 2;  // any bits will do
      fill(Half{});
    } else {
      fill(Half{});
    }
    lane_.drain();
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

  std::vector<double> time(const Work& work, int warm_ups, int runs) override {
    // Not kept: the program needs the room.
    const Memory flushed = runtime_.device_memory(kFlushed);
    wake(flushed);
    for (int i = 0; i < warm_ups; ++i) work(lane_.stream());
    std::vector<double> seconds;
    for (int i = 0; i < runs; ++i) {
      runtime_.clear(flushed.data(), flushed.bytes(), lane_.stream());
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
  // A card that had nothing to do lowers its clocks: what is measured first would look slow.
  void wake(const Memory& memory) {
    const double begin = now_seconds();
    if (begin - busy_until_ < kIdleSeconds) return;
    const auto blocks = static_cast<unsigned>(kBlocksEach * runtime_.multiprocessors());
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
  double busy_until_ = -kIdleSeconds;
  std::uint32_t seed_ = 0;
};

}  // namespace

std::unique_ptr<Tuner> make_gpu_tuner(Runtime& runtime, std::string card) {
  return std::make_unique<GpuTuner>(runtime, std::move(card));
}

}  // namespace paceline::cuda
