// From a finished operation graph to engines and plans: the same for every graph.
#pragma once

#include <memory>
#include <vector>

#include "engine/device/cuda/products/candidate.h"
#include "engine/device/cuda/products/filter.h"
#include "engine/device/cuda/products/session.h"

namespace paceline::cuda {

// Ids of a graph's tensors in memory.
enum TensorId : std::int64_t { kTensorA = 1, kTensorB = 2, kTensorOut = 3, kFirstVirtual = 100 };

// Keeps all that a graph is made of: cuDNN does not.
class OperationGraph {
 public:
  // `operations` and what they refer to in `parts`. Throws where cuDNN refuses it.
  OperationGraph(std::shared_ptr<Session> session, std::vector<Descriptor> parts,
                 std::vector<Descriptor> operations);

  Session& session() const { return *session_; }
  const Descriptor& descriptor() const { return graph_; }

 private:
  std::shared_ptr<Session> session_;
  std::vector<Descriptor> parts_, operations_;
  Descriptor graph_;
};

struct Engine {
  Recipe recipe;
  EngineNotes notes;
  std::shared_ptr<Descriptor> config;
};

// What a heuristic offers, best first.
std::vector<Engine> offered_engines(const OperationGraph& graph, cudnnBackendHeurMode_t mode);

// The configuration of a recipe. Throws where this version of cuDNN or this graph has none.
Engine engine_of(const OperationGraph& graph, const Recipe& recipe);

// Checks support and builds: at once where kernels are compiled already, else up to seconds.
std::shared_ptr<Implementation> build_plan(const std::shared_ptr<const OperationGraph>& graph,
                                           const Engine& engine);

}  // namespace paceline::cuda
