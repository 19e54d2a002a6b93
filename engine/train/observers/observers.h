// The observers of the training loop.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/train/checkpoint/manager.h"
#include "engine/train/events/event_log.h"
#include "engine/train/observers/observer.h"
#include "engine/train/trace/tracer.h"

namespace paceline {

std::unique_ptr<TrainingObserver> make_reporter(std::function<void(const Progress&)> report);

// Compares replicas every config.check_every steps, and at the end if config.check_replicas.
std::unique_ptr<TrainingObserver> make_replica_watch(Communicator& communicator,
                                                     const Program& program, const Plan& plan,
                                                     const TrainConfig& config);

// Writes TensorBoard's files. Throws input if the folder cannot be written.
std::unique_ptr<TrainingObserver> make_event_writer(const EventSetup& setup, std::vector<int> cpus);

std::unique_ptr<TrainingObserver> make_checkpointer(CheckpointManager& manager);

std::unique_ptr<TrainingObserver> make_trace_writer(const TraceSetup& setup);

}  // namespace paceline
