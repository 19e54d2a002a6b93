#include "engine/device/cuda/products/offer.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/device/cuda/products/requests.h"

namespace paceline::cuda {

std::vector<ConvOffer> offers_of(ChosenProducts& products,
                                 const std::vector<ConvRequest>& requests) {
  std::vector<ConvOffer> offers;
  for (const ConvRequest& request : requests) {
    ConvOffer offer{request, std::nullopt, ""};
    try {
      products.conv(request);
      const auto& choices = products.choices();
      const std::string name = text_of(request);
      offer.choice = *std::find_if(choices.begin(), choices.end(),
                                   [&](const Choice& one) { return one.request == name; });
    } catch (const Error& error) {
      offer.problem = error.what();
    }
    offers.push_back(std::move(offer));
  }
  return offers;
}

std::string table_of(const std::vector<ConvOffer>& offers) {
  std::size_t width = 0;
  for (const ConvOffer& offer : offers) width = std::max(width, text_of(offer.request).size());
  std::string table =
      fmt::format("{:{}}  offered  usable  workspace  chosen\n", "convolution", width);
  for (const ConvOffer& offer : offers) {
    const std::string name = text_of(offer.request);
    if (!offer.choice) {
      table += fmt::format("{:{}}  {}\n", name, width, offer.problem);
      continue;
    }
    const Choice& choice = *offer.choice;
    const std::string time =
        choice.seconds > 0 ? ", " + format_seconds(choice.seconds) : std::string();
    table += fmt::format("{:{}}  {:7}  {:6}  {:>9}  {}{}\n", name, width, choice.offered,
                         choice.usable, format_bytes(static_cast<double>(choice.workspace_bytes)),
                         choice.recipe.text(), time);
  }
  return table;
}

}  // namespace paceline::cuda
