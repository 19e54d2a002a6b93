// What the libraries offer for a list of convolutions: for doctor, and for the check in CI.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/device/cuda/dnn/chosen_products.h"

namespace paceline::cuda {

struct ConvOffer {
  ConvRequest request;
  std::optional<Choice> choice;  // none: `problem` says why
  std::string problem;
};

std::vector<ConvOffer> offers_of(ChosenProducts& products,
                                 const std::vector<ConvRequest>& requests);

// A line a request: offered, usable, workspace, what was chosen and, where it was measured, its
// time and the runner-up's.
std::string table_of(const std::vector<ConvOffer>& offers);
std::string table_of(const std::vector<Choice>& choices);

}  // namespace paceline::cuda
