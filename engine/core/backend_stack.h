// Syntax of a communication backend: "base" or "inside/between", then "+wrapper"s: "mpi",
// "mirrored/gloo", "mpi+bf16".
#pragma once

#include <string>
#include <string_view>
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

}  // namespace paceline
