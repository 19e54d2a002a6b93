#include "engine/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/train/outcome.h"
#include "engine/train/replica_check.h"
#include "engine/train/weights.h"

namespace paceline {

namespace {

constexpr double kReportSeconds = 2;

StreamSpec make_stream(const TrainConfig& config, const Dataset& train) {
  return {.seed = config.seed,
          .samples = train.samples,
          .global_batch = compute_global_batch(config),
          .shuffle_buffer = config.shuffle_buffer,
          .drop_last = config.drop_last,
          .steps_per_epoch = config.steps_per_epoch};
}

void check_samples(const Dataset& data, const Network& network) {
  const Shape shape{data.height, data.width, data.channels};
  if (shape == network.sample() && data.classes == network.classes()) return;
  throw input_error(
      fmt::format("samples of {} in {} classes do not fit network {}: it takes {} in {}",
                  shape.text(), data.classes, network.name(), network.sample().text(),
                  network.classes()),
      data.name, "give the data set of this workload");
}

std::size_t steps_in_all(const TrainConfig& config, const StreamSpec& stream) {
  const std::size_t steps =
      SampleStream(stream).steps_per_epoch() * static_cast<std::size_t>(config.epochs);
  return config.step_limit ? std::min(steps, config.step_limit) : steps;
}

}  // namespace

Trainer::Trainer(Setup setup)
    : setup_(std::move(setup)), config_(*setup_.config), communicator_(*setup_.communicator) {
  check_samples(setup_.data->train, *setup_.network);
  check_samples(setup_.data->test, *setup_.network);
  Device& device = *setup_.device;
  std::vector<std::string> notes;
  plan_ = make_plan(
      *setup_.network, config_.batch_per_replica, device.precision(),
      [&](const Operation& op) { return device.supports(op); }, &notes);
  check_common_plan(communicator_, plan_, device);
  const std::size_t bytes = plan_.arena_elements * size_of(plan_.real);
  Communicator& reducing = reducing_communicator();
  sums_from_host_ = reducing.sums_from_host();
  gradients_ = reducing.allocate(bytes);
  outcome_.plan.gradients_in_backend_memory = gradients_.data() != nullptr;
  outcome_.plan.gradients_staged = staged_ != nullptr;
  if (!gradients_.data()) gradients_ = device.allocate(bytes);
  const double began = now_seconds();
  program_ = device.compile(plan_, gradients_.data());
  program_->reserve(config_.optimizer, config_.accumulate > 1);
  outcome_.timing.compile_seconds = now_seconds() - began;
  memory_ = memory_use(plan_, config_.optimizer, program_->scratch_bytes());
  if (config_.accumulate > 1) memory_.gradients *= 2;  // those that accumulate
  start_weights();
  stream_ = make_stream(config_, setup_.data->train);
  schedule_ = make_schedule(config_, SampleStream(stream_).steps_per_epoch());
  total_steps_ = steps_in_all(config_, stream_);
  if (setup_.checkpoints) resume();
  Lane& comm_lane = sums_from_host_ ? device.host_comm_lane() : device.comm_lane();
  reducer_ = std::make_unique<Reducer>(
      communicator_.size() == 1 ? one_bucket(plan_)
                                : make_buckets(plan_, config_.bucket_mb, config_.last_bucket_mb),
      plan_.real, gradients_.data(), reducing, device.compute_lane(), comm_lane);
  overlap_ = config_.overlap && !comm_lane.is_inline();
  const std::size_t steps_here = total_steps_ - std::min(total_steps_, progress_.step);
  feeding_.rank = communicator_.rank();
  feeding_.ranks = communicator_.size();
  feeding_.batch = static_cast<std::size_t>(config_.batch_per_replica);
  feeding_.steps = steps_here;
  feeding_.parts = config_.accumulate;
  feeding_.threads = setup_.input_threads;
  feeding_.cpus = setup_.input_cpus;
  feeding_.allocate = [&device](std::size_t size) { return device.allocate_staging(size); };
  clock_ = std::make_unique<PhaseClock>(steps_here, device.compute_lane());
  make_observers();
  if (setup_.note) {
    for (const std::string& note : notes) setup_.note(note);
    setup_.note("device " + std::string(setup_.device->name()) + ": " +
                setup_.device->description());
    for (const std::string& line : program_->implementations()) setup_.note(line);
  }
  if (setup_.notify) {
    setup_.notify("memory of a replica " + memory_.text());
    if (const std::string warning = program_->warning(); !warning.empty()) {
      log::warning("{}", warning);
    }
  }
}

// Waits for queued work, as the memory that it uses goes first. Its errors were reported already.
Trainer::~Trainer() {
  Device& device = *setup_.device;
  for (Lane* lane : {&device.comm_lane(), &device.host_comm_lane(), &device.compute_lane()}) {
    try {
      lane->drain();
    } catch (const std::exception&) {
    }
  }
  staged_.reset();  // with the copies that a failed reduction left behind
}

// The communicator if it can reduce gradients in the device's memory, else one that copies them to
// the host and back.
Communicator& Trainer::reducing_communicator() {
  Device& device = *setup_.device;
  if (communicator_.size() == 1 || communicator_.reduces(device.memory_kind())) {
    return communicator_;
  }
  DeviceCopies copies;
  copies.to_host = [&device](void* host, const void* from, std::size_t bytes) {
    device.copy_to_host(host, from, bytes);
  };
  copies.to_device = [&device](void* to, const void* host, std::size_t bytes) {
    device.copy_to_device(to, host, bytes);
  };
  copies.pinned = [&device](std::size_t bytes) { return device.allocate_staging(bytes); };
  copies.pin = [&device](void* data, std::size_t bytes) { return device.pin(data, bytes); };
  staged_ = std::make_unique<StagedCommunicator>(communicator_, std::move(copies));
  return *staged_;
}

void Trainer::resume() {
  CheckpointManager::Run run;
  run.communicator = &communicator_;
  run.device = setup_.device.get();
  run.program = program_.get();
  run.plan = &plan_;
  run.optimizer = config_.optimizer;
  run.global_batch = stream_.global_batch;
  run.cpus = setup_.checkpoint_cpus;
  run.notify = setup_.notify;
  checkpoints_ = std::make_unique<CheckpointManager>(*setup_.checkpoints, std::move(run));
  if (checkpoints_->saves() && communicator_.rank() == 0) {
    memory_.checkpoint = memory_.state();
    if (setup_.checkpoints->content == CheckpointContent::model) {
      memory_.checkpoint -= memory_.moments;
    }
  }
  if (const auto before = checkpoints_->resume()) restore_progress(*before);
}

// Counts steps done before in steps of this run, which may have another number of ranks.
void Trainer::restore_progress(const TrainingProgress& before) {
  progress_ = before;
  stream_.start = progress_.position;
  stream_.start_in_epoch = progress_.position_in_epoch;
  const SampleStream stream(stream_);
  const std::size_t per_epoch = stream.steps_per_epoch();
  progress_.step = static_cast<std::size_t>(progress_.epoch) * per_epoch + per_epoch -
                   stream.steps_of_first_epoch();
  epoch_totals_ = LossSums::of(progress_.sums);
  outcome_.quality.epochs = progress_.epochs;
  for (const EpochFacts& epoch : progress_.epochs) schedule_->end_epoch(epoch);
  outcome_.resumed = true;
  outcome_.resumed_after = progress_.step;
  if (progress_.position_in_epoch == 0) end_if_goal_is_reached();
}

// The replica check comes first, so that replicas that differ are not checkpointed.
void Trainer::make_observers() {
  observers_.push_back(make_replica_watch(communicator_, *program_, plan_, config_));
  if (setup_.report) observers_.push_back(make_reporter(setup_.report));
  if (setup_.events) {
    observers_.push_back(make_event_writer(*setup_.events, setup_.checkpoint_cpus));
  }
  if (checkpoints_) observers_.push_back(make_checkpointer(*checkpoints_));
  if (setup_.trace) observers_.push_back(make_trace_writer(*setup_.trace));
}

TrainingState Trainer::state() {
  return {config_,
          communicator_,
          *program_,
          plan_,
          *clock_,
          *reducer_,
          progress_,
          outcome_,
          epoch_totals_,
          rate_,
          total_steps_,
          not_training_,
          [this] { drain(); },
          [this](RunPart part) { return enter(part); }};
}

void Trainer::start_weights() {
  initialise_parameters(*program_, plan_, config_.seed);
  if (config_.weights.empty()) return;
  std::vector<std::string> notes;
  load_weights(*program_, plan_, config_.weights, notes);
  for (const std::string& note : notes) {
    if (setup_.notify) setup_.notify("weights: " + note);
  }
}

Batch Trainer::make_batch(const StagedBatch& staged, int part) const {
  Batch batch;
  batch.images = staged.images.data();
  batch.image_type = staged.image_type;
  batch.labels = staged.labels.data();
  batch.positions = staged.positions.data();
  batch.samples = static_cast<int>(staged.samples);
  batch.global_samples = static_cast<int>(staged.global_samples);
  batch.epoch = staged.pass;
  batch.dropout_key = philox_key(config_.seed, Stream::dropout);
  // Steps are counted alike on all ranks; batches are not, as evaluations have different numbers.
  const auto parts = static_cast<std::size_t>(config_.accumulate);
  batch.slot = static_cast<int>((progress_.step * parts + static_cast<std::size_t>(part)) % 2);
  return batch;
}

void Trainer::step(const Batch& batch) {
  load(batch);
  const UpdateRule rule = rule_of_step();
  const auto queue = [this, &rule] {
    forward();
    backward_and_reduce();
    apply_updates(rule);
  };
  // Sums of the host are not in the device's lanes, so the device cannot capture the step.
  if (sums_from_host_) return queue();
  std::optional<StreamWait> launch;  // may block on the work that it launches
  if (setup_.device->memory_kind() == MemoryKind::device) {
    launch.emplace(communicator_, "the launch of a step");
  }
  if (!communicator_.can_sum_in_graphs()) return queue();
  std::function<void()> undo_bookkeeping;
  if (communicator_.size() == 1) {
    undo_bookkeeping = [this, ended = clock_->ended()] { clock_->take_back(ended); };
  }
  program_->run_step(config_.update ? &rule : nullptr, queue, undo_bookkeeping);
}

// Runs a step. Gradients of its batches are accumulated, and reduced once. Returns the last batch.
const StagedBatch& Trainer::next_step(Feeder& feeder) {
  for (int part = 0;; ++part) {
    {
      const StreamWait wait(communicator_, "the steps before");
      program_->wait_for_input();
    }
    communicator_.supervision().throw_if_ended();
    const StagedBatch& staged = next_batch(feeder, communicator_);
    if (part + 1 == config_.accumulate) {
      step(make_batch(staged, part));
      return staged;
    }
    load(make_batch(staged, part));
    forward();
    program_->backward(last_operation(), 0);
    program_->accumulate(part == 0 ? Accumulate::first : Accumulate::more, 0, plan_.arena_elements);
    clock_->end(Phase::backward);
  }
}

void Trainer::load(const Batch& batch) {
  program_->load(batch);
  clock_->end(Phase::input);
}

void Trainer::forward() {
  program_->forward(Mode::train);
  clock_->end(Phase::forward);
}

void Trainer::backward_and_reduce() {
  int next = last_operation();
  const auto& buckets = reducer_->buckets();
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    program_->backward(next, buckets[i].operation);
    if (config_.accumulate > 1) {
      program_->accumulate(Accumulate::last, buckets[i].begin, buckets[i].end);
    }
    next = buckets[i].operation - 1;
    if (overlap_) reducer_->start(i);
  }
  clock_->end(Phase::backward);
  if (overlap_) return;
  for (std::size_t i = 0; i < buckets.size(); ++i) reducer_->start(i);
  clock_->end(Phase::communication);
}

