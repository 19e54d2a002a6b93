#include "sweeps/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMaxLength = 4096;
constexpr int kMaxDepth = 64;

}  // namespace

// An operator with its operands, a literal, or a name. `column` is where it stands, from 1.
struct Expression::Node {
  enum class Kind { literal, name, unary, binary, choice, call } kind;
  std::string token;  // operator, name or function
  Value value;        // of a literal
  std::vector<std::unique_ptr<Node>> parts;
  std::size_t column = 0;
};

namespace {

using Node = Expression::Node;

class Parser {
 public:
  Parser(const std::string& text, const std::string& where, std::vector<std::string>& names)
      : text_(text), where_(where), names_(names) {}

  std::unique_ptr<Node> parse() {
    auto node = choice();
    skip_space();
    if (at_ < text_.size()) fail(fmt::format("unexpected \"{}\"", text_.substr(at_, 8)));
    return node;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::input, what,
                fmt::format("{}, column {} of \"{}\"", where_, at_ + 1, text_),
                "mend the expression");
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

  // The first of `tokens` that stands here; longer ones must come first.
  std::string take_any(std::initializer_list<const char*> tokens) {
    for (const char* token : tokens) {
      if (take(token)) return token;
    }
    return "";
  }

  std::unique_ptr<Node> make(Node::Kind kind, std::string token) const {
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

   private:
    Parser& parser_;
  };

  std::unique_ptr<Node> choice() {
    const Depth depth(*this);
    auto condition = binary(0);
    if (!take("?")) return condition;
    auto node = make(Node::Kind::choice, "?");
    node->parts.push_back(std::move(condition));
    node->parts.push_back(choice());
    if (!take(":")) fail("expected \":\"");
    node->parts.push_back(choice());
    return node;
  }

  std::string operator_of(int level) {
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

  // Left-associative levels, from || to *; a comparison does not chain.
  std::unique_ptr<Node> binary(int level) {
    constexpr int kLevels = 5, kComparison = 2;
    if (level == kLevels) return unary();
    auto left = binary(level + 1);
    while (true) {
      const std::string token = operator_of(level);
      if (token.empty()) return left;
      auto node = make(Node::Kind::binary, token);
      node->parts.push_back(std::move(left));
      node->parts.push_back(binary(level + 1));
      left = std::move(node);
      if (level == kComparison) return left;
    }
  }

  std::unique_ptr<Node> unary() {
    const Depth depth(*this);
    skip_space();
    const bool is_not = text_.compare(at_, 2, "!=") != 0 && take("!");
    if (!is_not && !take("-")) return primary();
    auto node = make(Node::Kind::unary, is_not ? "!" : "-");
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
    if (std::isdigit(static_cast<unsigned char>(c))) return number();
    if (std::isalpha(static_cast<unsigned char>(c)) || c == '_') return name_or_call();
    fail(fmt::format("unexpected \"{}\"", c));
  }

  std::unique_ptr<Node> literal(Value value) const {
    auto node = make(Node::Kind::literal, "");
    node->value = std::move(value);
    return node;
  }

  std::unique_ptr<Node> quoted() {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string::npos) fail("a text without its closing quote");
    auto node = literal(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return node;
  }

  std::unique_ptr<Node> number() {
    std::size_t end = at_;
    while (end < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '.')) {
      ++end;
    }
    const std::string digits = text_.substr(at_, end - at_);
    std::unique_ptr<Node> node;
    if (const auto whole = to_integer(digits)) {
      node = literal(*whole);
    } else if (const auto real = to_real(digits)) {
      node = literal(*real);
    } else {
      fail(fmt::format("\"{}\" is not a number", digits));
    }
    at_ = end;
    return node;
  }

  std::unique_ptr<Node> name_or_call() {
    std::size_t end = at_;
    while (end < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_')) {
      ++end;
    }
    const std::string word = text_.substr(at_, end - at_);
    if (word == "true" || word == "false") {
      auto node = literal(word == "true");
      at_ = end;
      return node;
    }
    auto node = make(Node::Kind::name, word);
    const std::size_t start = at_;
    at_ = end;
    if (!take("(")) {
      names_.push_back(word);
      return node;
    }
    if (word != "min" && word != "max") {
      at_ = start;
      fail(fmt::format("unknown function {}; known: min, max", word));
    }
    node->kind = Node::Kind::call;
    node->parts.push_back(choice());
    if (!take(",")) fail("expected \",\"");
    node->parts.push_back(choice());
    if (!take(")")) fail("expected \")\"");
    return node;
  }

