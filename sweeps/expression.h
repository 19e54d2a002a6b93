// The expression language of `where` and `exclude`: conditions on the values of axes.
//
//   gpus * cpus_per_replica <= cores && (backend == 'mirrored' || gpus > 1)
//
// Values: numbers, 'text', true, false, and names, which are parameters and `cores`.
// Operators: + - * / % == != < <= > >= && || ! and parentheses.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/parameters.h"

namespace paceline {

// A name in expressions that is not a parameter: the number of usable cores.
constexpr char kCoresName[] = "cores";

class Expression {
 public:
  struct Token {
    std::string text;  // empty: the end
    std::size_t column = 1;
    Value value = false;  // of a number or a text in quotes
  };

  // The value of a name. Empty if there is none.
  using Lookup = std::function<std::optional<Value>(std::string_view name)>;

  // Throws input with `where` and the column: syntax errors, an unknown name (with a suggestion),
  // over 2000 characters, nested deeper than 60.
  Expression(std::string text, std::string where);

  // Throws input with the column: a name without a value, different types, division by zero, a
  // number that is too large, a result that is not true or false.
  bool holds(const Lookup& lookup) const;

  const std::string& text() const { return text_; }
  const std::string& where() const { return where_; }
  std::size_t size() const { return tokens_.size(); }  // what evaluating it costs

 private:
  std::string text_, where_;
  std::vector<Token> tokens_;
};

}  // namespace paceline
