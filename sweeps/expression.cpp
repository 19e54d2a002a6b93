#include "sweeps/expression.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/text.h"

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

namespace {

constexpr std::size_t kMaxLength = 2000;
constexpr int kMaxDepth = 64;

using Node = ExpressionNode;

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// Recursive descent, a function a level of precedence.
class Parser {
 public:
  Parser(const std::string& text, const std::string& where) : text_(text), where_(where) {}

  std::unique_ptr<Node> parse() {
    if (text_.size() > kMaxLength) {
      throw Error(ErrorKind::input,
                  fmt::format("an expression of {} characters is too long", text_.size()), where_,
                  fmt::format("use at most {}", kMaxLength));
    }
    auto node = choice();
    skip_space();
    if (at_ < text_.size()) fail(fmt::format("unexpected \"{}\"", text_.substr(at_, 8)));
    return node;
  }

 private:
  [[noreturn]] void fail(const std::string& what,
                         const std::string& fix = "fix the expression") const {
    throw Error(ErrorKind::input, what, expression_place(where_, at_ + 1, text_), fix);
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  bool take(std::string_view token) {
    skip_space();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }

  // A node that begins where the next token stands.
  std::unique_ptr<Node> make(Node::Kind kind, std::string token) {
    skip_space();
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->token = std::move(token);
    node->column = at_ + 1;
    return node;
  }

  class Depth {
   public:
    explicit Depth(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kMaxDepth) parser_.fail("nested too deeply");
    }
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Parser& parser_;
  };

  std::unique_ptr<Node> choice() {
    const Depth depth(*this);
    auto condition = binary(0);
    auto node = make(Node::Kind::choice, "?");
    if (!take("?")) return condition;
    node->parts.push_back(std::move(condition));
    node->parts.push_back(choice());
    if (!take(":")) fail("expected \":\"");
    node->parts.push_back(choice());
    return node;
  }

  // Left-associative levels, from || to *; a comparison does not chain.
  std::unique_ptr<Node> binary(int level) {
    constexpr int kLevels = 5, kComparison = 2;
    if (level == kLevels) return unary();
    auto left = binary(level + 1);
    while (true) {
      auto node = make(Node::Kind::binary, "");
      node->token = take_operator(level);
      if (node->token.empty()) return left;
      node->parts.push_back(std::move(left));
      node->parts.push_back(binary(level + 1));
      left = std::move(node);
      if (level == kComparison) return left;
    }
  }

  std::string take_operator(int level) {
    switch (level) {
      case 0:
        return take_any({"||"});
      case 1:
        return take_any({"&&"});
      case 2:
        return take_any({"==", "!=", "<=", ">=", "<", ">"});
      case 3:
        return take_any({"+", "-"});
      default:
        return take_any({"*", "/", "%"});
    }
  }

  // The first of `tokens` that stands here; longer ones must come first.
  std::string take_any(std::initializer_list<const char*> tokens) {
    for (const char* token : tokens) {
      if (take(token)) return token;
    }
    return "";
  }

  std::unique_ptr<Node> unary() {
    const Depth depth(*this);
    auto node = make(Node::Kind::unary, "");
    node->token = take_any({"!", "-"});
    if (node->token.empty()) return primary();
    node->parts.push_back(unary());
    return node;
  }

  std::unique_ptr<Node> primary() {
    if (take("(")) {
      auto node = choice();
      if (!take(")")) fail("expected \")\"");
      return node;
    }
    skip_space();
    if (at_ == text_.size()) fail("something is missing at the end");
    const char c = text_[at_];
    if (c == '\'') return quoted();
    if (is_digit(c)) return number();
    if (is_word(c)) return word();
    fail(fmt::format("unexpected \"{}\"", c));
  }

  std::unique_ptr<Node> literal(Value value, std::size_t end) {
    auto node = make(Node::Kind::literal, "");
    node->value = std::move(value);
    at_ = end;
    return node;
  }

  std::unique_ptr<Node> quoted() {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string::npos) fail("a text without its closing quote");
    return literal(text_.substr(at_ + 1, end - at_ - 1), end + 1);
  }

  // Digits, a point, an exponent with its sign: what to_integer() or to_real() then accept.
  std::unique_ptr<Node> number() {
    std::size_t end = at_;
    while (end < text_.size()) {
      const char c = text_[end];
      const bool sign = (c == '+' || c == '-') && (text_[end - 1] == 'e' || text_[end - 1] == 'E');
      if (!is_word(c) && c != '.' && !sign) break;
      ++end;
    }
    const std::string digits = text_.substr(at_, end - at_);
    if (const auto whole = to_integer(digits)) return literal(*whole, end);
    if (const auto real = to_real(digits)) return literal(*real, end);
    fail(fmt::format("\"{}\" is not a number", digits));
  }

  std::unique_ptr<Node> word() {
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    const std::string word = text_.substr(at_, end - at_);
    if (word == "true" || word == "false") return literal(word == "true", end);
    const std::size_t after = text_.find_first_not_of(" \t\n\r\f\v", end);
    if (after != std::string::npos && text_[after] == '(') return call(word, after + 1);
    check_name(word);
    auto node = make(Node::Kind::name, word);
    at_ = end;
    return node;
  }

  std::unique_ptr<Node> call(const std::string& function, std::size_t arguments) {
    if (function != "min" && function != "max") {
      fail(fmt::format("unknown function {}", function), "known: min, max");
    }
    auto node = make(Node::Kind::call, function);
    at_ = arguments;
    node->parts.push_back(choice());
    if (!take(",")) fail("expected \",\"");
    node->parts.push_back(choice());
    if (!take(")")) fail("expected \")\"");
    return node;
  }

  void check_name(const std::string& name) const {
    if (name == kCoresName || find_parameter(name)) return;
    std::vector<std::string> known = {kCoresName};
    for (const Parameter& parameter : parameters()) known.emplace_back(parameter.name);
    fail(fmt::format("unknown name \"{}\"", name), suggestion(name, known));
  }

  const std::string& text_;
  const std::string& where_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string expression_place(const std::string& where, std::size_t column,
                             const std::string& text) {
  return fmt::format("{}, column {} of \"{}\"", where, column, text);
}

std::unique_ptr<ExpressionNode> parse_expression(const std::string& text,
                                                 const std::string& where) {
  return Parser(text, where).parse();
}

}  // namespace paceline
