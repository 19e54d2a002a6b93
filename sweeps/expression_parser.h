// From the text of an expression to its tree.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "results/parameters.h"

namespace paceline {

// The name, beside those of parameters, that expressions know: the cores that may be used here.
constexpr char kCoresName[] = "cores";

// An operator with its operands, a literal, or a name. `column` is where it stands, from 1.
struct ExpressionNode {
  enum class Kind { literal, name, unary, binary, choice, call } kind;
  std::string token;  // operator, name or function
  Value value;        // of a literal
  std::vector<std::unique_ptr<ExpressionNode>> parts;
  std::size_t column = 0;
};

// "FILE:LINE, column 7 of "gpus * "".
std::string expression_place(const std::string& where, std::size_t column, const std::string& text);

std::unique_ptr<ExpressionNode> parse_expression(const std::string& text, const std::string& where);

}  // namespace paceline
