// How a communication backend is written: "base" or "inside/between", then "+wrapper"s:
// "mpi", "mirrored/gloo", "mpi+bf16".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct BackendStack {
  std::string inside;                 // among the replicas of a task; empty where there is one base
  std::string between;                // among tasks; the only base where there is one
  std::vector<std::string> wrappers;  // the first is the innermost
};

// Only cuts the text: whether there are such names is the caller's to see. Throws usage for a text
// that is no stack ("mpi+", "a/b/c").
BackendStack split_stack(std::string_view text, const std::string& where = "");
// The other way round.
std::string text_of(const BackendStack& stack);

}  // namespace paceline
