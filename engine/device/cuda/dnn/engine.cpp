#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/device/cuda/dnn/graph.h"

namespace paceline::cuda {

namespace {

struct Engine {
  Recipe recipe;
  EngineNotes notes;
  std::shared_ptr<Descriptor> config;
};

// At most as many as this program knows; a newer library may know more.
template <typename Note, std::size_t kKnown>
std::vector<Note> read_notes(const Descriptor& engine, cudnnBackendAttributeName_t name,
                             cudnnBackendAttributeType_t type) {
  std::vector<Note> notes(kKnown);
  const std::int64_t count = engine.get(name, type, kKnown, notes.data());
  notes.resize(std::min(kKnown, static_cast<std::size_t>(count)));
  return notes;
}

EngineNotes read_notes(const Descriptor& engine) {
  const auto numerical = read_notes<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT>(
      engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
  const auto behavior = read_notes<cudnnBackendBehaviorNote_t, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT>(
      engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE);
  const auto has = [](const auto& all, auto note) {
    return std::find(all.begin(), all.end(), note) != all.end();
  };
  EngineNotes notes;
  notes.tensor_cores = has(numerical, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  notes.converts_inputs = has(numerical, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  notes.narrow_sums = has(numerical, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  notes.fourier = has(numerical, CUDNN_NUMERICAL_NOTE_FFT);
  notes.large_winograd_tiles = has(numerical, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6) ||
                               has(numerical, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
  notes.winograd = has(numerical, CUDNN_NUMERICAL_NOTE_WINOGRAD) ||
                   has(numerical, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4) ||
                   notes.large_winograd_tiles;
  notes.varies = has(numerical, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  notes.compiles = has(behavior, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
  notes.reorders_filter = has(behavior, CUDNN_BEHAVIOR_NOTE_REQUIRES_FILTER_INT8x32_REORDER) ||
                          has(behavior, CUDNN_BEHAVIOR_NOTE_REQUIRES_BIAS_INT8x32_REORDER);
  return notes;
}

std::vector<Recipe::Knob> read_knobs(const Descriptor& config) {
  std::vector<Recipe::Knob> knobs;
  for (const Descriptor& choice :
       config.get_all(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_KNOB_TYPE_COUNTS,
                      CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "choice of a knob")) {
    cudnnBackendKnobType_t type{};
    choice.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    knobs.push_back({type, choice.integer(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE)});
  }
  return knobs;
}

Engine describe(const Session& session, Descriptor config) {
  Descriptor engine = session.make(CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
  config.get(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  Engine found;
  found.recipe.engine = engine.integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  found.recipe.knobs = read_knobs(config);
  found.notes = read_notes(engine);
  found.config = std::make_shared<Descriptor>(std::move(config));
  return found;
}

// A plan with the variant packs (ids with their addresses) that it was run with so far: a program
// runs a plan at few addresses, again and again.
class CudnnImplementation : public Implementation {
 public:
  CudnnImplementation(std::shared_ptr<const OperationGraph> graph, const Engine& engine)
      : graph_(std::move(graph)),
        config_(engine.config),
        plan_(graph_->session().make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "plan")) {
    graph_->session().name_card(plan_, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, kCardOfPlan);
    plan_.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, *config_).finalize();
    workspace_ = static_cast<std::size_t>(plan_.integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  }

  std::size_t workspace_bytes() const override { return workspace_; }

  void run(const Operands& operands, Stream stream) override {
    auto found = packs_.find(operands);
    if (found == packs_.end()) {
      if (packs_.size() >= kPacks) packs_.clear();
      found = packs_.emplace(operands, pack(operands)).first;
    }
    graph_->session().execute(plan_, found->second, stream);
  }

 private:
  static constexpr std::size_t kPacks = 64;

  Descriptor pack(const Operands& operands) const {
    Descriptor made = graph_->session().make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "addresses");
    const std::size_t count = graph_->tensors();
    std::array<std::int64_t, kMostTensors> ids{};
    std::iota(ids.begin(), ids.end(), 1);
    made.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span(ids).first(count))
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
             static_cast<std::int64_t>(count), operands.tensors.data())
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &operands.workspace)
        .finalize();
    return made;
  }

  std::shared_ptr<const OperationGraph> graph_;
  std::shared_ptr<Descriptor> config_;
  Descriptor plan_;
  std::size_t workspace_ = 0;
  std::map<Operands, Descriptor> packs_;
};

std::vector<Engine> ask(const OperationGraph& graph, cudnnBackendHeurMode_t mode) {
  const Session& session = graph.session();
  Descriptor heuristics = session.make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristics");
  session.name_card(heuristics, std::nullopt, kCardOfHeuristics);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.descriptor())
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode)
      .finalize();
  const std::int64_t count =
      heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  return mapped(
      heuristics.get_all(CUDNN_ATTR_ENGINEHEUR_RESULTS, count, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                         "configuration of an engine"),
      [&](Descriptor& config) { return describe(session, std::move(config)); });
}

Engine make_engine(const OperationGraph& graph, const Recipe& recipe) {
  const Session& session = graph.session();
  Descriptor engine = session.make(CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
  session.name_card(engine, std::nullopt, kCardOfEngine);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.descriptor())
      .set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, recipe.engine)
      .finalize();
  std::vector<Descriptor> choices;
  for (const Recipe::Knob& knob : recipe.knobs) {
    const auto type = static_cast<cudnnBackendKnobType_t>(knob.type);
    choices.push_back(session.make(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "choice of a knob"));
    choices.back()
        .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type)
        .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, knob.value)
        .finalize();
  }
  Descriptor config =
      session.make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "configuration of an engine");
  config.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!choices.empty()) config.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, choices);
  config.finalize();
  return {recipe, read_notes(engine), std::make_shared<Descriptor>(std::move(config))};
}

}  // namespace

Offered offered_engines(const std::shared_ptr<const OperationGraph>& graph,
                        const EngineRules& rules) {
  Offered found;
  std::vector<Recipe> seen;
  for (const cudnnBackendHeurMode_t mode :
       {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Engine& engine : ask(*graph, mode)) {
      if (std::find(seen.begin(), seen.end(), engine.recipe) != seen.end()) continue;
      seen.push_back(engine.recipe);
      ++found.count;
      if (const Support admitted = admits(rules, engine.notes); admitted) {
        found.candidates.push_back(
            {engine.recipe, engine.notes.tensor_cores, engine.notes.compiles,
             [graph, engine] { return std::make_shared<CudnnImplementation>(graph, engine); }});
      } else if (found.refused.empty()) {
        found.refused = engine.recipe.text() + " " + admitted.because();
      }
    }
  }
  return found;
}

std::shared_ptr<Implementation> build_engine(const std::shared_ptr<const OperationGraph>& graph,
                                             const EngineRules& rules, const Recipe& recipe) {
  if (recipe.library != Recipe::Library::cudnn) {
    throw input_error("not an engine of cuDNN", recipe.text(),
                      "remove it from the file of choices");
  }
  const Engine engine = make_engine(*graph, recipe);
  if (const Support admitted = admits(rules, engine.notes); !admitted) {
    throw usage_error(recipe.text() + " " + admitted.because(), "",
                      "remove it from the file of choices");
  }
  return std::make_shared<CudnnImplementation>(graph, engine);
}

}  // namespace paceline::cuda
