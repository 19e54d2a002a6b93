#include "run/training_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/core/backend_stack.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/log.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/device/device.h"
#include "engine/failure/rank_status.h"
#include "engine/launch/topology.h"
#include "engine/start/spawn.h"
#include "engine/train/outcome.h"
#include "engine/train/session.h"
#include "engine/train/weights.h"
#include "run/meter_record.h"
#include "run/outcome_record.h"
#include "run/resolve.h"

namespace paceline {

namespace {

CpuSet slice_cpus(const CpuSet& cpus, int from, int count) {
  const auto clamp = [&](int at) { return std::min<std::ptrdiff_t>(at, std::ssize(cpus)); };
  return {cpus.begin() + clamp(from), cpus.begin() + clamp(from + count)};
}

// One training run of this process, from parameters to a record.
class TrainingRun {
 public:
  explicit TrainingRun(const RunRequest& request)
      : request_(request),
        started_(now_seconds()),
        workload_(make_workload(request.workload)),
        network_(make_network(workload_, request.config.network)),
        launch_(make_launch_spec(request.config)),
        layout_(launch_.layout),
        threads_(request.config.threads),
        config_(request.config.train),
        process_(find_process_rank(environment_of_process())) {
    facts_.provenance = build_facts(request.command);
    facts_.provenance.started_at = utc_time_stamp();
    launch_.deadlines = request.deadlines;
    launch_.recorded = true;
    if (process_.rank == 0 && !request.target.store.empty()) study_.emplace(request.target.store);
    if (process_.rank == 0 && environment_of_process().count(kStarterVariable) == 0) {
      launch_.on_fatal_error = [this](const Error& error) {
        write_failed_record(request_, exit_code(error.kind()), error.what());
      };
    }
  }

  int run() {
    check_tasks(launch_, process_);
    check_target();
    set_up_log();
    if (request_.config.checkpoints.can_resume()) {
      stop_ = std::make_unique<StopRequests>(request_file(environment_of_process()));
    }
    const CpuAssignment assignment = assign_cpus(launch_, process_);
    cpus_ = assignment.replicas;
    facts_.provenance.cpu_model = assignment.cpu_model;
    facts_.provenance.machine = assignment.machine;
    set_up_event_files();
    find_weights();
    data_ = load_run_data(request_, workload_, network_, process_, facts_);
    fit_head_to_data();
    warn_of_large_batch();
    set_up_checkpoints();
    const std::size_t stopped_after = train_in_world(assignment);
    if (!trace_failure_.empty()) {
      throw input_error(
          "the run is complete, but its trace could not be written: " + trace_failure_, "",
          "trace again to another file");
    }
    if (stopped_after == 0) return 0;
    throw Error(
        ErrorKind::preempted,
        fmt::format("stopped on request after step {}, with a complete checkpoint", stopped_after),
        checkpoints_.run.string(), "resume with --resume latest");
  }

 private:
  // Returns the steps after which it was stopped on request, 0: it ran to its end.
  std::size_t train_in_world(const CpuAssignment& assignment) {
    World world(launch_, process_, assignment);
    try {
      return train_in(world);
    } catch (const std::exception& error) {
      world.abort(error.what());
      throw;
    }
  }

  std::size_t train_in(World& world) {
    exchange_rank_cards(world);
    share_caches(world);
    GpuReport report(world.gpus(), cpus_);
    report.warn_of_far_cpus(&world);
    if (process_.local_rank == 0) warn_of_busy_cpus(facts_.cards, process_.local_size);
    EnergyReport energy(world.gpus(), process_.local_rank == 0);
    energy.measure_idle(&world);
    const LoadReport load(cpus_);
    TrainingOutcome outcome = train(world, energy);
    if (process_.rank == 0 && outcome.trace) log_trace(*outcome.trace);
    facts_.provenance.backend_used =
        world.description();  // NCCL connects ranks when they first sum
    if (outcome.plan.gradients_staged.value_or(false)) {
      facts_.provenance.backend_used += ", staged in host memory";
    }
    note_gpus(report.collect(world));
    facts_.energy = energy.collect(world, layout_.nodes);
    facts_.provenance.machine_load = load.collect(world, facts_.oversubscribed);
    if (process_.rank == 0) warn_of_busy_machine(facts_.provenance.machine_load);
    if (outcome.stopped) return outcome.resumed_after + outcome.steps;
    if (process_.rank == 0) finish(outcome);
    return 0;
  }

  // The data set decides how many classes there are.
  void fit_head_to_data() {
    const int classes = data_.train.classes;
    if (classes < 2) {
      throw input_error(fmt::format("the data set has {} class", classes), data_.train.name,
                        "give a set of at least two classes");
    }
    if (classes == network_.classes()) return;
    log::info("the data set has {} classes: the last layer has as many outputs, instead of {}",
              classes, network_.classes());
    network_.resize_head(classes);
  }

