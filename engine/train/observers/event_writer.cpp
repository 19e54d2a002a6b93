// What TensorBoard shows of a run. Tags are those of Keras' TensorBoard callback where it has one;
// epochs count from 0 there, steps from 1.
#include <fmt/format.h>

#include <utility>

#include "engine/core/clock.h"
#include "engine/core/log.h"
#include "engine/train/observers/observers.h"
#include "engine/train/outcome.h"

namespace paceline {

namespace {

class EventWriter : public TrainingObserver {
 public:
  EventWriter(const EventSetup& setup, std::vector<int> cpus)
      : histogram_every_(setup.histogram_every), log_(setup.folder, std::move(cpus)) {}

  bool wants_progress() const override { return true; }
  void progressed(TrainingState& run, const Progress& progress) override {
    const double start = now_seconds();
    Event event;
    event.step = static_cast<std::int64_t>(progress.step);
    event.scalars = {{"batch_loss", progress.loss},
                     {"batch_learning_rate", run.rate},
                     {"batch_samples_per_second", progress.samples_per_second}};
    log_.add(EventSide::train, std::move(event));
    const double seconds = now_seconds() - start;
    run.not_training += seconds;
    *run.outcome.timing.events_seconds += seconds;
  }

  bool after_epoch(TrainingState& run, double seconds) override {
    const double start = now_seconds();
    const EpochFacts& quality = run.outcome.quality.epochs.back();
    Event train = epoch_event(run, seconds);
    if (quality.test_loss) {
      Event validation;
      validation.step = train.step;
      validation.scalars = {{"epoch_loss", *quality.test_loss},
                            {"epoch_accuracy", *quality.test_accuracy}};
      log_.add(EventSide::validation, std::move(validation));
      Event by_steps;
      by_steps.step = static_cast<std::int64_t>(run.progress.step);
      by_steps.scalars = {{"evaluation_loss_vs_iterations", *quality.test_loss},
                          {"evaluation_accuracy_vs_iterations", *quality.test_accuracy}};
      log_.add(EventSide::validation, std::move(by_steps));
    }
    const bool due = histogram_every_ > 0 && train.step % histogram_every_ == 0;
    log_.add(EventSide::train, std::move(train));
    if (due) log_.add(EventSide::train, histogram_event(run));
    *run.outcome.timing.events_seconds += now_seconds() - start;
    return false;
  }

  // A run that could not write them is none the worse.
  void after_run(TrainingState& run) override {
    const double start = now_seconds();
    const std::string failure = log_.settle();
    *run.outcome.timing.events_seconds += now_seconds() - start;
    if (!failure.empty()) log::warning("TensorBoard will show only a part: {}", failure);
  }

 private:
  Event epoch_event(TrainingState& run, double seconds) {
    const EpochFacts& quality = run.outcome.quality.epochs.back();
    const std::vector<StepTimes>& steps = run.clock.steps();
    const auto count = static_cast<double>(steps.size() - noted_steps_);
    Event event;
    event.step = run.progress.epoch - 1;
    event.scalars = {
        {"epoch_loss", *quality.train_loss},
        {"epoch_accuracy", *quality.train_accuracy},
        {"epoch_learning_rate", run.rate},
        {"epoch_seconds", seconds},
        {"epoch_steps_per_second", count / seconds},
        {"epoch_samples_per_second",
         static_cast<double>(run.outcome.samples - noted_samples_) / seconds},
    };
    for (std::size_t phase = 0; phase < kPhases; ++phase) {
      double sum = 0;
      for (std::size_t i = noted_steps_; i < steps.size(); ++i) {
        sum += static_cast<double>(steps[i].seconds[phase]);
      }
      event.scalars.push_back({fmt::format("phases/{}_seconds", kPhaseNames[phase]), sum / count});
    }
    noted_steps_ = steps.size();
    noted_samples_ = run.outcome.samples;
    return event;
  }

  static Event histogram_event(const TrainingState& run) {
    Event event;
    event.step = run.progress.epoch - 1;
    for (std::size_t i = 0; i < run.plan.parameters.size(); ++i) {
      const std::vector<double> values = run.program.read_parameter(static_cast<int>(i));
      event.histograms.push_back(
          {run.plan.parameters[i].name + "/histogram", make_histogram(values)});
    }
    return event;
  }

  int histogram_every_;
  std::size_t noted_steps_ = 0, noted_samples_ = 0;  // that event files tell of
  EventLog log_;
};

}  // namespace

std::unique_ptr<TrainingObserver> make_event_writer(const EventSetup& setup,
                                                    std::vector<int> cpus) {
  return std::make_unique<EventWriter>(setup, std::move(cpus));
}

}  // namespace paceline
