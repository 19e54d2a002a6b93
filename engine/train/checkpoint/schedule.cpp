#include "engine/train/checkpoint/schedule.h"

#include <cmath>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kMost = 1e9;

CheckpointUnit parse_unit(std::string_view word) {
  if (word == "step" || word == "steps") return CheckpointUnit::steps;
  if (word == "epoch" || word == "epochs") return CheckpointUnit::epochs;
  if (word == "minute" || word == "minutes") return CheckpointUnit::minutes;
  return CheckpointUnit::never;
}

}  // namespace

bool CheckpointSchedule::after_step(std::size_t step) const {
  return unit == CheckpointUnit::steps && step % static_cast<std::size_t>(every) == 0;
}

bool CheckpointSchedule::after_epoch(int epoch) const {
  return unit == CheckpointUnit::epochs && epoch % static_cast<int>(every) == 0;
}

bool CheckpointSchedule::after_seconds(double seconds) const {
  return unit == CheckpointUnit::minutes && seconds >= 60 * every;
}

CheckpointSchedule parse_checkpoint_schedule(const std::string& text, const std::string& where) {
  const std::size_t end = text.find_first_not_of("0123456789.");
  const std::size_t word = end == std::string::npos ? end : text.find_first_not_of(" -", end);
  CheckpointSchedule schedule;
  if (word != std::string::npos) {
    const auto number = to_real(text.substr(0, end));
    schedule.unit = parse_unit(std::string_view(text).substr(word));
    schedule.every = number.value_or(0);
  }
  const bool whole =
      schedule.unit == CheckpointUnit::minutes || std::floor(schedule.every) == schedule.every;
  if (schedule.unit == CheckpointUnit::never || schedule.every <= 0 || schedule.every > kMost ||
      !whole) {
    throw Error(ErrorKind::usage, "checkpoint_every cannot be \"" + text + "\"", where,
                "give a number and its unit: 500steps, 1epoch or 10minutes");
  }
  return schedule;
}

}  // namespace paceline
