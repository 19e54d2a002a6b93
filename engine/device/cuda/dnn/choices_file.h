// Stores choices between runs: measured once per card, and read afterwards.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/cuda/dnn/choice.h"

namespace paceline::cuda {

// A way that is not to be tried, and why.
struct Exclusion {
  Recipe recipe;
  std::string because;
};

// A choice is stored with its request and its circumstances, a text that names card, libraries and
// rules. Processes can share a file: it is replaced atomically, including what others added.
class ChoicesFile {
 public:
  // Without a path, reads and writes nothing. A file of another program, or one that is damaged or
  // newer, is neither read nor overwritten; problem() and a warning say so. Excludes what a process
  // that has ended left marked (TrialMark), and saves that.
  explicit ChoicesFile(std::filesystem::path path);

  std::optional<Choice> find(const std::string& circumstances, const std::string& request) const;
  void put(const std::string& circumstances, const Choice& choice);
  std::vector<Exclusion> excluded(const std::string& circumstances,
                                  const std::string& request) const;
  void exclude(const std::string& circumstances, const std::string& request,
               const Exclusion& exclusion);
  // Writes what is new, if anything. Throws input if that fails.
  void save();

  const std::string& problem() const { return problem_; }

 private:
  using Key = std::pair<std::string, std::string>;
  struct Content {
    std::map<Key, Choice> choices;
    std::map<Key, std::vector<Exclusion>> excluded;
    void add(const Content& other);
  };
  Content read();
  Content read_marks(std::vector<std::filesystem::path>& files) const;

  std::filesystem::path path_;
  Content content_, added_;
  std::string problem_;
};

// Names the way that is being tried, in a file beside the choices that is locked as long as this
// process lives. If it is killed because the way does not return, the next process finds it there.
class TrialMark {
 public:
  explicit TrialMark(std::filesystem::path choices);  // empty: marks nothing
  ~TrialMark();
  TrialMark(const TrialMark&) = delete;
  TrialMark& operator=(const TrialMark&) = delete;

  void set(const std::string& circumstances, const std::string& request, const Recipe& recipe);

 private:
  void remove() noexcept;

  std::string path_;  // of the mark, once there is one
  int descriptor_ = -1;
  std::size_t bytes_ = 0;
};

}  // namespace paceline::cuda
