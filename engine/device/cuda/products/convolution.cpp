#include "engine/device/cuda/products/convolution.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/core/error.h"
#include "engine/device/cuda/products/engine.h"
#include "engine/device/cuda/products/requests.h"

namespace paceline::cuda {

namespace {

cudnnDataType_t type_of(Math math) {
  switch (stored_as(math)) {
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    case DType::f16:
      return CUDNN_DATA_HALF;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

// Dimensions in cuDNN's order (batch or out, channels, height, width); that channels lie closest
// together is said by the strides.
Descriptor tensor(const Session& session, std::int64_t id, Math math,
                  std::array<std::int64_t, 4> size) {
  const auto [n, c, h, w] = size;
  const std::array<std::int64_t, 4> strides{h * w * c, 1, w * c, c};
  Descriptor made = session.make(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type_of(math))
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, size)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16})
      .finalize();
  return made;
}

Descriptor window(const Session& session, const ConvShape& shape) {
  const std::array<std::int64_t, 2> padding{shape.padding, shape.padding};
  const std::array<std::int64_t, 2> strides{shape.stride, shape.stride};
  const std::array<std::int64_t, 2> dilations{1, 1};
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  Descriptor made = session.make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution");
  made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, padding)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, padding)
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides)
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilations)
      .finalize();
  return made;
}

// The attributes of a pass, whose names differ and whose meaning does not.
struct PassNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, w, y, window, alpha, beta;
};

const PassNames& names_of(ConvPass pass) {
  static constexpr PassNames kForward{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  static constexpr PassNames kData{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  static constexpr PassNames kWeights{
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  return pass == ConvPass::forward ? kForward : pass == ConvPass::backward_data ? kData : kWeights;
}

struct TensorIds {
  std::int64_t x, w, y;
};

TensorIds ids_of(ConvPass pass) {
  switch (pass) {
    case ConvPass::forward:
      return {kTensorA, kTensorB, kTensorOut};
    case ConvPass::backward_data:
      return {kTensorOut, kTensorB, kTensorA};
    case ConvPass::backward_weights:
      return {kTensorB, kTensorOut, kTensorA};
  }
  throw Error(ErrorKind::internal, "a convolution's pass has no name");
}

std::shared_ptr<const OperationGraph> graph_of(const std::shared_ptr<Session>& session,
                                               const ConvRequest& request) {
  const ConvShape& shape = request.shape;
  const TensorIds ids = ids_of(request.pass);
  const PassNames& names = names_of(request.pass);
  enum { kX, kW, kY, kWindow };
  std::vector<Descriptor> parts;
  parts.push_back(
      tensor(*session, ids.x, shape.math, {shape.batch, shape.in, shape.height, shape.width}));
  parts.push_back(
      tensor(*session, ids.w, shape.math, {shape.out, shape.in, shape.kernel, shape.kernel}));
  parts.push_back(tensor(*session, ids.y, shape.math,
                         {shape.batch, shape.out, shape.out_height(), shape.out_width()}));
  parts.push_back(window(*session, shape));
  std::vector<Descriptor> operations;
  operations.push_back(session->make(names.operation, "operation of a convolution"));
  operations.back()
      .set(names.x, parts[kX])
      .set(names.w, parts[kW])
      .set(names.y, parts[kY])
      .set(names.window, parts[kWindow])
      .set(names.alpha, 1.0)
      .set(names.beta, request.accumulates ? 1.0 : 0.0)
      .finalize();
  return std::make_shared<OperationGraph>(session, std::move(parts), std::move(operations));
}

}  // namespace

Operands operands_of(ConvPass pass, const ConvOperands& operands) {
  switch (pass) {
    case ConvPass::forward:
      return {operands.x, operands.w, operands.y, operands.workspace};
    case ConvPass::backward_data:
      return {operands.y, operands.w, operands.x, operands.workspace};
    case ConvPass::backward_weights:
      return {operands.y, operands.x, operands.w, operands.workspace};
  }
  throw Error(ErrorKind::internal, "a convolution's pass has no name");
}

Offered cudnn_offer(const std::shared_ptr<Session>& session, const ConvRequest& request,
                    const EngineRules& rules) {
  const std::shared_ptr<const OperationGraph> graph = graph_of(session, request);
  Offered found;
  std::vector<Recipe> seen;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (Engine& engine : offered_engines(*graph, mode)) {
      if (std::find(seen.begin(), seen.end(), engine.recipe) != seen.end()) continue;
      seen.push_back(engine.recipe);
      ++found.count;
      if (const Support admitted = admits(rules, engine.notes); !admitted) {
        if (found.refused.empty()) {
          found.refused = engine.recipe.text() + " " + admitted.because();
        }
        continue;
      }
      found.candidates.push_back({engine.recipe, engine.notes.tensor_cores,
                                  [graph, engine] { return build_plan(graph, engine); }});
    }
  }
  return found;
}

std::shared_ptr<Implementation> build_convolution(const std::shared_ptr<Session>& session,
                                                  const ConvRequest& request,
                                                  const EngineRules& rules, const Recipe& recipe) {
  const std::shared_ptr<const OperationGraph> graph = graph_of(session, request);
  const Engine engine = engine_of(*graph, recipe);
  if (const Support admitted = admits(rules, engine.notes); !admitted) {
    throw Error(ErrorKind::usage, recipe.text() + " " + admitted.because(), text_of(request),
                "remove it from the file of choices");
  }
  return build_plan(graph, engine);
}

}  // namespace paceline::cuda
