#include "sweeps/expression.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <initializer_list>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMaxLength = 2000;
constexpr int kMaxDepth = 64;

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// Recursive descent, a function a level of precedence, that computes while it reads. Numbers are
// double. What is skipped has its syntax and names checked, and a value that means nothing.
class Interpreter {
 public:
  // Without `lookup` all is skipped.
  Interpreter(const std::string& text, const std::string& where, const Expression::Lookup* lookup)
      : text_(text), where_(where), lookup_(lookup), skipping_(lookup == nullptr) {}

  bool run() {
    if (text_.size() > kMaxLength) {
      throw Error(ErrorKind::input,
                  fmt::format("an expression of {} characters is too long", text_.size()), where_,
                  fmt::format("use at most {}", kMaxLength));
    }
    const std::size_t start = column();
    const bool result = truth(binary(0), start);
    column();
    if (at_ < text_.size()) fail(fmt::format("unexpected \"{}\"", text_.substr(at_, 8)));
    return result;
  }

 private:
  [[noreturn]] void fail_at(std::size_t column, const std::string& what,
                            const std::string& fix = "fix the expression") const {
    throw Error(ErrorKind::input, what,
                fmt::format("{}, column {} of \"{}\"", where_, column, text_), fix);
  }

  [[noreturn]] void fail(const std::string& what,
                         const std::string& fix = "fix the expression") const {
    fail_at(at_ + 1, what, fix);
  }

  // Of the next token, from 1.
  std::size_t column() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ + 1;
  }

  // The first of `tokens` if it is next, else empty; longer ones must come first.
  std::string take(std::initializer_list<const char*> tokens) {
    column();
    for (const std::string token : tokens) {
      if (text_.compare(at_, token.size(), token) != 0) continue;
      at_ += token.size();
      return token;
    }
    return "";
  }

  class Depth {
   public:
    explicit Depth(Interpreter& interpreter) : interpreter_(interpreter) {
      if (++interpreter_.depth_ > kMaxDepth) interpreter_.fail("nested too deeply");
    }
    ~Depth() { --interpreter_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Interpreter& interpreter_;
  };

  bool truth(const Value& value, std::size_t column) const {
    if (skipping_) return false;
    if (const auto* flag = std::get_if<bool>(&value)) return *flag;
    fail_at(column, fmt::format("\"{}\" is neither true nor false", to_text(value)));
  }

  double number(const Value& value, std::size_t column) const {
    if (skipping_) return 1;
    if (const auto* number = std::get_if<double>(&value)) return *number;
    fail_at(column, fmt::format("\"{}\" is not a number", to_text(value)));
  }

  // Left-associative levels, from || to *; a comparison does not chain. The right side of && and ||
  // is skipped if the left one decides.
  Value binary(int level) {
    constexpr int kLevels = 5, kComparison = 2;
    if (level == kLevels) return unary();
    const std::size_t start = column();
    Value left = binary(level + 1);
    while (true) {
      const std::size_t place = column();
      const std::string token = take_operator(level);
      if (token.empty()) return left;
      const bool logical = level < kComparison;
      const bool decided = logical && truth(left, start) == (token == "||");
      const bool skipping = std::exchange(skipping_, skipping_ || decided);
      const std::size_t second = column();
      const Value right = binary(level + 1);
      if (!skipping_) left = logical ? truth(right, second) : compute(token, left, right, place);
      skipping_ = skipping;
      if (level == kComparison) return left;
    }
  }

  std::string take_operator(int level) {
    switch (level) {
      case 0:
        return take({"||"});
      case 1:
        return take({"&&"});
      case 2:
        return take({"==", "!=", "<=", ">=", "<", ">"});
      case 3:
        return take({"+", "-"});
      default:
        return take({"*", "/", "%"});
    }
  }

  Value compute(const std::string& token, const Value& left, const Value& right,
                std::size_t column) const {
    if (token == "==" || token == "!=") {
      if (left.index() != right.index()) {
        fail_at(column,
                fmt::format("\"{}\" and \"{}\" cannot be compared", to_text(left), to_text(right)));
      }
      return (left == right) == (token == "==");
    }
    const double a = number(left, column), b = number(right, column);
    if (token == "<") return a < b;
    if (token == "<=") return a <= b;
    if (token == ">") return a > b;
    if (token == ">=") return a >= b;
    if (b == 0 && (token == "/" || token == "%")) fail_at(column, "division by zero");
    const double result = token == "+"   ? a + b
                          : token == "-" ? a - b
                          : token == "*" ? a * b
                          : token == "/" ? a / b
                                         : std::fmod(a, b);
    if (!std::isfinite(result)) fail_at(column, "the number is too large");
    return result;
  }

  Value unary() {
    const Depth depth(*this);
    const std::size_t place = column();
    const std::string token = take({"!", "-"});
    if (token.empty()) return primary();
    const std::size_t operand = column();
    if (token == "!") return !truth(unary(), operand);
    return -number(unary(), place);
  }

  Value primary() {
    if (!take({"("}).empty()) {
      Value value = binary(0);
      if (take({")"}).empty()) fail("expected \")\"");
      return value;
    }
    if (at_ == text_.size()) fail("something is missing at the end");
    const char c = text_[at_];
    if (c == '\'') return quoted();
    if (std::isdigit(static_cast<unsigned char>(c))) return literal();
    if (is_word(c)) return name();
    fail(fmt::format("unexpected \"{}\"", c));
  }

  Value quoted() {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string::npos) fail("a text without its closing quote");
    const std::size_t begin = std::exchange(at_, end + 1) + 1;
    return text_.substr(begin, end - begin);
  }

  // Digits, a point, an exponent with its sign: what to_real() then accepts.
  Value literal() {
    std::size_t end = at_;
    while (end < text_.size()) {
      const char c = text_[end];
      const bool sign = (c == '+' || c == '-') && (text_[end - 1] == 'e' || text_[end - 1] == 'E');
      if (!is_word(c) && c != '.' && !sign) break;
      ++end;
    }
    const std::string digits = text_.substr(at_, end - at_);
    const auto real = to_real(digits);
    if (!real) fail(fmt::format("\"{}\" is not a number", digits));
    at_ = end;
    return *real;
  }

  Value name() {
    const std::size_t place = at_ + 1;
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    const std::string name = text_.substr(at_, end - at_);
    if (lookup_ == nullptr) check_name(name);
    at_ = end;
    if (name == "true" || name == "false") return name == "true";
    if (skipping_) return false;
    const std::optional<Value> value = (*lookup_)(name);
    if (!value) {
      fail_at(place, fmt::format("\"{}\" has no value in this sweep", name),
              "add it to fixed or axes");
    }
    if (const auto* whole = std::get_if<std::int64_t>(&*value)) return static_cast<double>(*whole);
    return *value;
  }

  void check_name(const std::string& name) const {
    if (name == "true" || name == "false" || name == kCoresName || find_parameter(name)) return;
    std::vector<std::string> known = {kCoresName};
    for (const Parameter& parameter : parameters()) known.emplace_back(parameter.name);
    fail(fmt::format("unknown name \"{}\"", name), suggestion(name, known));
  }

  const std::string& text_;
  const std::string& where_;
  const Expression::Lookup* lookup_;
  bool skipping_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Expression::Expression(std::string text, std::string where)
    : text_(std::move(text)), where_(std::move(where)) {
  Interpreter(text_, where_, nullptr).run();
}

bool Expression::holds(const Lookup& lookup) const {
  return Interpreter(text_, where_, &lookup).run();
}

}  // namespace paceline
