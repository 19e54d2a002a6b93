// Choices that outlive a run: measured once for a card, read afterwards.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/device/cuda/dnn/choice.h"

namespace paceline::cuda {

// A choice is kept by its request and by the circumstances that it was made in, a text that names
// card, libraries and rules. Several processes may use one file: it is replaced as a whole, with
// what others have added to it.
class ChoicesFile {
 public:
  // No path: nothing is read or written. A file that is not ours, damaged or of a newer version is
  // not read, and never written over; problem() and a warning say so.
  explicit ChoicesFile(std::filesystem::path path);

  std::optional<Choice> find(const std::string& circumstances, const std::string& request) const;
  void put(const std::string& circumstances, const Choice& choice);
  // Writes if there is anything new. Throws input where it cannot.
  void save();

  const std::string& problem() const { return problem_; }

 private:
  using Entries = std::map<std::pair<std::string, std::string>, Choice>;
  Entries read();

  std::filesystem::path path_;
  Entries entries_, added_;
  std::string problem_;
};

}  // namespace paceline::cuda
