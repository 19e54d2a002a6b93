// Syntax of a communication backend: "base" or "inside/between", then "+wrapper"s: "mpi",
// "mirrored/mpi", "mpi+bf16".
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace paceline {

struct BackendStack {
  std::string inside;   // among the replicas of a task; empty if there is only one base
  std::string between;  // among tasks; or the only base
  std::vector<std::string> wrappers;  // the first one is innermost
};

// Only splits the text; the caller checks that the names exist. Throws usage for invalid syntax
// ("mpi+", "a/b/c").
BackendStack split_stack(std::string_view text, const std::string& where = "");
// The inverse.
std::string to_text(const BackendStack& stack);

// "Yes", or "no, because ...". Queried before a choice is made; the reason is logged.

class Support {
 public:
  static Support yes() { return {}; }
  static Support no(std::string because) { return Support(std::move(because)); }
  explicit operator bool() const { return because_.empty(); }
  const std::string& because() const { return because_; }

 private:
  Support() = default;
  explicit Support(std::string because) : because_(std::move(because)) {}
  std::string because_;
};

// A row of a generated factory table.
template <typename Function>
struct Factory {
  const char* name;
  Function make;
};

// Finds the row of a factory table by name.

// Null if there is none.
template <typename Function>
const Factory<Function>* find_factory(const std::vector<Factory<Function>>& table,
                                      std::string_view name) {
  for (const auto& row : table) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

}  // namespace paceline
