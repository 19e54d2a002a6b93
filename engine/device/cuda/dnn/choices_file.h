// Stores choices between runs: measured once per card, and read afterwards.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/cuda/dnn/choice.h"

namespace paceline::cuda {

// A choice is stored with its request and its circumstances, a text that names card, libraries and
// rules. Processes can share a file: it is replaced atomically, including what others added.
class ChoicesFile {
 public:
  // Without a path, reads and writes nothing. A file of another program, or one that is damaged or
  // newer, is neither read nor overwritten; problem() and a warning say so.
  explicit ChoicesFile(std::filesystem::path path);

  std::optional<Choice> find(const std::string& circumstances, const std::string& request) const;
  void put(const std::string& circumstances, const Choice& choice);
  // Ways that are not to be tried, because they broke the GPU's context.
  std::vector<Recipe> excluded(const std::string& circumstances, const std::string& request) const;
  void exclude(const std::string& circumstances, const std::string& request, const Recipe& recipe);
  // Writes what is new, if anything. Throws input if that fails.
  void save();

  const std::string& problem() const { return problem_; }

 private:
  using Key = std::pair<std::string, std::string>;
  struct Content {
    std::map<Key, Choice> choices;
    std::map<Key, std::vector<Recipe>> excluded;
    void add(const Content& other);
  };
  Content read();

  std::filesystem::path path_;
  Content content_, added_;
  std::string problem_;
};

}  // namespace paceline::cuda
