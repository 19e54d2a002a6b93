#include "engine/core/backend_stack.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

BackendStack split_stack(std::string_view text, const std::string& where) {
  std::vector<std::string> words = split(std::string(text), '+');
  const std::vector<std::string> bases = split(words.front(), '/');
  words.erase(words.begin());
  const auto empty = [](const std::string& word) { return word.empty(); };
  if (bases.size() > 2 || std::any_of(bases.begin(), bases.end(), empty) ||
      std::any_of(words.begin(), words.end(), empty)) {
    throw usage_error(fmt::format("\"{}\" is not a backend", text), where,
                      "write BASE or BASE/BASE, then +WRAPPERs: mpi, mirrored/mpi, mpi+bf16");
  }
  BackendStack stack;
  stack.between = bases.back();
  if (bases.size() == 2) stack.inside = bases.front();
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (std::find(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i), words[i]) !=
        words.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw usage_error(fmt::format("\"{}\" names +{} twice", text, words[i]), where,
                        "name each wrapper once");
    }
  }
  stack.wrappers = std::move(words);
  return stack;
}

std::string to_text(const BackendStack& stack) {
  std::string text = stack.inside.empty() ? stack.between : stack.inside + "/" + stack.between;
  for (const std::string& wrapper : stack.wrappers) text += "+" + wrapper;
  return text;
}

}  // namespace paceline
