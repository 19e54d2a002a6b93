// What a trainer writes for TensorBoard. Tags are those of Keras' TensorBoard callback where it has
// one; epochs count from 0 there, steps from 1.
#include <fmt/format.h>

#include "engine/core/clock.h"
#include "engine/core/log.h"
#include "engine/train/trainer.h"

namespace paceline {

void Trainer::note_progress_event(const Progress& progress) {
  const double start = now_seconds();
  Event event;
  event.step = static_cast<std::int64_t>(progress.step);
  event.scalars = {{"batch_loss", progress.loss},
                   {"batch_learning_rate", rate_},
                   {"batch_samples_per_second", progress.samples_per_second}};
  events_->add(EventSide::train, std::move(event));
  const double seconds = now_seconds() - start;
  not_training_ += seconds;
  outcome_.events_seconds += seconds;
}

// Of the epoch that has just ended, after its evaluation.
void Trainer::note_epoch_events(double seconds) {
  const double start = now_seconds();
  const EpochQuality& quality = outcome_.epochs.back();
  Event train = epoch_event(seconds);
  if (quality.test_loss >= 0) {
    Event validation;
    validation.step = train.step;
    validation.scalars = {{"epoch_loss", quality.test_loss},
                          {"epoch_accuracy", quality.test_accuracy}};
    events_->add(EventSide::validation, std::move(validation));
    Event by_steps;
    by_steps.step = static_cast<std::int64_t>(progress_.step);
    by_steps.scalars = {{"evaluation_loss_vs_iterations", quality.test_loss},
                        {"evaluation_accuracy_vs_iterations", quality.test_accuracy}};
    events_->add(EventSide::validation, std::move(by_steps));
  }
  const int every = setup_.events->histogram_every;
  const bool due = every > 0 && train.step % every == 0;
  events_->add(EventSide::train, std::move(train));
  if (due) events_->add(EventSide::train, histogram_event());
  outcome_.events_seconds += now_seconds() - start;
}

Event Trainer::epoch_event(double seconds) {
  const EpochQuality& quality = outcome_.epochs.back();
  const std::vector<StepTimes>& steps = clock_->steps();
  const auto count = static_cast<double>(steps.size() - noted_steps_);
  Event event;
  event.step = progress_.epoch - 1;
  event.scalars = {
      {"epoch_loss", quality.train_loss},
      {"epoch_accuracy", quality.train_accuracy},
      {"epoch_learning_rate", rate_},
      {"epoch_seconds", seconds},
      {"epoch_steps_per_second", count / seconds},
      {"epoch_samples_per_second",
       static_cast<double>(outcome_.samples - noted_samples_) / seconds},
  };
  for (std::size_t phase = 0; phase < kPhases; ++phase) {
    double sum = 0;
    for (std::size_t i = noted_steps_; i < steps.size(); ++i) {
      sum += static_cast<double>(steps[i].seconds[phase]);
    }
    event.scalars.push_back({fmt::format("phases/{}_seconds", kPhaseNames[phase]), sum / count});
  }
  noted_steps_ = steps.size();
  noted_samples_ = outcome_.samples;
  return event;
}

Event Trainer::histogram_event() const {
  Event event;
  event.step = progress_.epoch - 1;
  for (std::size_t i = 0; i < plan_.parameters.size(); ++i) {
    const std::vector<double> values = program_->read_parameter(static_cast<int>(i));
    event.histograms.push_back({plan_.parameters[i].name + "/histogram", histogram_of(values)});
  }
  return event;
}

// A run that could not write them is none the worse.
void Trainer::settle_events() {
  const double start = now_seconds();
  const std::string failure = events_->settle();
  outcome_.events_seconds += now_seconds() - start;
  if (!failure.empty()) log::warning("TensorBoard will show a part only: {}", failure);
}

}  // namespace paceline
