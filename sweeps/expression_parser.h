// Parses an expression to its tree.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "results/parameters.h"

namespace paceline {

// A name in expressions that is not a parameter: the number of usable cores.
constexpr char kCoresName[] = "cores";

// An operator with operands, a literal, or a name. `column` is its position, from 1.
struct ExpressionNode {
  enum class Kind { literal, name, unary, binary, choice, call } kind;
  std::string token;  // operator, name or function
  Value value;        // for literals
  std::vector<std::unique_ptr<ExpressionNode>> parts;
  std::size_t column = 0;
};

// "FILE:LINE, column 7 of "gpus * "".
std::string expression_place(const std::string& where, std::size_t column, const std::string& text);

std::unique_ptr<ExpressionNode> parse_expression(const std::string& text, const std::string& where);

}  // namespace paceline
