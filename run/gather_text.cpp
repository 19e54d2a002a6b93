#include "run/gather_text.h"

#include <utility>

namespace paceline {

std::vector<std::string> gather_texts(World& world, const std::vector<std::string>& mine,
                                      std::size_t most) {
  std::string all;
  on_every_replica(world.communicators(), [&](Communicator& communicator, std::size_t i) {
    std::string text = mine[i].size() > most ? "{}" : mine[i];
    text.resize(most, ' ');
    std::string gathered(most * static_cast<std::size_t>(communicator.size()), ' ');
    communicator.all_gather(text.data(), most, gathered.data());
    if (i == 0) all = std::move(gathered);
  });
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < all.size(); at += most) texts.push_back(all.substr(at, most));
  return texts;
}

}  // namespace paceline
