#include "tests/integration/train/training.h"

#include <cmath>
#include <exception>
#include <thread>

#include "engine/comm/backend.h"
#include "engine/train/session.h"
#include "tests/integration/made.h"
#include "workloads/workload.h"

namespace paceline::training {

namespace {

Trainer::Setup make_setup(const Run& run, const Network& network, const DatasetPair& data,
                          Communicator& communicator) {
  DeviceOptions options;
  options.precision = run.device == "reference" ? "fp64" : "fp32";
  options.threads = run.threads;
  options.comm_threads = run.comm_threads;
  Trainer::Setup setup;
  setup.config = &run.config;
  setup.network = &network;
  setup.data = &data;
  setup.communicator = &communicator;
  setup.device =
      run.make_device ? run.make_device() : find_maker(device_table(), run.device)(options);
  setup.input_threads = run.input_threads;
  setup.checkpoints = run.checkpoints;
  setup.trace = run.trace;
  if (communicator.rank() != 0) return setup;
  setup.report = run.report;
  if (run.reported)
    setup.notify = [&run](const std::string& line) { run.reported->push_back(line); };
  return setup;
}

}  // namespace

DatasetPair mnist(std::size_t train, std::size_t test) {
  DatasetPair data = load_mnist(std::string(PACELINE_SOURCE_DIR) + "/data/mnist");
  limit_samples(data.train, train);
  limit_samples(data.test, test);
  return data;
}

Result train(const Run& run, const DatasetPair& data) {
  const Workload workload = find_maker(workload_table(), run.workload)();
  const Network& network = run.network ? *run.network : workload.network;
  const auto backend = find_maker(backend_table(), run.backend)();
  Membership membership;
  membership.replicas_here = run.config.replicas;
  membership.gpus = run.gpus;
  membership.deadlines = run.deadlines;
  const auto communicators = backend->connect(membership);
  Result result;
  result.parameters.resize(communicators.size());
  result.statistics.resize(communicators.size());
  std::vector<std::exception_ptr> errors(communicators.size());
  const auto one = [&](std::size_t rank) {
    std::unique_ptr<Trainer> trainer;  // outlives the abort
    try {
      Program* program = nullptr;
      Trainer::Setup setup = make_setup(run, network, data, *communicators[rank]);
      TrainConfig config;
      if (run.config_of_rank) {
        config = run.config_of_rank(static_cast<int>(rank));
        setup.config = &config;
      }
      if (run.meddle) {
        setup.report = [&](const Progress& progress) {
          run.meddle(static_cast<int>(rank), *program, progress);
        };
      }
      const bool is_gpu = setup.device->memory_kind() == MemoryKind::device;
      trainer = std::make_unique<Trainer>(std::move(setup));
      program = &trainer->program();
      if (is_gpu && communicators.size() > 1) {
        load_libraries(*program, trainer->plan(), *communicators[rank]);
      }
      TrainingOutcome outcome = trainer->run();
      if (rank == 0) result.outcome = std::move(outcome);
      for (std::size_t p = 0; p < trainer->plan().parameters.size(); ++p) {
        result.parameters[rank][trainer->plan().parameters[p].name] =
            trainer->program().read_parameter(static_cast<int>(p));
      }
      for (std::size_t s = 0; s < trainer->plan().statistics.size(); ++s) {
        result.statistics[rank][trainer->plan().statistics[s].name] =
            trainer->program().read_statistic(static_cast<int>(s));
      }
    } catch (...) {
      errors[rank] = std::current_exception();
      communicators[rank]->abort("test");
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t rank = 1; rank < communicators.size(); ++rank) threads.emplace_back(one, rank);
  one(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return result;
}

double distance(const Result& a, const Result& b) {
  double difference = 0, norm = 0;
  for (const auto& [name, values] : b.parameters[0]) {
    const std::vector<double>& others = a.parameters[0].at(name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += (others[i] - values[i]) * (others[i] - values[i]);
      norm += values[i] * values[i];
    }
  }
  return std::sqrt(difference / norm);
}

}  // namespace paceline::training
