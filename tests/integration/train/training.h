// A whole training run inside one process, with the parameters it ends with.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/comm/backend.h"
#include "engine/train/trainer.h"

namespace paceline::training {

// The real MNIST, its first `train` and `test` samples (0: all).
DatasetPair mnist(std::size_t train, std::size_t test);

struct Run {
  TrainConfig config;
  std::string workload = "mnist-mlp", device = "cpu", backend = "mirrored";
  int threads = 1, comm_threads = 0, input_threads = 0;
  std::function<std::unique_ptr<Device>()> make_device;  // instead of `device`
  const ReplicaGpus* gpus = nullptr;                     // where gradients lie on some
  Deadlines deadlines;
  std::function<void(const Progress&)> report;  // of rank 0
  const Network* network = nullptr;             // instead of the workload's
  const CheckpointSetup* checkpoints = nullptr;
  const TraceSetup* trace = nullptr;
  std::vector<std::string>* reported = nullptr;         // what rank 0 told the user
  std::function<TrainConfig(int rank)> config_of_rank;  // instead of `config`
  // Of every rank, where not empty; called as `report` is, and may change what it is given.
  std::function<void(int rank, Program& program, const Progress&)> meddle;
};

struct Result {
  TrainingOutcome outcome;                                             // of rank 0
  std::vector<std::map<std::string, std::vector<double>>> parameters;  // of each rank
  std::vector<std::map<std::string, std::vector<double>>> statistics;  // running averages, too
};

// Throws what the first failing rank threw.
Result train(const Run& run, const DatasetPair& data);

// Of the first replicas' parameters, relative to the norm of `b`.
double distance(const Result& a, const Result& b);

}  // namespace paceline::training