void Trainer::apply_updates(const UpdateRule& rule) {
  const auto& buckets = reducer_->buckets();
  if (rule.clip_norm > 0 && config_.update) measure_gradients(rule);
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    reducer_->finish(i);
    if (communicator_.size() > 1) clock_->end(Phase::communication);
    if (config_.update) program_->update(rule, buckets[i].begin, buckets[i].end);
    clock_->end(Phase::update);
  }
}

bool Trainer::run_epoch(TrainingState& run, Feeder& feeder, std::size_t steps) {
  for (std::size_t i = 0; i < steps; ++i) {
    for (const auto& observer : observers_) observer->before_step(run);
    communicator_.supervision().note_step(progress_.step + 1);
    clock_->begin_step();
    count_step(next_step(feeder));
    report_progress(run);
    clock_->end_step();
    bool stop = false;
    for (const auto& observer : observers_) stop |= observer->after_step(run, i + 1 == steps);
    if (stop) return false;
  }
  return true;
}

void Trainer::count_step(const StagedBatch& staged) {
  outcome_.samples += staged.global_samples;
  ++outcome_.steps;
  if (outcome_.steps <= kWarmupSteps) outcome_.warmup_samples = outcome_.samples;
  ++progress_.step;
  progress_.position += staged.global_samples;
  progress_.position_in_epoch += staged.global_samples;
}

