// The expression language of `where`, `exclude` and `derived`: arithmetic over axis names.
//
//   gpus * cpus_per_replica <= cores && (backend == 'mirrored' || gpus > 1)
//   backend == 'mirrored' ? gpus * 8 : 8
//
// Values: numbers, 'text', true, false, and names, which are parameters and `cores`.
// Operators: + - * / % == != < <= > >= && || ! ?: and parentheses; min(a, b) and max(a, b).
// Integers stay integers if the result is exact: 4 / 2 is 2, 3 / 2 is 1.5.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/parameters.h"

namespace paceline {

struct ExpressionNode;

class Expression {
 public:
  // The value of a name. Empty if there is none.
  using Lookup = std::function<std::optional<Value>(std::string_view name)>;

  // Throws input with `where` and the column: syntax errors, an unknown name (with a suggestion),
  // over 2000 characters, nested deeper than about 30.
  Expression(std::string text, std::string where);
  ~Expression();
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;

  // Throws input with the column: a name without a value, different types, division by zero,
  // overflow.
  Value evaluate(const Lookup& lookup) const;
  bool holds(const Lookup& lookup) const;  // throws too if the result is not true or false

  const std::string& text() const { return text_; }
  const std::string& where() const { return where_; }

 private:
  std::string text_, where_;
  std::unique_ptr<ExpressionNode> root_;
};

// Parses an expression to its tree.

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