  const std::string& text_;
  const std::string& where_;
  std::vector<std::string>& names_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

class Evaluator {
 public:
  Evaluator(const std::string& text, const std::string& where, const Expression::Lookup& lookup)
      : text_(text), where_(where), lookup_(lookup) {}

  Value value_of(const Node& node) const {
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
        return value_of(*node.parts[truth(*node.parts[0]) ? 1 : 2]);
      case Node::Kind::call: {
        const Value a = value_of(*node.parts[0]), b = value_of(*node.parts[1]);
        const bool less = real(a, node) < real(b, node);
        return (node.token == "min") == less ? a : b;
      }
    }
    return false;
  }

  bool truth(const Node& node) const {
    const Value value = value_of(node);
    if (const auto* flag = std::get_if<bool>(&value)) return *flag;
    fail(fmt::format("\"{}\" is neither true nor false", to_text(value)), node);
  }

 private:
  [[noreturn]] void fail(const std::string& what, const Node& node) const {
    throw Error(ErrorKind::input, what,
                fmt::format("{}, column {} of \"{}\"", where_, node.column, text_),
                "mend the expression");
  }

  Value name_value(const Node& node) const {
    if (const auto value = lookup_(node.token)) return *value;
    std::vector<std::string> known = {"cores"};
    for (const Parameter& parameter : parameters()) {
      if (lookup_(parameter.name)) known.emplace_back(parameter.name);
    }
    throw Error(ErrorKind::input, fmt::format("\"{}\" has no value here", node.token),
                fmt::format("{}, \"{}\"", where_, text_), suggestion(node.token, known));
  }

  double real(const Value& value, const Node& node) const {
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
    if (const auto* number = std::get_if<double>(&value)) return *number;
    fail(fmt::format("\"{}\" is not a number", to_text(value)), node);
  }

  Value unary(const Node& node) const {
    if (node.token == "!") return !truth(*node.parts[0]);
    const Value value = value_of(*node.parts[0]);
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return -*whole;
    return -real(value, node);
  }

  Value binary(const Node& node) const {
    if (node.token == "&&") return truth(*node.parts[0]) && truth(*node.parts[1]);
    if (node.token == "||") return truth(*node.parts[0]) || truth(*node.parts[1]);
    const Value a = value_of(*node.parts[0]), b = value_of(*node.parts[1]);
    if (node.token == "==" || node.token == "!=") return equal(a, b, node) == (node.token == "==");
    if (std::string_view("<>").find(node.token[0]) != std::string_view::npos) {
      return compare(real(a, node), real(b, node), node.token);
    }
    const auto* left = std::get_if<std::int64_t>(&a);
    const auto* right = std::get_if<std::int64_t>(&b);
    if (left && right) return whole(*left, *right, node);
    return calculate(real(a, node), real(b, node), node);
  }

  bool equal(const Value& a, const Value& b, const Node& node) const {
    const bool text = std::holds_alternative<std::string>(a);
    const bool flag = std::holds_alternative<bool>(a);
    if (text != std::holds_alternative<std::string>(b) || flag != std::holds_alternative<bool>(b)) {
      fail(fmt::format("\"{}\" and \"{}\" cannot be compared", to_text(a), to_text(b)), node);
    }
    if (text || flag) return a == b;
    return real(a, node) == real(b, node);
  }

  static bool compare(double a, double b, const std::string& token) {
    if (token == "<") return a < b;
    if (token == "<=") return a <= b;
    if (token == ">") return a > b;
    return a >= b;
  }

  Value whole(std::int64_t a, std::int64_t b, const Node& node) const {
    std::int64_t result = 0;
    bool overflow = false;
    switch (node.token[0]) {
      case '+':
        overflow = __builtin_add_overflow(a, b, &result);
        break;
      case '-':
        overflow = __builtin_sub_overflow(a, b, &result);
        break;
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

  const std::string& text_;
  const std::string& where_;
  const Expression::Lookup& lookup_;
};

}  // namespace

Expression::Expression(std::string text, std::string where)
    : text_(std::move(text)), where_(std::move(where)) {
  if (text_.size() > kMaxLength) {
    throw Error(ErrorKind::input, "an expression is too long", where_, "shorten it");
  }
  root_ = Parser(text_, where_, names_).parse();
}

Expression::~Expression() = default;
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;

Value Expression::evaluate(const Lookup& lookup) const {
  return Evaluator(text_, where_, lookup).value_of(*root_);
}

bool Expression::holds(const Lookup& lookup) const {
  return Evaluator(text_, where_, lookup).truth(*root_);
}

}  // namespace paceline