// Reduces the gradients' first bucket once while it is zero, to find out whether ranks can sum.
void Trainer::sum_once() {
  const Bucket& bucket = reducer_->buckets().front();
  check_first_sum(communicator_, setup_.first_sum_seconds,
                  (bucket.end - bucket.begin) * size_of(plan_.real), [this] {
                    reducer_->start(0);
                    reducer_->finish(0);
                    setup_.device->comm_lane().drain();
                    setup_.device->host_comm_lane().drain();
                    drain();
                  });
  summed_before_ = reducer_->busy_seconds();
}

// Waits for work that is queued, so that its time counts before and not after this call.
void Trainer::drain() {
  clock_->leave_out();
  {
    const StreamWait wait(communicator_, "the steps before");
    setup_.device->compute_lane().drain();
  }
  communicator_.supervision().throw_if_ended();
}

RunPart Trainer::enter(RunPart part) {
  if (setup_.entered) setup_.entered(part);
  return std::exchange(part_, part);
}

void Trainer::report_progress(TrainingState& run) {
  const bool wanted =
      std::ranges::any_of(observers_, [](const auto& each) { return each->wants_progress(); });
  if (!wanted) return;
  const bool due = config_.log_every ? progress_.step % config_.log_every == 0
                                     : now_seconds() - last_report_ > kReportSeconds;
  if (!due) return;
  drain();
  const LossSums sums = program_->take_sums();
  epoch_totals_ += sums;
  const double now = now_seconds();
  const auto samples =
      static_cast<double>((progress_.step - last_report_step_) * stream_.global_batch);
  const Progress progress{progress_.step, total_steps_, progress_.epoch + 1,
                          sums.loss / std::max(1.0, sums.samples), samples / (now - last_report_)};
  for (const auto& observer : observers_) observer->progressed(run, progress);
  last_report_ = now;
  last_report_step_ = progress_.step;
}