  // An endless stream fills any batch.
  void warn_of_large_batch() const {
    const std::size_t batch = compute_global_batch(config_);
    if (batch <= data_.train.samples || config_.steps_per_epoch > 0) return;
    log::warning("a step takes {} samples and the training set has {}: no batch is full", batch,
                 data_.train.samples);
  }

  // A sweep's run starts afresh, whatever an attempt before it left.
  void set_up_checkpoints() {
    StatePlaces places = request_.state;
    const RecordTarget& target = request_.target;
    if (!target.store.empty() && places.run.empty()) {
      const auto name =
          std::filesystem::path("runs") / fmt::format("{}.{}", target.point_folder, target.repeat);
      const bool keeps = request_.config.checkpoints.is_on();
      if (study_ && places.resume.empty()) study_->remove(name);
      if (study_ && keeps) study_->make_folder(name);
      if (keeps) places.run = target.store / name;
    }
    checkpoints_ =
        checkpoint_setup(request_.workload, request_.parameters, request_.config.checkpoints,
                         places, data_.hash, process_.rank == 0);
    if (stop_) checkpoints_.stop_signal = [this] { return stop_->pending(); };
  }

  // A record that cannot be written should be known before the training, not after it.
  void check_target() const {
    if (process_.rank != 0) return;
    if (!request_.target.file.empty()) check_new_record(request_.target.file);
    if (!request_.trace.empty()) OutputFile(request_.trace, "--trace", "trace").check();
  }

  void set_up_log() const {
    log::Setup setup;
    if (request_.log_ranks && process_.size > 1)
      setup.prefix = fmt::format("rank {}: ", process_.rank);
    setup.to_stderr = process_.rank == 0 || request_.log_ranks;
    if (!request_.log_folder.empty()) {
      make_folder(request_.log_folder);
      setup.file = request_.log_folder / fmt::format("rank-{}.log", process_.rank);
    }
    if (request_.quiet) setup.level = log::Level::warning;
    if (request_.verbose) setup.level = log::Level::debug;
    log::set_up(setup);
  }

  // A folder that cannot be made is known before the data are read.
  void set_up_event_files() {
    if (process_.rank != 0 || request_.events.folder.empty()) return;
    events_ = event_setup(request_.events);
    log::info("TensorBoard: {}", events_.folder.string());
  }

  void find_weights() {
    config_.weights = weights_file(request_.config.weights);
    if (config_.weights.empty()) return;
    try_weights(config_.weights);
    facts_.provenance.weights_hash = hash_of_file(config_.weights);
  }

  void note_gpus(GpuUse use) {
    facts_.gpus = std::move(use);
    if (facts_.gpus.throttled) {
      log::warning(
          "a GPU was slowed down by heat or failing power: this run is excluded from comparisons");
    }
  }

  // All that ranks must have in common; the plan is compared by the trainers, who make it.
  std::vector<ConfigRow> common_rows(World& world) const {
    std::vector<ConfigRow> rows = rows_of_build();
    rows.push_back({"workload", request_.workload});
    const std::vector<ConfigRow> parameters = make_rows(request_.parameters);
    rows.insert(rows.end(), parameters.begin(), parameters.end());
    rows.push_back({"data set", facts_.provenance.data_set});
    rows.push_back({"data hash", data_.hash});
    rows.push_back({"training samples", std::to_string(data_.train.samples)});
    rows.push_back({"test samples", std::to_string(data_.test.samples)});
    rows.push_back({"weights file", facts_.provenance.weights_hash});
    rows.push_back({"traced", request_.trace.empty() ? "no" : "yes"});
    rows.push_back({"communication library", world.backend().library()});
    return rows;
  }

  void exchange_rank_cards(World& world) {
    const std::vector<ConfigRow> rows = common_rows(world);
    std::vector<RankCard>& cards = facts_.cards;
    cards = paceline::exchange_rank_cards(world.communicators(), cpus_, rows);
    for (const RankCard& card : cards) {
      facts_.other_jobs = std::max(facts_.other_jobs, card.other_jobs);
    }
    facts_.oversubscribed = check_rank_cards(cards, launch_.oversubscribe);
    log::info("backend {}: {}", launch_.backend, world.description());
    for (std::size_t r = 0; r < cards.size(); ++r) {
      log::info("replica {} on {}: CPUs {}: {} compute, {} input, {} communication threads", r,
                cards[r].host, cards[r].cpus, threads_.compute, threads_.input, threads_.comm);
    }
  }

