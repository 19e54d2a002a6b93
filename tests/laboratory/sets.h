// Made data sets of known truth, with what must be said of them and what must not.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/core/json.h"

namespace paceline::laboratory {

struct NamedSet {
  std::string name, truth;
  std::function<std::vector<Json>(std::uint32_t seed)> records;
  // Regular expressions of lines of a Page: "^no_loss: " is a finding's kind. `never` holds unless
  // a line matches `unless`.
  std::vector<std::string> must, never;
  std::string unless{};
};

const std::vector<NamedSet>& named_sets();

}  // namespace paceline::laboratory
