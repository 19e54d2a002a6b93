// What the libraries offer for a list of convolutions, for doctor and for CI.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/device/cuda/dnn/chosen_products.h"

namespace paceline::cuda {

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