  void share_caches(World& world) {
    auto& communicators = world.communicators();
    const int replicas_here = static_cast<int>(communicators.size());
    facts_.cache.ranks = replicas_here;
    facts_.cache.bytes = facts_.input.cache_bytes;
    if (facts_.decodes && facts_.input.cache != CacheKind::off && facts_.input.tasks_of_node > 1) {
      on_every_replica(communicators, [&](Communicator& communicator, std::size_t i) {
        const CacheSharing sharing =
            share_cache(communicator, i == 0 ? &data_ : nullptr, facts_.input, replicas_here);
        if (i == 0) facts_.cache = sharing;
      });
    }
    if (!facts_.cache.refusal.empty()) {
      log::warning(
          "the ranks of a node cannot share a cache, so each uses a part of the memory: {}",
          facts_.cache.refusal);
    }
    for (const Dataset* set : {&data_.train, &data_.test}) {
      if (!set->store) continue;
      log::info("input of {}: {}{}", set->name, set->store->description(),
                facts_.cache.ranks > 1 && facts_.input.cache != CacheKind::off
                    ? fmt::format(", by {} ranks together", facts_.cache.ranks)
                    : "");
    }
  }

  TrainingOutcome train(World& world, EnergyReport& energy) {
    SessionSetup session;
    session.config = config_;
    session.network = &network_;
    session.data = &data_;
    session.input_threads = threads_.input;
    session.first_sum_seconds = request_.deadlines.first_sum_seconds;
    session.counts_caches = facts_.cache.speaks;
    session.cpus = cpus_;
    // All ranks alike: a checkpoint that only rank 0 knows of is handed out by it.
    const bool resumes = !request_.state.resume.empty();
    if (resumes || !checkpoints_.run.empty()) session.checkpoints = &checkpoints_;
    for (const CpuSet& cpus : cpus_) {
      session.input_cpus.push_back(slice_cpus(cpus, threads_.compute, threads_.input));
    }
    session.make_device = [this, &world](int index) {
      return make_device(index, world.gpus().device_index(index));
    };
    session.entered = [&energy](RunPart part) { energy.enter(part); };
    session.note = [](const std::string& line) { log::debug("{}", line); };
    session.notify = [](const std::string& line) { log::info("{}", line); };
    if (!events_.folder.empty()) session.events = &events_;
    trace_.file = request_.trace;
    if (!trace_.file.empty()) session.trace = &trace_;
    if (!request_.quiet) {
      session.report = [this](const Progress& progress) { print_progress(progress); };
    }
    session.failed = [this, &world](const Error& error) {
      write_exit_status(environment_of_process(), process_, error);
      world.expect_end(error);
    };
    setup_seconds_ = now_seconds() - started_;
    return run_session(session, world.communicators());
  }

  std::unique_ptr<Device> make_device(int index, int gpu) const {
    const CpuSet& cpus = cpus_[static_cast<std::size_t>(index)];
    DeviceOptions options = request_.config.device;
    options.threads = threads_.compute;
    options.cpus = slice_cpus(cpus, 0, threads_.compute);
    options.replica_cpus = cpus.empty() ? 0 : threads_.total();
    options.comm_threads = threads_.comm;
    options.comm_cpus = slice_cpus(cpus, threads_.compute + threads_.input, threads_.comm);
    options.gpu = gpu;
    options.choices_file = choices_file(environment_of_process());
    const auto* row = find_factory(device_table(), request_.config.place.device);
    if (row != nullptr) return row->make(options);
    throw internal_error(request_.config.place.device +
                         " is in names.json but not in the factory table");
  }

  std::string rate_text(double samples_per_second) const {
    if (!network_.reads_tokens()) return format_rate(samples_per_second) + " samples/s";
    const int context = network_.sample().height - 1;
    return format_rate(samples_per_second * context) + " tokens/s";
  }

  void print_progress(const Progress& progress) const {
    const double left = static_cast<double>(progress.steps - progress.step) *
                        static_cast<double>(compute_global_batch(config_)) /
                        progress.samples_per_second;
    log::info("epoch {}, step {}/{}: loss {:.4f}, {}{}", progress.epoch, progress.step,
              progress.steps, progress.loss, rate_text(progress.samples_per_second),
              left >= 1 ? ", about " + format_seconds(left) + " left" : "");
  }

