#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/device/cuda/dnn/chosen_products.h"

namespace paceline::cuda {

constexpr EnumName<Math> kMathNames[] = {
    {Math::fp32, "fp32"}, {Math::tf32, "tf32"}, {Math::bf16, "bf16"}, {Math::fp16, "fp16"}};

const char* to_string(Math math) {
  return name_in(kMathNames, math);
}

constexpr EnumName<ConvPass> kConvPassNames[] = {{ConvPass::forward, "forward"},
                                                 {ConvPass::backward_data, "backward_data"},
                                                 {ConvPass::backward_weights, "backward_weights"}};

const char* to_string(ConvPass pass) {
  return name_in(kConvPassNames, pass);
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

namespace {

struct Row {
  std::string request, columns;
};

std::string format_columns(const Choice& choice) {
  std::string columns =
      fmt::format("{:7}  {:6}  {:>9}  {}", choice.offered, choice.usable,
                  format_bytes(static_cast<double>(choice.workspace_bytes)), choice.recipe.text());
  if (choice.seconds > 0) columns += ", " + format_seconds(choice.seconds);
  if (choice.runner_up_seconds > 0) {
    columns +=
        fmt::format("; then {}, {}", choice.runner_up, format_seconds(choice.runner_up_seconds));
  }
  if (choice.baseline_seconds > 0) {
    columns += fmt::format("; apart {}", format_seconds(choice.baseline_seconds));
  }
  return columns;
}

std::string lay_out(const std::vector<Row>& rows) {
  std::size_t width = std::string_view("request").size();
  for (const Row& row : rows) width = std::max(width, row.request.size());
  std::string table = fmt::format("{:{}}  offered  usable  workspace  chosen\n", "request", width);
  for (const Row& row : rows) table += fmt::format("{:{}}  {}\n", row.request, width, row.columns);
  return table;
}

}  // namespace

std::vector<ConvOffer> list_offers(ChosenProducts& products,
                                   const std::vector<ConvRequest>& requests) {
  std::vector<ConvOffer> offers;
  for (const ConvRequest& request : requests) {
    ConvOffer offer{request, std::nullopt, ""};
    try {
      products.conv(request);
      const auto& choices = products.choices();
      const std::string name = to_text(request);
      offer.choice = *std::find_if(choices.begin(), choices.end(),
                                   [&](const Choice& one) { return one.request == name; });
    } catch (const Error& error) {
      offer.problem = error.what();
    }
    offers.push_back(std::move(offer));
  }
  return offers;
}

std::string format_table(const std::vector<ConvOffer>& offers) {
  std::vector<Row> rows;
  for (const ConvOffer& offer : offers) {
    rows.push_back(
        {to_text(offer.request), offer.choice ? format_columns(*offer.choice) : offer.problem});
  }
  return lay_out(rows);
}

std::string format_table(const std::vector<Choice>& choices) {
  std::vector<Row> rows;
  for (const Choice& choice : choices) rows.push_back({choice.request, format_columns(choice)});
  return lay_out(rows);
}

}  // namespace paceline::cuda
