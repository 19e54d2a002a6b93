#include "sweeps/expression.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "engine/core/error.h"
#include "sweeps/expression_parser.h"

namespace paceline {

namespace {

using Node = ExpressionNode;

class Evaluator {
 public:
  Evaluator(const Expression& expression, const Expression::Lookup& lookup)
      : expression_(expression), lookup_(lookup) {}

  Value evaluate_node(const Node& node) const {
    switch (node.kind) {
      case Node::Kind::literal:
        return node.value;
      case Node::Kind::name:
        return name_value(node);
      case Node::Kind::unary:
        return unary(node);
      case Node::Kind::binary:
        return binary(node);
      case Node::Kind::choice:
        return evaluate_node(*node.parts[truth(*node.parts[0]) ? 1 : 2]);
      case Node::Kind::call:
        return smaller_or_larger(node);
    }
    fail("the expression cannot be evaluated", node);
  }

  bool truth(const Node& node) const {
    const Value value = evaluate_node(node);
    if (const auto* flag = std::get_if<bool>(&value)) return *flag;
    fail(fmt::format("\"{}\" is neither true nor false", to_text(value)), node);
  }

 private:
  [[noreturn]] void fail(const std::string& what, const Node& node,
                         const std::string& fix = "fix the expression") const {
    throw Error(ErrorKind::input, what,
                expression_place(expression_.where(), node.column, expression_.text()), fix);
  }

  Value name_value(const Node& node) const {
    if (const auto value = lookup_(node.token)) return *value;
    fail(fmt::format("\"{}\" has no value in this sweep", node.token), node,
         "add it to fixed or axes, or derive it above");
  }

  double real(const Value& value, const Node& node) const {
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
    if (const auto* number = std::get_if<double>(&value)) return *number;
    fail(fmt::format("\"{}\" is not a number", to_text(value)), node);
  }

  Value unary(const Node& node) const {
    if (node.token == "!") return !truth(*node.parts[0]);
    const Value value = evaluate_node(*node.parts[0]);
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return difference(0, *whole, node);
    return -real(value, node);
  }

  Value smaller_or_larger(const Node& node) const {
    const Value a = evaluate_node(*node.parts[0]), b = evaluate_node(*node.parts[1]);
    const bool first = compare(a, b, node.token == "min" ? "<=" : ">=", node);
    return first ? a : b;
  }

  Value binary(const Node& node) const {
    if (node.token == "&&") return truth(*node.parts[0]) && truth(*node.parts[1]);
    if (node.token == "||") return truth(*node.parts[0]) || truth(*node.parts[1]);
    const Value a = evaluate_node(*node.parts[0]), b = evaluate_node(*node.parts[1]);
    if (node.token == "==") return equal(a, b, node);
    if (node.token == "!=") return !equal(a, b, node);
    if (node.token[0] == '<' || node.token[0] == '>') return compare(a, b, node.token, node);
    const auto* left = std::get_if<std::int64_t>(&a);
    const auto* right = std::get_if<std::int64_t>(&b);
    if (left && right) return calculate(*left, *right, node);
    return calculate(real(a, node), real(b, node), node);
  }

  bool equal(const Value& a, const Value& b, const Node& node) const {
    const bool text = std::holds_alternative<std::string>(a);
    const bool flag = std::holds_alternative<bool>(a);
    if (text != std::holds_alternative<std::string>(b) || flag != std::holds_alternative<bool>(b)) {
      fail(fmt::format("\"{}\" and \"{}\" cannot be compared", to_text(a), to_text(b)), node);
    }
    return a.index() == b.index() ? a == b : real(a, node) == real(b, node);
  }

  bool compare(const Value& a, const Value& b, const std::string& token, const Node& node) const {
    const auto* left = std::get_if<std::int64_t>(&a);
    const auto* right = std::get_if<std::int64_t>(&b);
    if (left && right) return ordered(*left, *right, token);
    return ordered(real(a, node), real(b, node), token);
  }

  template <typename Number>
  static bool ordered(Number a, Number b, const std::string& token) {
    if (token == "<") return a < b;
    if (token == "<=") return a <= b;
    if (token == ">") return a > b;
    return a >= b;
  }

  std::int64_t difference(std::int64_t a, std::int64_t b, const Node& node) const {
    std::int64_t result = 0;
    if (__builtin_sub_overflow(a, b, &result)) fail("the number is too large", node);
    return result;
  }

  Value calculate(std::int64_t a, std::int64_t b, const Node& node) const {
    std::int64_t result = 0;
    bool overflow = false;
    switch (node.token[0]) {
      case '+':
        overflow = __builtin_add_overflow(a, b, &result);
        break;
      case '-':
        return difference(a, b, node);
      case '*':
        overflow = __builtin_mul_overflow(a, b, &result);
        break;
      default:
        if (b == 0) fail("division by zero", node);
        overflow = a == std::numeric_limits<std::int64_t>::min() && b == -1;
        if (overflow) break;
        if (node.token == "%") return a % b;
        if (a % b != 0) return static_cast<double>(a) / static_cast<double>(b);
        result = a / b;
    }
    if (overflow) fail("the number is too large", node);
    return result;
  }

  Value calculate(double a, double b, const Node& node) const {
    double result = 0;
    switch (node.token[0]) {
      case '+':
        result = a + b;
        break;
      case '-':
        result = a - b;
        break;
      case '*':
        result = a * b;
        break;
      default:
        if (b == 0) fail("division by zero", node);
        result = node.token == "%" ? std::fmod(a, b) : a / b;
    }
    if (!std::isfinite(result)) fail("the number is too large", node);
    return result;
  }

  const Expression& expression_;
  const Expression::Lookup& lookup_;
};

}  // namespace

Expression::Expression(std::string text, std::string where)
    : text_(std::move(text)), where_(std::move(where)), root_(parse_expression(text_, where_)) {}

Expression::~Expression() = default;
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;

Value Expression::evaluate(const Lookup& lookup) const {
  return Evaluator(*this, lookup).evaluate_node(*root_);
}

bool Expression::holds(const Lookup& lookup) const {
  return Evaluator(*this, lookup).truth(*root_);
}

}  // namespace paceline
