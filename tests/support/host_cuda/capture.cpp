#include "tests/support/host_cuda/capture.h"

#include "engine/core/clock.h"
#include "engine/core/error.h"

namespace paceline::cuda {

void Capture::begin(const HostStream& origin) {
  if (is_on()) throw Error(ErrorKind::internal, "a capture within a capture");
  origin_ = &origin;
  ++number_;
  spoilt_ = nullptr;
  ends_ = {{&origin, {}}};
}

void Capture::add(HostStream& stream, HostNode node) {
  std::set<std::size_t>& ends = ends_.at(&stream);
  node.stream = &stream;
  node.after = std::exchange(ends, {nodes_.size()});
  nodes_.push_back(std::move(node));
}

void Capture::record(HostEvent& event, const HostStream& stream) {
  event.capture = number_;
  event.ends = ends_.at(&stream);
}

void Capture::record_in_graph(HostEvent& event, HostStream& stream) {
  if (!is_on() || !covers(stream)) {
    throw Error(ErrorKind::internal, "a mark of a stream that is not captured");
  }
  event.capture = 0;
  HostNode node;
  node.mark = static_cast<int>(marks_.size());
  marks_.push_back(&event);
  add(stream, std::move(node));
}

void Capture::wait(const HostStream& stream, const HostEvent& event) {
  if (event.capture != number_ || !is_on()) {
    throw Error(ErrorKind::internal, event.capture == 0
                                         ? "a captured stream waits for what is not captured"
                                         : "a wait for an event of an earlier capture");
  }
  ends_[&stream].insert(event.ends.begin(), event.ends.end());  // it is captured, too, from here on
}

std::vector<HostNode> Capture::end(const HostStream& origin) {
  if (&origin != origin_) throw Error(ErrorKind::internal, "ends another stream's capture");
  if (spoilt_) throw Error(ErrorKind::internal, spoilt_);
  std::vector<char> joined(nodes_.size());
  for (const std::size_t last : ends_.at(origin_)) joined[last] = 1;
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    if (!joined[i]) {
      throw Error(ErrorKind::internal, "a captured stream has not come back to the first one");
    }
    for (const std::size_t before : nodes_[i].after) joined[before] = 1;
  }
  origin_ = nullptr;
  ends_.clear();
  return std::exchange(nodes_, {});
}

void Capture::cancel() {
  origin_ = nullptr;
  ends_.clear();
  nodes_.clear();
  marks_.clear();
}

HostGraphWork::HostGraphWork(std::vector<HostNode> nodes)
    : nodes_(std::move(nodes)), next_(nodes_.size()) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    for (const std::size_t before : nodes_[i].after) next_[before].push_back(i);
    kernels_ += nodes_[i].is_kernel ? 1 : 0;
  }
}

void HostGraphWork::run(std::uint64_t seed, const std::vector<Recording>& marks) {
  std::mt19937_64 random(seed);
  std::vector<std::size_t> waits_for, ready;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    waits_for.push_back(nodes_[i].after.size());
    if (nodes_[i].after.empty()) ready.push_back(i);
  }
  std::vector<char> ends(nodes_.size() + 1);  // addresses; the last one is the launch's
  std::vector<std::unique_ptr<HostTask>> tasks;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    tasks.push_back(std::make_unique<HostTask>());
    tasks.back()->work = [&node = nodes_[i], &ends, &marks, i](HostBlock& block) {
      for (const std::size_t before : node.after) happens_after(&ends[before]);
      if (node.mark >= 0) {
        marks[static_cast<std::size_t>(node.mark)]->time = now_seconds();
      } else {
        node.work(block);
      }
      happens_before(&ends[i]);
    };
  }
  happens_before(&ends.back());
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    const std::size_t index = ready.back();
    ready.pop_back();
    nodes_[index].stream->graph_place.run(std::move(tasks[index]), &ends.back());
    for (const std::size_t next : next_[index]) {
      if (--waits_for[next] == 0) ready.push_back(next);
    }
  }
  for (char& end : ends) happens_after(&end);
}

}  // namespace paceline::cuda
