// Captures and graphs.
#include <algorithm>

#include "tests/support/fake_cuda/state.h"

using namespace paceline::fake_cuda;

namespace {

Graph* make_graph(cudaGraph_t graph) {
  const auto found = state().graphs.find(graph);
  return found == state().graphs.end() ? nullptr : found->second.get();
}

void end(const std::shared_ptr<Capture>& capture) {
  capture->ended = true;
  for (Stream* stream : capture->streams) {
    stream->capture = nullptr;
    stream->tail.clear();
  }
  state().captures.erase(capture);
}

// Whether all that other streams have queued comes before what the first one goes on with.
bool is_joined(const Capture& capture) {
  std::set<Node*> before;
  std::vector<Node*> open(capture.origin->tail.begin(), capture.origin->tail.end());
  while (!open.empty()) {
    Node* node = open.back();
    open.pop_back();
    if (before.insert(node).second) open.insert(open.end(), node->after.begin(), node->after.end());
  }
  return std::all_of(capture.streams.begin(), capture.streams.end(), [&](const Stream* stream) {
    return std::all_of(stream->tail.begin(), stream->tail.end(),
                       [&](Node* node) { return before.count(node) > 0; });
  });
}

// Any order in which a node comes after those that it has to.
std::vector<Node*> some_order(const std::vector<Node*>& nodes) {
  std::vector<Node*> order, left = nodes;
  std::set<Node*> done;
  while (!left.empty()) {
    std::shuffle(left.begin(), left.end(), state().random);
    const auto ready = std::find_if(left.begin(), left.end(), [&](const Node* node) {
      return std::all_of(node->after.begin(), node->after.end(),
                         [&](Node* other) { return done.count(other) > 0; });
    });
    order.push_back(*ready);
    done.insert(*ready);
    left.erase(ready);
  }
  return order;
}

}  // namespace

// clang-format off
#define ENTER(name) const Call call(name); if (!call) return call.error()
// clang-format on

extern "C" {

cudaError_t CUDARTAPI cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  ENTER("cudaStreamBeginCapture");
  const StreamPtr on = make_stream(stream);
  if (stream == nullptr) return leave(cudaErrorStreamCaptureUnsupported);
  if (!on) return leave(cudaErrorInvalidResourceHandle);
  if (on->capture) return leave(cudaErrorIllegalState);
  auto capture = std::make_shared<Capture>();
  capture->origin = on;
  capture->thread = std::this_thread::get_id();
  capture->mode = mode;
  capture->streams = {on.get()};
  on->capture = capture;
  state().captures.insert(capture);
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  ENTER("cudaStreamEndCapture");
  *graph = nullptr;
  const StreamPtr on = make_stream(stream);
  if (!on) return leave(cudaErrorInvalidResourceHandle);
  const std::shared_ptr<Capture> capture = on->capture;
  if (!capture) return leave(cudaErrorIllegalState);
  if (capture->origin != on) return leave(cudaErrorStreamCaptureUnmatched);
  if (capture->thread != std::this_thread::get_id())
    return leave(cudaErrorStreamCaptureWrongThread);
  const bool joined = is_joined(*capture);
  end(capture);
  if (!capture->valid) return leave(cudaErrorStreamCaptureInvalidated);
  if (!joined) return leave(cudaErrorStreamCaptureUnjoined);
  *graph = reinterpret_cast<cudaGraph_t>(capture->graph.get());
  state().graphs[*graph] = std::move(capture->graph);
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes,
                                        std::size_t* count) {
  ENTER("cudaGraphGetNodes");
  const Graph* of = make_graph(graph);
  if (of == nullptr) return leave(cudaErrorInvalidValue);
  if (nodes != nullptr) {
    *count = std::min(*count, of->nodes.size());
    for (std::size_t i = 0; i < *count; ++i) {
      nodes[i] = reinterpret_cast<cudaGraphNode_t>(of->nodes[i].get());
    }
  } else {
    *count = of->nodes.size();
  }
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  ENTER("cudaGraphNodeGetType");
  *type = reinterpret_cast<Node*>(node)->type;
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  ENTER("cudaGraphEventRecordNodeGetEvent");
  if (reinterpret_cast<Node*>(node)->type != cudaGraphNodeTypeEventRecord) {
    return leave(cudaErrorInvalidValue);
  }
  *event = reinterpret_cast<Node*>(node)->event;
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                           unsigned long long) {
  ENTER("cudaGraphInstantiate");
  Graph* of = make_graph(graph);
  if (of == nullptr) return leave(cudaErrorInvalidValue);
  auto made = std::make_unique<Executable>();
  made->graph = of;
  for (const auto& node : of->nodes) made->nodes[node.get()] = std::make_shared<Node>(*node);
  for (const auto& node : of->nodes) {
    Node* own = made->nodes[node.get()].get();
    for (Node*& before : own->after) before = made->nodes[before].get();
    made->order.push_back(own);
  }
  *executable = reinterpret_cast<cudaGraphExec_t>(made.get());
  state().executables[*executable] = std::move(made);
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t executable,
                                                           cudaGraphNode_t node,
                                                           cudaEvent_t event) {
  ENTER("cudaGraphExecEventRecordNodeSetEvent");
  const auto found = state().executables.find(executable);
  const auto with = event_at(event);
  if (found == state().executables.end() || !with) return leave(cudaErrorInvalidValue);
  const Executable& in = *found->second;
  if (make_graph(reinterpret_cast<cudaGraph_t>(in.graph)) == nullptr) {
    return leave(cudaErrorInvalidValue);  // its nodes have no names any more
  }
  const auto at = in.nodes.find(reinterpret_cast<Node*>(node));
  if (at == in.nodes.end() || at->second->type != cudaGraphNodeTypeEventRecord) {
    return leave(cudaErrorInvalidValue);
  }
  at->second->event = event;
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  ENTER("cudaGraphLaunch");
  const auto found = state().executables.find(executable);
  const StreamPtr on = make_stream(stream);
  if (found == state().executables.end()) return leave(cudaErrorInvalidValue);
  if (!on || on->device != current_device()) return leave(cudaErrorInvalidResourceHandle);
  if (on->capture) return leave(cudaErrorStreamCaptureUnsupported);
  // What it records and runs is what it holds now, whatever is set in it later.
  std::vector<std::function<void()>> work;
  for (const Node* node : some_order(found->second->order)) {
    if (node->type != cudaGraphNodeTypeEventRecord) {
      work.push_back(node->work);
      continue;
    }
    const auto event = event_at(node->event);
    if (!event) return leave(cudaErrorInvalidResourceHandle);
    event->capture = nullptr;
    event->record = record_now(on);
    work.push_back([record = event->record] {
      record->done = true;
      record->time = now();
    });
  }
  return leave(queue(*on, cudaGraphNodeTypeGraph, [work = std::move(work), device = on->device] {
    for (const auto& one : work) {
      if (state().broken.count(device) == 0) one();
    }
  }));
}

cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t executable) {
  ENTER("cudaGraphExecDestroy");
  return leave(state().executables.erase(executable) > 0 ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t graph) {
  ENTER("cudaGraphDestroy");
  return leave(state().graphs.erase(graph) > 0 ? cudaSuccess : cudaErrorInvalidValue);
}

}  // extern "C"
