#include "engine/train/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/launch/process_rank.h"

namespace paceline {

namespace {

std::unique_ptr<Trainer> make_trainer(const SessionSetup& setup, Communicator& communicator,
                                      int index, bool shares_process) {
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
  const bool is_gpu = trainer.device->memory_kind() == MemoryKind::device;
  auto made = std::make_unique<Trainer>(std::move(trainer));
  if (shares_process && is_gpu) load_libraries(made->program(), made->plan(), communicator);
  return made;
}

void guarded(const SessionSetup& setup, Communicator& communicator, int index, bool shares_process,
             TrainingOutcome& outcome, FirstError& first) {
  // Outlives the abort, which ends the sums that read and write its memory.
  std::unique_ptr<Trainer> trainer;
  try {
    trainer = make_trainer(setup, communicator, index, shares_process);
    outcome = trainer->run();
  } catch (Error& error) {
    if (!error.rank() && communicator.size() > 1) error.on_rank(communicator.rank());
    const bool consequence = error.kind() == ErrorKind::peer_lost;
    if (!consequence && setup.failed) setup.failed(error);
    communicator.abort(error.what());
    first.keep(consequence);  // a replica that was released says less than the peer that gave up
  } catch (const std::exception&) {
    const Error error = caught_error();
    if (setup.failed) setup.failed(error);
    communicator.abort(error.what());
    first.keep();
  }
}

// What a rank tells the others.
struct CacheMessage {
  std::uint64_t node = 0;
  std::int32_t replicas = 0;  // of its process; 0: another rank speaks for that
  std::int32_t failed = 0;    // to make or open the node's cache
  CacheRegion::Address address;
  std::array<char, 160> why{};
};

class Sharing {
 public:
  Sharing(Communicator& communicator, DatasetPair* data, const InputOptions& options,
          int replicas_here)
      : communicator_(communicator),
        data_(data),
        options_(options),
        messages_(static_cast<std::size_t>(communicator.size())) {
    mine_.node = find_node(communicator.rank());
    mine_.replicas = data ? replicas_here : 0;
  }

  CacheSharing agree() {
    exchange();
    const bool shares = data_ && count_tasks(mine_.node) > 1;
    const bool leads = find_leader(mine_.node) == rank();
    if (shares && leads) attempt(&Sharing::make);
    exchange();
    if (shares && !leads) attempt(&Sharing::open);
    exchange();
    CacheSharing result{.ranks = least_ranks(), .refusal = first_refusal()};
    if (!data_) return result;
    if (!is_shared(mine_.node)) {
      keep_apart(*data_, options_);
      result.bytes = options_.cache_bytes / static_cast<std::size_t>(options_.tasks_of_node);
      return result;
    }
    keep_in(*data_, area_);
    result.bytes = budget();
    result.speaks = leads;
    return result;
  }

 private:
  std::size_t rank() const { return static_cast<std::size_t>(communicator_.rank()); }

  void exchange() { communicator_.all_gather(&mine_, sizeof mine_, messages_.data()); }

  // A part of it where not all of the node's tasks are seen as its own.
  std::size_t budget() const {
    const auto tasks = static_cast<std::size_t>(options_.tasks_of_node);
    return options_.cache_bytes / tasks * std::min(count_tasks(mine_.node), tasks);
  }

  void make() {
    area_ = std::make_shared<CacheRegion>(cache_size(*data_, options_, budget()),
                                          CacheRegion::Reach::node, options_.cache_folder);
    mine_.address = area_->address();
  }

  void open() {
    const CacheMessage& leader = messages_[find_leader(mine_.node)];
    if (leader.failed) return;
    area_ = std::make_shared<CacheRegion>(leader.address, cache_size(*data_, options_, 0).samples);
  }

  void attempt(void (Sharing::*step)()) try {
    (this->*step)();
  } catch (const std::exception& error) {
    mine_.failed = 1;
    std::string why = fmt::format("rank {}: {}", rank(), error.what());
    why.resize(std::min(why.size(), mine_.why.size() - 1));
    std::copy(why.begin(), why.end(), mine_.why.begin());
  }

  bool is_first_on(const CacheMessage& message, std::uint64_t node) const {
    return message.replicas > 0 && message.node == node;
  }
  std::size_t count_tasks(std::uint64_t node) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        messages_, [&](const CacheMessage& message) { return is_first_on(message, node); }));
  }
  std::size_t find_leader(std::uint64_t node) const {
    const auto leader = std::ranges::find_if(
        messages_, [&](const CacheMessage& message) { return is_first_on(message, node); });
    return static_cast<std::size_t>(leader - messages_.begin());
  }
  bool is_shared(std::uint64_t node) const {
    return count_tasks(node) > 1 &&
           std::ranges::none_of(messages_, [&](const CacheMessage& message) {
             return message.node == node && message.failed;
           });
  }

  int least_ranks() const {
    int least = communicator_.size();
    for (const CacheMessage& message : messages_) {
      if (message.replicas == 0) continue;
      int ranks = 0;
      for (const CacheMessage& other : messages_)
        ranks += other.node == message.node ? other.replicas : 0;
      least = std::min(least, is_shared(message.node) ? ranks : message.replicas);
    }
    return least;
  }

  std::string first_refusal() const {
    const auto found = std::ranges::find_if(
        messages_, [](const CacheMessage& message) { return message.failed != 0; });
    return found == messages_.end() ? "" : found->why.data();
  }

  Communicator& communicator_;
  DatasetPair* data_;
  const InputOptions& options_;
  CacheMessage mine_;
  std::vector<CacheMessage> messages_;  // of all ranks
  std::shared_ptr<CacheRegion> area_;
};

}  // namespace

void load_libraries(Program& program, const Plan& plan, Communicator& communicator) {
  const auto samples = static_cast<std::size_t>(plan.batch);
  std::vector<std::vector<double>> statistics;
  for (std::size_t i = 0; i < plan.statistics.size(); ++i) {
    statistics.push_back(program.read_statistic(static_cast<int>(i)));
  }
  const std::vector<std::uint8_t> images(samples * plan.sample.elements());
  const std::vector<std::int32_t> labels(samples);
  const std::vector<std::uint32_t> positions(samples);
  const BatchInUse in_use(program, communicator);
  Batch batch;
  batch.images = images.data();
  batch.labels = labels.data();
  batch.positions = positions.data();
  batch.samples = batch.global_samples = plan.batch;
  program.forward(batch, Mode::train);
  program.backward(static_cast<int>(plan.operations.size()) - 1, 0);
  program.take_sums();
  for (std::size_t i = 0; i < statistics.size(); ++i) {
    program.write_statistic(static_cast<int>(i), statistics[i]);
  }
}

TrainingOutcome run_session(const SessionSetup& setup,
                            std::vector<std::unique_ptr<Communicator>>& communicators) {
  std::vector<TrainingOutcome> outcomes(communicators.size());
  FirstError first;
  std::vector<std::thread> threads;
  const auto train = [&](std::size_t i) {
    guarded(setup, *communicators[i], static_cast<int>(i), communicators.size() > 1, outcomes[i],
            first);
  };
  for (std::size_t i = 1; i < communicators.size(); ++i) threads.emplace_back(train, i);
  train(0);
  for (std::thread& thread : threads) thread.join();
  first.rethrow();
  return std::move(outcomes[0]);
}

CacheSharing share_cache(Communicator& communicator, DatasetPair* data, const InputOptions& options,
                         int replicas_here) {
  return Sharing(communicator, data, options, replicas_here).agree();
}

}  // namespace paceline
