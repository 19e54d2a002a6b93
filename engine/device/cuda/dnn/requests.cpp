#include "engine/device/cuda/dnn/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace paceline::cuda {

const char* to_string(Math math) {
  switch (math) {
    case Math::fp32:
      return "fp32";
    case Math::tf32:
      return "tf32";
    case Math::bf16:
      return "bf16";
    case Math::fp16:
      return "fp16";
  }
  return "?";
}

const char* to_string(ConvPass pass) {
  switch (pass) {
    case ConvPass::forward:
      return "forward";
    case ConvPass::backward_data:
      return "backward_data";
    case ConvPass::backward_weights:
      return "backward_weights";
  }
  return "?";
}

std::string to_text(const ConvRequest& request) {
  const ConvShape& shape = request.shape;
  const std::string window = shape.kernel == 1 && shape.stride == 1 && shape.padding == 0
                                 ? ""
                                 : fmt::format(" {}x{} / {} + {}", shape.kernel, shape.kernel,
                                               shape.stride, shape.padding);
  return fmt::format("{} {}x{}x{}x{} to {}{} {}{}", to_string(request.pass), shape.batch,
                     shape.height, shape.width, shape.in, shape.out, window, to_string(shape.math),
                     request.accumulates ? " adds" : "");
}

std::string to_text(const MatmulShape& shape) {
  constexpr std::array<const char*, 4> kEpilogues = {"", " + bias", " + bias + relu",
                                                     " with bias gradient"};
  return fmt::format("product {}x{}x{}{}{} {}{}{}", shape.m, shape.k, shape.n,
                     shape.left_transposed ? " left transposed" : "",
                     shape.right_transposed ? " right transposed" : "", to_string(shape.math),
                     shape.accumulates ? " adds" : "",
                     kEpilogues.at(static_cast<std::size_t>(shape.epilogue)));
}

std::vector<ConvRequest> conv_requests(const Plan& plan, Math math) {
  std::vector<ConvRequest> requests;
  const auto add = [&](const ConvRequest& request) {
    if (std::find(requests.begin(), requests.end(), request) == requests.end()) {
      requests.push_back(request);
    }
  };
  for (const Operation& operation : plan.operations) {
    if (operation.kind != OpKind::conv) continue;
    const ConvShape shape = conv_shape(operation, plan.batch, math);
    add({shape, ConvPass::forward});
    if (operation.input_grad != kNone) {
      add({shape, ConvPass::backward_data, operation.adds_input_grad});
    }
    add({shape, ConvPass::backward_weights});
  }
  return requests;
}

}  // namespace paceline::cuda