// Gathers the epoch's sums over ranks. Not in the timed part.
void Trainer::finish_epoch(double seconds) {
  epoch_totals_ += program_->take_sums();
  std::array<double, 4> totals = std::exchange(epoch_totals_, {}).values();
  sum_over_ranks(communicator_, totals);
  const LossSums all = LossSums::of(totals);
  EpochFacts quality{.train_loss = all.loss / all.samples,
                     .train_accuracy = all.correct / all.samples};
  if (counts_top5()) quality.train_top5 = all.top5 / all.samples;
  if (!std::isfinite(*quality.train_loss)) {
    throw Error(ErrorKind::failed,
                fmt::format("the loss is not finite after epoch {}", progress_.epoch + 1),
                fmt::format("learning rate {}", rate_), "lower the learning rate");
  }
  check_parameters();
  outcome_.quality.epochs.push_back(quality);
  outcome_.timing.epoch_seconds.push_back(seconds);
  ++progress_.epoch;
  progress_.position_in_epoch = 0;
}

// The last loss was computed before the last update, and an operation may hide a NaN. Running
// averages differ between ranks, so the ranks share what they found.
void Trainer::check_parameters() {
  const std::string found = find_not_finite(*program_, plan_);
  std::array<double, 1> ranks = {found.empty() ? 0.0 : 1.0};
  sum_over_ranks(communicator_, ranks);
  if (ranks[0] == 0) return;
  throw Error(ErrorKind::failed,
              fmt::format("the network is not finite after epoch {}: {}", progress_.epoch + 1,
                          found.empty() ? "another rank's running averages" : found),
              fmt::format("learning rate {}", rate_), "lower the learning rate");
}

