#include "engine/train/session.h"

#include <exception>
#include <mutex>
#include <thread>

#include "engine/core/error.h"

namespace paceline {

namespace {

// Keeps the error that explains the others: a replica that was released because a peer gave up
// says less than that peer.
class FirstCause {
 public:
  void add(std::exception_ptr error, bool is_consequence) {
    std::lock_guard lock(mutex_);
    if (!error_ || (was_consequence_ && !is_consequence)) {
      error_ = error;
      was_consequence_ = is_consequence;
    }
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
  bool was_consequence_ = false;
};

std::unique_ptr<Trainer> make_trainer(const SessionSetup& setup, Communicator& communicator,
                                      int index) {
  Trainer::Setup trainer;
  trainer.config = &setup.config;
  trainer.network = setup.network;
  trainer.data = setup.data;
  trainer.communicator = &communicator;
  trainer.device = setup.make_device(index);
  trainer.input_threads = setup.input_threads;
  trainer.first_sum_seconds = setup.first_sum_seconds;
  trainer.counts_caches = setup.counts_caches && index == 0;
  if (!setup.input_cpus.empty()) {
    trainer.input_cpus = setup.input_cpus[static_cast<std::size_t>(index)];
  }
  trainer.checkpoints = setup.checkpoints;
  if (!setup.cpus.empty()) trainer.checkpoint_cpus = setup.cpus[static_cast<std::size_t>(index)];
  trainer.trace = setup.trace;
  if (index == 0) trainer.entered = setup.entered;
  if (communicator.rank() == 0) {
    trainer.events = setup.events;
    trainer.report = setup.report;
    trainer.note = setup.note;
    trainer.notify = setup.notify;
  }
  return std::make_unique<Trainer>(std::move(trainer));
}

void guarded(const SessionSetup& setup, Communicator& communicator, int index,
             TrainingOutcome& outcome, FirstCause& cause) {
  // Outlives the abort, which ends the sums that read and write its memory.
  std::unique_ptr<Trainer> trainer;
  try {
    trainer = make_trainer(setup, communicator, index);
    outcome = trainer->run();
  } catch (Error& error) {
    if (!error.rank() && communicator.size() > 1) error.on_rank(communicator.rank());
    const bool consequence = error.kind() == ErrorKind::peer_lost;
    if (!consequence && setup.failed) setup.failed(error);
    communicator.abort(error.what());
    cause.add(std::current_exception(), consequence);
  } catch (const std::exception& error) {
    const Error internal(ErrorKind::internal, error.what());
    if (setup.failed) setup.failed(internal);
    communicator.abort(error.what());
    cause.add(std::current_exception(), false);
  }
}

}  // namespace

TrainingOutcome run_session(const SessionSetup& setup,
                            std::vector<std::unique_ptr<Communicator>>& communicators) {
  std::vector<TrainingOutcome> outcomes(communicators.size());
  FirstCause cause;
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < communicators.size(); ++i) {
    threads.emplace_back(
        [&, i] { guarded(setup, *communicators[i], static_cast<int>(i), outcomes[i], cause); });
  }
  guarded(setup, *communicators[0], 0, outcomes[0], cause);
  for (std::thread& thread : threads) thread.join();
  cause.rethrow();
  return std::move(outcomes[0]);
}

}  // namespace paceline
