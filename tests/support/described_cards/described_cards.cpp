#include "tests/support/described_cards/described_cards.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/device/cuda/dnn/session.h"

namespace paceline::cuda {

namespace {

struct Card {
  const char* name;
  const char* description;
};

constexpr Card kCards[] = {
#include "described_cards.inc"
};

}  // namespace

std::vector<std::string> described_cards() {
  std::vector<std::string> names;
  if (!kCardOfPlan) return names;  // this cuDNN takes no description
  for (const Card& card : kCards) names.emplace_back(card.name);
  return names;
}

std::string card_description(const std::string& name) {
  for (const Card& card : kCards) {
    if (name == card.name) return card.description;
  }
  throw Error(ErrorKind::usage, "no description of a card \"" + name + "\"", "",
              suggestion(name, described_cards()));
}

namespace {

std::size_t rows_of_logits(const Plan& plan, const Operation& operation, Math math) {
  return logit_rows(
      static_cast<std::size_t>(plan.batch) * static_cast<std::size_t>(plan.labels_per_sample),
      static_cast<std::size_t>(operation.out.channels) * size_of(stored_as(math)),
      std::size_t{140} << 30);  // as an H200 has
}

}  // namespace

std::vector<ConvRequest> conv_requests(const Plan& plan, Math math) {
  std::vector<ConvRequest> requests;
  const auto add = [&](const ConvRequest& request) {
    if (std::find(requests.begin(), requests.end(), request) == requests.end()) {
      requests.push_back(request);
    }
  };
  for (const Operation& operation : plan.operations) {
    const bool is_loss = operation.kind == OpKind::token_cross_entropy;
    if (!is_loss && !is_product_of_places(operation)) continue;
    const ConvShape shape =
        is_loss ? logits_shape(operation, rows_of_logits(plan, operation, math), math)
                : conv_shape(operation, plan.batch, math);
    add({shape, ConvPass::forward});
    if (is_loss || operation.input_grad != kNone) {
      add({shape, ConvPass::backward_data, operation.adds_input_grad});
    }
    add({shape, ConvPass::backward_weights});
    if (operation.kind != OpKind::conv || operation.from != 0) continue;
    if (const auto folded = fold_shape(shape, operation.in.channels)) {
      add({*folded, ConvPass::forward});
      add({*folded, ConvPass::backward_weights});
    }
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