  void finish(TrainingOutcome& outcome) {
    if (outcome.steps == 0) {
      log::info("already complete ({})", counted(outcome.resumed_after, "step"));
      return;
    }
    outcome.timing.setup_seconds = setup_seconds_;
    outcome.straggler = find_straggler(outcome.ranks, count_warmup(outcome));
    if (outcome.straggler) {
      outcome.straggler->host =
          facts_.cards[static_cast<std::size_t>(outcome.straggler->rank)].host;
      log_straggler(*outcome.straggler);
    }
    facts_.layout = layout_;
    facts_.threads = threads_;
    facts_.other_jobs = std::max(facts_.other_jobs, count_other_jobs());
    if (!facts_.energy.meters.empty()) facts_.energy.shared = facts_.other_jobs > 0;
    const Json record = to_json(make_record(request_, facts_, outcome));
    const RecordTarget& target = request_.target;
    std::string written;
    if (!target.store.empty()) {
      written = Store(*study_)
                    .write(target.point_folder, target.repeat, record, compressed_samples(outcome))
                    .string();
    } else if (!target.file.empty()) {
      write_record_file(target.file, record, compressed_samples(outcome));
      written = target.file.string();
    }
    if (request_.json) print("{}\n", json_text(record, 2));
    print_summary(outcome, written);
  }

  void log_trace(const TraceOutcome& trace) {
    trace_failure_ = trace.failure;
    if (!trace.failure.empty()) return;
    const TraceFacts& facts = trace.facts;
    log::info("trace: {}: {} spans, {} arrows between ranks{}", trace.file, facts.spans,
              trace.arrows,
              facts.dropped ? fmt::format(", without the {} oldest spans", facts.dropped) : "");
    log::info(
        "communication took {}, {:.0f} % of it hidden behind computation; clocks agree within "
        "{:.1f} us; tracing cost rank 0 about {}",
        format_seconds(facts.communication_seconds), 100 * facts.overlap,
        1e6 * facts.clock_uncertainty_seconds, format_seconds(facts.overhead_seconds));
  }

  static void log_straggler(const StragglerFacts& straggler) {
    log::info("rank {} on {} delayed the others by {} per step ({:.0f} %), mostly in {}",
              straggler.rank, straggler.host, format_seconds(*straggler.excess_seconds_per_step),
              100 * *straggler.share_of_step, straggler.phase);
  }

  void print_summary(const TrainingOutcome& outcome, const std::string& written) const {
    const EpochFacts& last = outcome.quality.epochs.back();
    const std::string accuracy =
        last.test_accuracy ? fmt::format(", test accuracy {:.2f} %", 100 * *last.test_accuracy)
                           : "";
    const std::size_t warmup = count_warmup(outcome);
    log::info("{}: {} of {} in {} ({}{}), training loss {:.4f}{}", request_.workload,
              counted(outcome.steps, "step"), counted(*outcome.plan.global_batch, "sample"),
              format_seconds(*outcome.timing.fit_seconds), rate_text(samples_per_second(outcome)),
              warmup == 0 ? "" : " after " + counted(warmup, "step"), *last.train_loss, accuracy);
    if (config_.until) log_goal(outcome);
    if (!written.empty()) log::info("record: {}", written);
  }

  void log_goal(const TrainingOutcome& outcome) const {
    const std::string goal = config_.until->text();
    const std::size_t epochs = outcome.quality.epochs.size();
    if (!outcome.goal_reached) {
      return log::warning("{} was not reached in {} epochs", goal, epochs);
    }
    const double fit = *outcome.timing.fit_seconds;
    log::info("{} was reached after epoch {}: {} of training, {} with evaluation", goal, epochs,
              format_seconds(fit),
              format_seconds(fit + outcome.timing.evaluation_seconds.value_or(0)));
  }

  const RunRequest& request_;
  double started_;
  Workload workload_;
  Network network_;
  LaunchSpec launch_;
  const Layout& layout_;
  ThreadPlan threads_;
  TrainConfig config_;
  ProcessRank process_;
  std::optional<Folder> study_;  // of rank 0, open from the start
  double setup_seconds_ = 0;
  std::vector<CpuSet> cpus_;
  DatasetPair data_;
  std::unique_ptr<StopRequests> stop_;
  CheckpointSetup checkpoints_;
  EventSetup events_;
  TraceSetup trace_;
  std::string trace_failure_;
  RunFacts facts_;
};

}  // namespace

LaunchSpec make_launch_spec(const PlaceConfig& process) {
  return {process.backend, process.device, process.layout, process.oversubscribe, process.near_gpu};
}

LaunchSpec make_launch_spec(const RunConfig& config) {
  LaunchSpec launch = make_launch_spec(config.place);
  launch.stops_between_steps = config.checkpoints.can_resume();
  return launch;
}

void check_new_record(const std::filesystem::path& file) {
  OutputFile(file, "--record", "record").check();
  if (const auto samples = samples_file(file); std::filesystem::exists(samples)) {
    throw input_error("there are step samples without their record", samples.string(),
                      "a run was killed here: remove them, or give another name");
  }
}

int run_training(const RunRequest& request) {
  return TrainingRun(request).run();
}

}  // namespace paceline
