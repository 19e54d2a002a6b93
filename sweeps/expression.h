// The small language of `where`, `exclude` and `derived`: arithmetic over axis names.
//
//   gpus * cpus_per_replica <= cores && (backend == 'mirrored' || gpus > 1)
//   backend == 'mirrored' ? gpus * 8 : 8
//
// Numbers, 'text', true, false, names, + - * / %, == != < <= > >=, && || !, ?:, parentheses,
// min(a, b) and max(a, b). Whole numbers stay whole where the result is exact.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "results/parameters.h"

namespace paceline {

class Expression {
 public:
  // The value of a name, or nothing if there is none.
  using Lookup = std::function<std::optional<Value>(std::string_view name)>;

  // Throws input with `where` and the column. Bounded in length and depth.
  Expression(std::string text, std::string where);
  ~Expression();
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;

  // Throws input: unknown name (the nearest of names() given), unlike types, division by zero.
  Value evaluate(const Lookup& lookup) const;
  bool holds(const Lookup& lookup) const;  // throws if the result is not true or false

  const std::vector<std::string>& names() const { return names_; }  // that it uses
  const std::string& text() const { return text_; }

  struct Node;

 private:
  std::string text_, where_;
  std::unique_ptr<Node> root_;
  std::vector<std::string> names_;
};

}  // namespace paceline
