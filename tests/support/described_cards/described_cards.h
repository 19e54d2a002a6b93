// What cuDNN offers for convolutions on cards that are only described, so that this is known where
// there is none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/device/cuda/dnn/chosen_products.h"
#include "engine/plan/plan.h"

namespace paceline::cuda {

// Names of the descriptions in devices/, for ProductsOptions::card_description: "h200".
std::vector<std::string> described_cards();
std::string card_description(const std::string& name);

// Every convolution of a step, without duplicates.
std::vector<ConvRequest> conv_requests(const Plan& plan, Math math);

struct ConvOffer {
  ConvRequest request;
  std::optional<Choice> choice;  // empty: `problem` says why
  std::string problem;
};

std::vector<ConvOffer> list_offers(ChosenProducts& products,
                                   const std::vector<ConvRequest>& requests);

// One line per request: offered, usable, workspace, the choice, and, if measured, its time and the
// runner-up's.
std::string format_table(const std::vector<ConvOffer>& offers);
std::string format_table(const std::vector<Choice>& choices);

}  // namespace paceline::cuda
