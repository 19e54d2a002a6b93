// Fused convolutions on a card against their definition (products.h).
#include <gtest/gtest.h>

#include <cctype>
#include <map>

#include "engine/core/error.h"
#include "engine/device/cuda/dnn/graph.h"
#include "engine/device/cuda/dnn/session.h"
#include "engine/device/cuda/products.h"
#include "tests/conformance/device_cuda/card.h"
#include "tests/conformance/device_cuda/reference.h"

namespace paceline::cuda {
namespace {

// Of each offer, as kernels take seconds to compile; fp16's are bf16's but for a type.
std::size_t count_built(Math math) {
  return math == Math::bf16 ? 2 : 1;
}
constexpr int kRoundings = 3;  // of scale z, of its sum with shift, and of the result

bool is_backward(const FusedRequest& request) {
  return request.kind == FusedKind::backward_relu_sums ||
         request.kind == FusedKind::backward_mask_sums;
}

// The operands of a request and what must come of them, on the host.
class Problem {
 public:
  explicit Problem(const FusedRequest& request)
      : request_(request), shape_(request.shape), type_(stored_as(shape_.math)) {
    const std::size_t pixels = elements(shape_.batch, shape_.height, shape_.width);
    const std::size_t channels = elements(shape_.in);
    w = random_values(elements(shape_.out, shape_.kernel, shape_.kernel, shape_.in), 2, type_);
    y = random_values(elements(shape_.batch, shape_.out_height(), shape_.out_width(), shape_.out),
                      3, type_);
    scale = random_values(channels, 4, DType::f32);
    shift = random_values(channels, 5, DType::f32);
    z = random_values(pixels * channels, 6, type_);
    branch = random_values(z.size(), 7, type_);
    mask.resize((z.size() + 7) / 8);
    for (std::size_t i = 0; i < z.size(); ++i) {
      // Far enough from where rounding decides whether the gradient passes.
      if (std::abs(normalized(i)) < 0.01) z[i] = 1;
      if (branch[i] > 0.1F) mask[i / 8] |= std::byte(1 << i % 8);
    }
    is_backward(request) ? backward() : forward();
  }

  std::vector<float> w, y, scale, shift, z, branch;
  std::vector<std::byte> mask;
  Reference plane, sum, sum_of_products;

 private:
  template <typename... Sides>
  static std::size_t elements(Sides... sides) {
    return (std::size_t{1} * ... * static_cast<std::size_t>(sides));
  }

  double normalized(std::size_t i) const {
    const std::size_t channel = i % scale.size();
    return double{scale[channel]} * z[i] + shift[channel];
  }

  void forward() {
    plane = convolve({shape_, ConvPass::forward}, z, w, {}, y);
    add_up(plane.values, elements(shape_.out));
  }

  void backward() {
    ConvRequest convolution{shape_, ConvPass::backward_data, request_.adds_branch};
    plane = convolve(convolution, {}, w, y, branch);
    std::vector<double> factors(z.begin(), z.end());
    for (std::size_t i = 0; i < z.size(); ++i) {
      const bool passes = request_.kind == FusedKind::backward_relu_sums
                              ? normalized(i) > 0
                              : (mask[i / 8] & std::byte(1 << i % 8)) != std::byte(0);
      if (!passes) plane.values[i] = plane.magnitudes[i] = 0;
    }
    add_up(factors, elements(shape_.in));
  }

  // Sums of the plane and of its products with `factors`, per channel.
  void add_up(const std::vector<double>& factors, std::size_t channels) {
    for (Reference* one : {&sum, &sum_of_products}) {
      one->values.assign(channels, 0);
      one->magnitudes.assign(channels, 0);
    }
    for (std::size_t i = 0; i < plane.values.size(); ++i) {
      const std::size_t channel = i % channels;
      sum.values[channel] += plane.values[i];
      sum.magnitudes[channel] += plane.magnitudes[i];
      sum_of_products.values[channel] += plane.values[i] * factors[i];
      sum_of_products.magnitudes[channel] +=
          plane.magnitudes[i] * std::max(1.0, std::abs(factors[i]));
    }
  }

