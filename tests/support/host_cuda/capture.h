// The rules of CUDA's stream capture, kept for a host that plays a GPU: what a capture has spread
// to comes back to its first stream before it ends, and a node follows only what its stream waited
// for.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/host_cuda/streams.h"

namespace paceline::cuda {

struct HostEvent {
  Recording last = nullptr;    // null: none
  std::size_t capture = 0;     // the one that it was last recorded in; 0: none
  std::set<std::size_t> ends;  // nodes of that capture
};

struct HostNode {
  HostStream* stream = nullptr;
  std::function<void(HostBlock&)> work;
  std::set<std::size_t> after;  // nodes before this one
  int mark = -1;                // which of the events that each launch records
  bool is_kernel = false;
};

class Capture {
 public:
  bool is_on() const { return origin_ != nullptr; }
  bool covers(const HostStream& stream) const { return ends_.count(&stream) > 0; }
  void begin(const HostStream& origin);
  void add(HostStream& stream, HostNode node);
  void record(HostEvent& event, const HostStream& stream);
  void record_in_graph(HostEvent& event, HostStream& stream);
  void wait(const HostStream& stream, const HostEvent& event);
  // CUDA invalidates a capture during which something is done that it does not permit.
  void spoil(const char* why) { spoilt_ = why; }
  // Throws where a node does not come before the origin's end.
  std::vector<HostNode> end(const HostStream& origin);
  void cancel();

  std::vector<HostEvent*> take_marks() { return std::exchange(marks_, {}); }

 private:
  const HostStream* origin_ = nullptr;
  std::size_t number_ = 0;
  const char* spoilt_ = nullptr;
  std::map<const HostStream*, std::set<std::size_t>> ends_;
  std::vector<HostNode> nodes_;
  std::vector<HostEvent*> marks_;
};

// Nodes as a launch runs them: each after those that it follows, else in a random order.
class HostGraphWork {
 public:
  explicit HostGraphWork(std::vector<HostNode> nodes);
  std::size_t kernels() const { return kernels_; }
  void run(std::uint64_t seed, const std::vector<Recording>& marks);

 private:
  std::vector<HostNode> nodes_;
  std::vector<std::vector<std::size_t>> next_;
  std::size_t kernels_ = 0;
};

}  // namespace paceline::cuda
