// Prepares one rank's batches in staging slots, in order, on input threads or inline.
//
// Worker w of W prepares batches w, w + W, ... A slot is reused when its previous batch was
// returned. The content of a batch does not depend on the number of threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "engine/core/clock.h"
#include "engine/core/memory.h"
#include "engine/input/decode/image.h"
#include "engine/input/loading/dataset.h"
#include "engine/input/loading/stream.h"

namespace paceline {

struct StagedBatch {
  std::span<std::uint8_t> images;  // room for a full batch
  DType image_type = DType::u8;    // see Dataset
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> positions;
  std::size_t samples = 0, global_samples = 0;
  std::uint32_t pass = 0;
};

class Feeder {
 public:
  struct Setup {
    int rank = 0, ranks = 1;
    std::size_t batch = 0;  // of this rank, maximum
    std::size_t first_step = 0, steps = 0;
    int parts = 1;          // batches per step of this rank
    int threads = 0;        // 0: next() prepares batches inline
    std::vector<int> cpus;  // of the threads
    // Allocates slots, in memory from which the device copies fast.
    std::function<Memory(std::size_t bytes)> allocate = host_memory;
    // Stages synthetic samples once per slot and reuses them, so that a run without input cost can
    // be measured.
    bool repeat_synthetic = true;
    Augmentation augment{};  // of staged samples, by the stream's seed
    // Records each prepared batch with its step (from 1) and thread.
    TraceRing* trace = nullptr;
  };

  // `dataset` outlives the feeder.
  Feeder(const Dataset& dataset, const StreamSpec& stream, const Setup& setup);
  ~Feeder();

  // The next batch, i.e. a step or a part of one. Valid until the next call. Throws the error of an
  // input thread.
  const StagedBatch& next();

  // Number of ready batches, summed over calls of next(); 0 if inline.
  double ready_batches() const { return ready_batches_; }

  // Counts for the returned batches, over all threads.
  InputCounts counts() const { return counts_; }

 private:
  enum class State { empty, filled };
  struct Slot {
    Memory images;
    StagedBatch batch;
    State state = State::empty;
    bool staged_once = false;
    InputCounts counts;  // of this batch
  };
  // Per-thread state.
  struct WorkerState {
    explicit WorkerState(const Feeder& feeder);
    SampleStream stream;
    SampleFetcher fetcher;
    std::vector<Drawn> drawn;
    std::vector<std::uint8_t> fetched;  // a sample before augmentation
    std::size_t augmented = 0;          // in the current batch
  };

  void prepare(Slot& slot, std::size_t batch, WorkerState& hand) const;
  std::int32_t stage(const Drawn& drawn, WorkerState& hand, std::uint8_t* out) const;
  void prepare_traced(Slot& slot, std::size_t batch, WorkerState& hand, int worker) const;
  void work(int worker);
  Slot& slot_at(std::size_t batch) { return slots_[batch % slots_.size()]; }

  const Dataset& dataset_;
  StreamSpec stream_spec_;
  Setup setup_;
  PhiloxKey augment_key_;
  std::vector<Slot> slots_;
  WorkerState inline_hand_;
  std::size_t given_ = 0;  // number of returned batches
  double ready_batches_ = 0;
  InputCounts counts_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace paceline
