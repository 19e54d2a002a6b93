// The rules of CUDA's stream capture, kept for a host that plays a GPU: which streams a capture has
// spread to, and that all of them have come back to its first one when it ends.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "engine/device/cuda/runtime.h"

namespace paceline::cuda {

// How much of each captured stream comes before a point.
using CaptureClock = std::map<const void*, std::size_t>;

struct HostEvent {
  double time = 0;          // of its last record
  std::size_t capture = 0;  // the one that it was last recorded in; 0: none
  CaptureClock clock;       // within it
};

class Capture {
 public:
  using Work = std::function<void()>;
  using Marks = std::vector<HostEvent*>;

  bool is_on() const { return origin_ != nullptr; }
  bool covers(Stream stream) const { return clocks_.count(stream) > 0; }
  void begin(Stream origin);
  void add(Stream stream, Work work);
  void record(HostEvent& event, Stream stream);
  void record_in_graph(HostEvent& event, Stream stream);
  void wait(Stream stream, const HostEvent& event);
  // Throws where work of a stream does not come before the origin's end.
  void end(Stream origin);
  void cancel();

  std::vector<Work> take_work();
  std::shared_ptr<Marks> marks() const { return marks_; }

 private:
  Stream origin_ = nullptr;
  std::size_t number_ = 0;
  std::map<Stream, CaptureClock> clocks_;
  std::vector<Work> work_;
  std::shared_ptr<Marks> marks_;
};

}  // namespace paceline::cuda