  FusedRequest request_;
  ConvShape shape_;
  DType type_;
};

class FusedOnCard : public testing::TestWithParam<FusedRequest> {
 protected:
  void SetUp() override {
    if (const std::string why = no_card(); !why.empty()) GTEST_SKIP() << why;
  }
};

// Runs once with fresh operands; compares all that is written.
void expect_right(const FusedRequest& request, const Problem& problem, Implementation& kernel) {
  const Math math = request.shape.math;
  const DType type = stored_as(math);
  const bool backward = is_backward(request);
  const auto on_card = [](const std::vector<std::byte>& bytes) {
    auto memory = std::make_unique<CardMemory>(bytes.size());
    memory->write(bytes);
    return memory;
  };
  const auto poisoned = [](std::size_t bytes) {
    auto memory = std::make_unique<CardMemory>(bytes);
    memory->poison();
    return memory;
  };
  const std::size_t plane_bytes = problem.z.size() * size_of(type);
  const std::size_t sum_bytes = problem.sum.values.size() * sizeof(float);
  const auto z = on_card(stored(problem.z, type)), w = on_card(stored(problem.w, type)),
             y = on_card(stored(problem.y, type)),
             scale = on_card(stored(problem.scale, DType::f32)),
             shift = on_card(stored(problem.shift, DType::f32)), mask = on_card(problem.mask),
             x = poisoned(plane_bytes), sum = poisoned(sum_bytes), products = poisoned(sum_bytes),
             workspace = poisoned(kernel.workspace_bytes());
  if (!backward) y->poison();
  const FusedOperands operands{.x = backward ? x->data() : z->data(),
                               .w = w->data(),
                               .y = y->data(),
                               .scale = scale->data(),
                               .shift = shift->data(),
                               .z = z->data(),
                               .mask = mask->data(),
                               .branch = x->data(),  // training adds in place
                               .sum = sum->data(),
                               .sum_of_products = products->data(),
                               .workspace = workspace->data()};
  CardStream stream;
  const auto work = [&](Stream on) { kernel.run(make_operands(request, operands), on); };
  const auto write_branch = [&] {
    if (request.adds_branch) x->write(stored(problem.branch, type));
  };
  write_branch();
  stream.run(work);  // a library may load what it needs at its first run
  write_branch();
  stream.run_as_graph(work);
  const auto expect_near = [&](const CardMemory& memory, DType of, const Reference& wanted) {
    EXPECT_EQ(difference(loaded(memory.read(), of), wanted, math, kRoundings), "");
  };
  expect_near(backward ? *x : *y, type, problem.plane);
  expect_near(*sum, DType::f32, problem.sum);
  expect_near(*products, DType::f32, problem.sum_of_products);
}

TEST_P(FusedOnCard, IsRight) {
  const FusedRequest& request = GetParam();
  const Libraries libraries{LibraryNames{}};
  const auto session = std::make_shared<Session>(libraries.cudnn, "");
  const Offered offered = fused_offer(session, request, {request.shape.math, false, true});
  const Problem problem(request);
  std::size_t built = 0;
  std::string failed;
  for (const Candidate& candidate : offered.candidates) {
    if (built == count_built(request.shape.math)) break;
    SCOPED_TRACE(candidate.recipe.text());
    try {
      const auto kernel = candidate.build();
      expect_right(request, problem, *kernel);
      ++built;
    } catch (const Error& error) {
      failed = error.what();
    }
  }
  EXPECT_GT(built, 0U) << failed;
}

std::vector<FusedRequest> fused_requests() {
  std::vector<FusedRequest> all;
  for (const Math math : {Math::bf16, Math::fp16}) {
    for (const ConvShape& shape : {ConvShape{4, 14, 14, 64, 64, 3, 1, 1, math},
                                   ConvShape{4, 14, 14, 64, 128, 1, 1, 0, math}}) {
      all.push_back({shape, FusedKind::forward_sums});
      all.push_back({shape, FusedKind::backward_relu_sums});
      all.push_back({shape, FusedKind::backward_mask_sums});
      all.push_back({shape, FusedKind::backward_mask_sums, true});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, FusedOnCard, testing::ValuesIn(fused_requests()),
                         [](const testing::TestParamInfo<FusedRequest>& info) {
                           std::string name = to_text(info.param);
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !std::isalnum(c); },
                               '_');
                           return name;
                         });

// The definition itself, on any machine: one pixel, one channel in, two out.
TEST(FusedReference, IsTheDefinition) {
  Problem forward({{1, 2, 1, 1, 2}, FusedKind::forward_sums});
  double sum = 0, squares = 0;
  for (const float z : forward.z) {
    const double y = double{z} * forward.w[1];
    sum += y;
    squares += y * y;
  }
  EXPECT_NEAR(forward.sum.values.at(1), sum, 1e-6);
  EXPECT_NEAR(forward.sum_of_products.values.at(1), squares, 1e-6);

  Problem backward({{1, 1, 1, 1, 2}, FusedKind::backward_mask_sums, true});
  const double gradient = double{backward.y[0]} * backward.w[0] +
                          double{backward.y[1]} * backward.w[1] + backward.branch[0];
  const bool passes = backward.mask[0] != std::byte(0);
  EXPECT_NEAR(backward.plane.values[0], passes ? gradient : 0, 1e-6);
  EXPECT_NEAR(backward.sum_of_products.values[0], passes ? gradient * backward.z[0] : 0, 1e-6);
}

}  // namespace
}  // namespace paceline::cuda
