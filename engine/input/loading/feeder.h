// Prepares the batches of one rank in staging slots, in order, on input threads or inline.
//
// Worker w of W prepares batches w, w + W, ...; a slot is taken again only when the batch that used
// it was given back. What a batch holds does not depend on the number of threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "engine/core/memory.h"
#include "engine/core/trace.h"
#include "engine/input/decode/augment.h"
#include "engine/input/loading/dataset.h"
#include "engine/input/loading/stream.h"

namespace paceline {

struct StagedBatch {
  std::span<std::uint8_t> images;  // room for a whole batch
  DType image_type = DType::u8;    // as Dataset has it
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> positions;
  std::size_t samples = 0, global_samples = 0;
  std::uint32_t pass = 0;
};

class Feeder {
 public:
  struct Setup {
    int rank = 0, ranks = 1;
    std::size_t batch = 0;  // of this rank, at most
    std::size_t first_step = 0, steps = 0;
    int parts = 1;          // batches that this rank's samples of a step come in
    int threads = 0;        // 0: prepared by next() itself
    std::vector<int> cpus;  // for the threads
    // Of the slots, in what memory a device copies from best.
    std::function<Memory(std::size_t bytes)> allocate = host_memory;
    // A synthetic set is staged once a slot and then used again, so that a run without input cost
    // can be measured.
    bool repeat_synthetic = true;
    Augmentation augment{};  // of each sample that is staged, by the stream's seed
    // Notes each batch that is prepared, by its step from 1 and its thread.
    TraceRing* trace = nullptr;
  };

  // `dataset` outlives the feeder.
  Feeder(const Dataset& dataset, const StreamSpec& stream, const Setup& setup);
  ~Feeder();

  // The next batch, a part of a step or all of it, valid until the next call. Throws what an input
  // thread threw.
  const StagedBatch& next();

  // Batches that were ready when next() was called, summed over calls; 0 inline.
  double ready_batches() const { return ready_batches_; }

  // What was read and decoded for the batches that were handed out, by all threads.
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
  // What a thread that prepares batches needs for itself.
  struct WorkerState {
    explicit WorkerState(const Feeder& feeder);
    SampleStream stream;
    SampleFetcher fetcher;
    std::vector<Drawn> drawn;
    std::vector<std::uint8_t> fetched;  // a sample before it is augmented
    std::size_t augmented = 0;          // since a batch was begun
  };

  void prepare(Slot& slot, std::size_t batch, WorkerState& hand) const;
  std::int32_t stage(const Drawn& drawn, WorkerState& hand, std::uint8_t* out) const;
  void prepare_traced(Slot& slot, std::size_t batch, WorkerState& hand, int worker) const;
  void work(int worker);
  Slot& slot_of(std::size_t batch) { return slots_[batch % slots_.size()]; }

  const Dataset& dataset_;
  StreamSpec stream_spec_;
  Setup setup_;
  PhiloxKey augment_key_;
  std::vector<Slot> slots_;
  WorkerState inline_hand_;
  std::size_t given_ = 0;  // batches handed out so far
  double ready_batches_ = 0;
  InputCounts counts_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace paceline
