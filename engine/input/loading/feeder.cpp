#include "engine/input/loading/feeder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/core/clock.h"
#include "engine/core/lane.h"

namespace paceline {

namespace {

constexpr std::size_t kSlotsPerThread = 3;

// A set that is staged once needs no more than one thread, and few slots: pinning memory takes
// time.
int threads_for(const Dataset& dataset, const Feeder::Setup& setup) {
  return dataset.synthetic && setup.repeat_synthetic ? std::min(setup.threads, 1) : setup.threads;
}

}  // namespace

Feeder::WorkerState::WorkerState(const Feeder& feeder)
    : stream(feeder.stream_spec_), fetcher(feeder.dataset_) {
  drawn.reserve(feeder.setup_.batch);
  if (feeder.setup_.augment.any()) fetched.resize(feeder.dataset_.sample_bytes());
}

Feeder::Feeder(const Dataset& dataset, const StreamSpec& stream, const Setup& setup)
    : dataset_(dataset),
      stream_spec_(stream),
      setup_(setup),
      augment_key_(philox_key(stream.seed, Stream::augment)),
      inline_hand_(*this) {
  setup_.threads = threads_for(dataset, setup);
  slots_.resize(setup_.threads ? kSlotsPerThread * static_cast<std::size_t>(setup_.threads) : 1);
  for (Slot& slot : slots_) {
    slot.batch.image_type = dataset.image_type;
    const std::size_t bytes = setup.batch * dataset.sample_bytes();
    slot.images = setup.allocate(bytes);
    slot.batch.images = {reinterpret_cast<std::uint8_t*>(slot.images.data()), bytes};
    slot.batch.labels.assign(setup.batch, 0);
    slot.batch.positions.assign(setup.batch, 0);
  }
  for (int worker = 0; worker < setup_.threads; ++worker) {
    threads_.emplace_back([this, worker] { work(worker); });
  }
}

Feeder::~Feeder() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Feeder::prepare(Slot& slot, std::size_t index, WorkerState& hand) const {
  const auto parts = static_cast<std::size_t>(setup_.parts);
  const std::size_t step = setup_.first_step + index / parts;
  const int part = static_cast<int>(index % parts);
  StagedBatch& batch = slot.batch;
  batch.global_samples = hand.stream.samples_of_step(step);
  batch.pass = hand.stream.pass_of_step(step);
  const std::size_t mine = take_slice(batch.global_samples, setup_.rank, setup_.ranks).count;
  batch.samples = take_slice(mine, part, setup_.parts).count;
  if (slot.staged_once && dataset_.synthetic && setup_.repeat_synthetic) return;
  std::vector<Drawn>& drawn = hand.drawn;
  hand.stream.draw(step, setup_.rank, setup_.ranks, drawn, part, setup_.parts);
  const std::size_t bytes = dataset_.sample_bytes();
  constexpr std::size_t kAhead = 4;  // samples lie far apart: fetch early
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    if (i + kAhead < drawn.size()) hand.fetcher.expect(drawn[i + kAhead].sample);
    batch.labels[i] = stage(drawn[i], hand, batch.images.data() + i * bytes);
    batch.positions[i] = drawn[i].position;
  }
  slot.counts = hand.fetcher.take_counts();
  slot.counts.augmented = std::exchange(hand.augmented, 0);
  slot.staged_once = drawn.size() == setup_.batch;
}

// Returns the label.
std::int32_t Feeder::stage(const Drawn& drawn, WorkerState& hand, std::uint8_t* out) const {
  if (!setup_.augment.any()) return hand.fetcher.fetch(drawn.sample, out);
  const Change change = draw_change(setup_.augment, augment_key_, drawn.pass, drawn.position);
  if (!change.any()) return hand.fetcher.fetch(drawn.sample, out);
  const std::int32_t label = hand.fetcher.fetch(drawn.sample, hand.fetched.data());
  apply(change, hand.fetched.data(), dataset_.height, dataset_.width,
        dataset_.channels * static_cast<int>(size_of(dataset_.image_type)), out);
  ++hand.augmented;
  return label;
}

void Feeder::prepare_traced(Slot& slot, std::size_t batch, WorkerState& hand, int worker) const {
  if (setup_.trace == nullptr) return prepare(slot, batch, hand);
  const double begin = now_seconds();
  prepare(slot, batch, hand);
  const std::size_t step = setup_.first_step + batch / static_cast<std::size_t>(setup_.parts);
  setup_.trace->note("batch", begin, now_seconds(), step + 1, 0,
                     static_cast<std::uint32_t>(worker));
}

const StagedBatch& Feeder::next() {
  const std::size_t batch = given_++;
  Slot& slot = slot_at(batch);
  if (threads_.empty()) {
    prepare_traced(slot, batch, inline_hand_, 0);
    counts_ += slot.counts;
    return slot.batch;
  }
  std::unique_lock lock(mutex_);
  if (batch > 0) {
    slot_at(batch - 1).state = State::empty;
    changed_.notify_all();
  }
  ready_batches_ += static_cast<double>(std::ranges::count(slots_, State::filled, &Slot::state));
  changed_.wait(lock, [&] { return slot.state == State::filled || error_; });
  if (slot.state != State::filled) std::rethrow_exception(error_);
  counts_ += slot.counts;
  return slot.batch;
}

void Feeder::work(int worker) try {
  name_this_thread("input " + std::to_string(worker));
  if (!setup_.cpus.empty()) {
    bind_to(setup_.cpus[static_cast<std::size_t>(worker) % setup_.cpus.size()]);
  }
  WorkerState hand(*this);
  const auto stride = static_cast<std::size_t>(setup_.threads);
  const std::size_t batches = setup_.steps * static_cast<std::size_t>(setup_.parts);
  for (auto batch = static_cast<std::size_t>(worker); batch < batches; batch += stride) {
    Slot& slot = slot_at(batch);  // only this worker fills it: slots are a multiple of threads
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || slot.state == State::empty; });
      if (stop_) return;
    }
    prepare_traced(slot, batch, hand, worker);
    {
      std::lock_guard lock(mutex_);
      slot.state = State::filled;
    }
    changed_.notify_all();
  }
} catch (...) {
  {
    std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
  changed_.notify_all();
}

}  // namespace paceline
