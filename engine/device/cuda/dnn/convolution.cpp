#include "engine/device/cuda/dnn/convolution.h"

#include "engine/core/error.h"
#include "engine/device/cuda/dnn/engine.h"

namespace paceline::cuda {

namespace {

std::shared_ptr<const OperationGraph> make_graph(const std::shared_ptr<Session>& session,
                                                 const ConvRequest& request) {
  const ConvShape& shape = request.shape;
  GraphBuilder builder(session);
  const auto tensor = [&](int n, int channels, int height, int width) {
    return builder.tensor(cudnn_type(stored_as(shape.math)), {n, channels, height, width});
  };
  const auto x = [&] { return tensor(shape.batch, shape.in, shape.height, shape.width); };
  const auto w = [&] { return tensor(shape.out, shape.in, shape.kernel, shape.kernel); };
  const auto y = [&] {
    return tensor(shape.batch, shape.out, shape.out_height(), shape.out_width());
  };
  // Made in the order of make_operands.
  GraphBuilder::Tensor of_x{}, of_w{}, of_y{};
  switch (request.pass) {
    case ConvPass::forward:
      of_x = x(), of_w = w(), of_y = y();
      break;
    case ConvPass::backward_data:
      of_y = y(), of_w = w(), of_x = x();
      break;
    case ConvPass::backward_weights:
      of_y = y(), of_x = x(), of_w = w();
      break;
  }
  builder.convolution(request.pass, shape, of_x, of_w, of_y, request.accumulates);
  return builder.finish();
}

}  // namespace

Operands make_operands(ConvPass pass, const ConvOperands& operands) {
  switch (pass) {
    case ConvPass::forward:
      return {{operands.x, operands.w, operands.y}, operands.workspace};
    case ConvPass::backward_data:
      return {{operands.y, operands.w, operands.x}, operands.workspace};
    case ConvPass::backward_weights:
      return {{operands.y, operands.x, operands.w}, operands.workspace};
  }
  throw Error(ErrorKind::internal, "a convolution's pass has no name");
}

Offered cudnn_offer(const std::shared_ptr<Session>& session, const ConvRequest& request,
                    const EngineRules& rules) {
  return offered_engines(make_graph(session, request), rules);
}

std::shared_ptr<Implementation> build_convolution(const std::shared_ptr<Session>& session,
                                                  const ConvRequest& request,
                                                  const EngineRules& rules, const Recipe& recipe) {
  return build_engine(make_graph(session, request), rules, recipe);
}

}  // namespace paceline::cuda
