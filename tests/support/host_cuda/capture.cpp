#include "tests/support/host_cuda/capture.h"

#include <algorithm>
#include <utility>

#include "engine/core/clock.h"
#include "engine/core/error.h"

namespace paceline::cuda {

void Capture::begin(Stream origin) {
  if (is_on()) throw Error(ErrorKind::internal, "a capture within a capture");
  origin_ = origin;
  ++number_;
  clocks_ = {{origin, {}}};
  marks_ = std::make_shared<Marks>();
}

void Capture::add(Stream stream, Work work) {
  work_.push_back(std::move(work));
  ++clocks_.at(stream)[stream];
}

void Capture::record(HostEvent& event, Stream stream) {
  event.capture = number_;
  event.clock = clocks_.at(stream);
}

void Capture::record_in_graph(HostEvent& event, Stream stream) {
  if (!covers(stream)) throw Error(ErrorKind::internal, "a mark of a stream that is not captured");
  event.capture = 0;
  const std::size_t index = marks_->size();
  marks_->push_back(&event);
  add(stream, [marks = marks_, index] { (*marks)[index]->time = now_seconds(); });
}

void Capture::wait(Stream stream, const HostEvent& event) {
  if (event.capture != number_ || !is_on()) {
    throw Error(ErrorKind::internal, event.capture == 0
                                         ? "a captured stream waits for what is not captured"
                                         : "a wait for an event of an earlier capture");
  }
  CaptureClock& clock = clocks_[stream];  // from here on it is captured, too
  for (const auto& [other, count] : event.clock) clock[other] = std::max(clock[other], count);
}

void Capture::end(Stream origin) {
  if (origin != origin_) throw Error(ErrorKind::internal, "ends another stream's capture");
  const CaptureClock& known = clocks_.at(origin);
  for (const auto& [stream, clock] : clocks_) {
    const auto own = clock.find(stream);
    if (own == clock.end()) continue;
    const auto seen = known.find(stream);
    if (seen != known.end() && seen->second == own->second) continue;
    throw Error(ErrorKind::internal, "a captured stream has not come back to the first one");
  }
  origin_ = nullptr;
  clocks_.clear();
}

void Capture::cancel() {
  origin_ = nullptr;
  clocks_.clear();
  work_.clear();
}

std::vector<Capture::Work> Capture::take_work() {
  return std::exchange(work_, {});
}

}  // namespace paceline::cuda