TrainingOutcome Trainer::run() {
  if (progress_.step >= total_steps_) return std::move(outcome_);  // resumed at its end
  communicator_.supervision().note_last_step(total_steps_);
  communicator_.barrier();
  sum_once();
  TrainingState run = state();
  Feeder::Setup feeding = feeding_;
  feeding.augment = config_.augment;
  for (const auto& observer : observers_) observer->prepare(run, feeding);
  Feeder feeder(setup_.data->train, stream_, feeding);
  const BatchInUse in_use(*program_, communicator_);
  communicator_.barrier();
  outcome_.probe = setup_.device->probe();
  for (const auto& observer : observers_) observer->before_run(run);
  drain();
  enter(RunPart::training);
  train_epochs(run, feeder);
  enter(RunPart::other);
  std::for_each(observers_.rbegin(), observers_.rend(),
                [&run](const auto& observer) { observer->after_run(run); });
  const std::size_t batches = outcome_.steps * static_cast<std::size_t>(config_.accumulate);
  RankFacts mine;
  mine.ready_batches =
      feeder.ready_batches() / static_cast<double>(std::max<std::size_t>(1, batches));
  outcome_.input.counts = feeder.counts();
  outcome_.input.first_epoch = first_epoch_;
  outcome_.input.evaluation = evaluation_;
  gather_input(communicator_, *setup_.data, setup_.counts_caches, outcome_.input);
  gather(outcome_, std::move(mine));
  return std::move(outcome_);
}

void Trainer::train_epochs(TrainingState& run, Feeder& feeder) {
  const SampleStream stream(stream_);
  std::size_t epoch_steps = stream.steps_of_first_epoch();
  while (progress_.step < total_steps_ && !outcome_.stopped) {
    for (const auto& observer : observers_) observer->before_epoch(run);
    communicator_.barrier();
    const double start = last_report_ = now_seconds();
    last_report_step_ = progress_.step;
    not_training_ = 0;
    const std::size_t steps = std::min(epoch_steps, total_steps_ - progress_.step);
    const bool complete = run_epoch(run, feeder, steps);
    drain();
    communicator_.barrier();
    if (outcome_.timing.epoch_seconds.empty()) first_epoch_ = feeder.counts();
    const double seconds = now_seconds() - start - not_training_;
    clock_->settle();  // evaluation has a marker for each of its batches
    if (!complete) {
      outcome_.timing.epoch_seconds.push_back(seconds);
      outcome_.stopped = true;
      return;
    }
    for (const auto& observer : observers_) observer->after_last_step(run, steps < epoch_steps);
    finish_epoch(seconds);
    progress_.position = stream.position_of_step(outcome_.steps);
    epoch_steps = stream.steps_per_epoch();
    if (evaluates_after_epoch()) {
      evaluate_now();
      end_if_goal_is_reached();
    }
    lower_rate_on_plateau();
    for (const auto& observer : observers_) outcome_.stopped |= observer->after_epoch(run, seconds);
  }
}

}  // namespace paceline
