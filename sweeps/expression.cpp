#include "sweeps/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/pattern.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMaxLength = 2000;
constexpr int kMaxDepth = 64;

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
    advance();
    const std::size_t start = column_;
    const bool result = truth(binary(0), start);
    if (!token_.empty()) fail(column_, fmt::format("unexpected \"{}\"", token_));
    return result;
  }

 private:
  [[noreturn]] void fail(std::size_t column, const std::string& what,
                         const std::string& fix = "fix the expression") const {
    throw Error(ErrorKind::input, what,
                fmt::format("{}, column {} of \"{}\"", where_, column, text_), fix);
  }

  // A number, a name, a text or an operator; an empty one at the end.
  void advance() {
    thread_local const Pattern token(
        R"(\G\s*(\d[\w.]*(?:(?<=[eE])[-+][\w.]*)?|\w+|'[^']*'?|&&|\|\||[=!<>]=|[-+*/%<>!()]|$))");
    const auto found = token.find(text_, end_);
    if (!found) {
      column_ = text_.find_first_not_of(" \t\n\r\f\v", end_) + 1;
      fail(column_, fmt::format("unexpected \"{}\"", text_.substr(column_ - 1, 8)));
    }
    column_ = found->group.begin + 1;
    end_ = found->group.end;
    token_ = text_.substr(found->group.begin, end_ - found->group.begin);
  }

  // The next token if it is one of `tokens`, else empty.
  std::string take(std::initializer_list<std::string_view> tokens) {
    if (std::find(tokens.begin(), tokens.end(), token_) == tokens.end()) return "";
    std::string taken = token_;
    advance();
    return taken;
  }

  class Depth {
   public:
    explicit Depth(Interpreter& interpreter) : interpreter_(interpreter) {
      if (++interpreter_.depth_ > kMaxDepth)
        interpreter_.fail(interpreter_.column_, "nested too deeply");
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
    fail(column, fmt::format("\"{}\" is neither true nor false", to_text(value)));
  }

  double number(const Value& value, std::size_t column) const {
    if (skipping_) return 1;
    if (const auto* number = std::get_if<double>(&value)) return *number;
    fail(column, fmt::format("\"{}\" is not a number", to_text(value)));
  }

  // Left-associative levels, from || to *; a comparison does not chain. The right side of && and ||
  // is skipped if the left one decides.
  Value binary(int level) {
    constexpr int kLevels = 5, kComparison = 2;
    if (level == kLevels) return unary();
    const std::size_t start = column_;
    Value left = binary(level + 1);
    while (true) {
      const std::size_t place = column_;
      const std::string token = level == 0   ? take({"||"})
                                : level == 1 ? take({"&&"})
                                : level == 2 ? take({"==", "!=", "<=", ">=", "<", ">"})
                                : level == 3 ? take({"+", "-"})
                                             : take({"*", "/", "%"});
      if (token.empty()) return left;
      const bool logical = level < kComparison;
      const bool decided = logical && truth(left, start) == (token == "||");
      const bool skipping = std::exchange(skipping_, skipping_ || decided);
      const std::size_t second = column_;
      const Value right = binary(level + 1);
      if (!skipping_) left = logical ? truth(right, second) : compute(token, left, right, place);
      skipping_ = skipping;
      if (level == kComparison) return left;
    }
  }

  Value compute(const std::string& token, const Value& left, const Value& right,
                std::size_t column) const {
    if (token == "==" || token == "!=") {
      if (left.index() != right.index()) {
        fail(column,
             fmt::format("\"{}\" and \"{}\" cannot be compared", to_text(left), to_text(right)));
      }
      return (left == right) == (token == "==");
    }
    const double a = number(left, column), b = number(right, column);
    if (token == "<") return a < b;
    if (token == "<=") return a <= b;
    if (token == ">") return a > b;
    if (token == ">=") return a >= b;
    if (b == 0 && (token == "/" || token == "%")) fail(column, "division by zero");
    const double result = token == "+"   ? a + b
                          : token == "-" ? a - b
                          : token == "*" ? a * b
                          : token == "/" ? a / b
                                         : std::fmod(a, b);
    if (!std::isfinite(result)) fail(column, "the number is too large");
    return result;
  }

  Value unary() {
    const Depth depth(*this);
    const std::size_t place = column_;
    if (!take({"-"}).empty()) return -number(unary(), place);
    if (take({"!"}).empty()) return primary();
    const std::size_t operand = column_;
    return !truth(unary(), operand);
  }

  Value primary() {
    if (!take({"("}).empty()) {
      Value value = binary(0);
      if (take({")"}).empty()) fail(column_, "expected \")\"");
      return value;
    }
    if (token_.empty()) fail(column_, "something is missing at the end");
    Value value;
    if (token_[0] == '\'') {
      if (token_.size() == 1 || token_.back() != '\'') {
        fail(column_, "a text without its closing quote");
      }
      value = token_.substr(1, token_.size() - 2);
    } else if (std::isdigit(static_cast<unsigned char>(token_[0]))) {
      const auto real = to_real(token_);
      if (!real) fail(column_, fmt::format("\"{}\" is not a number", token_));
      value = *real;
    } else if (std::isalpha(static_cast<unsigned char>(token_[0]))) {
      value = named(token_);
    } else {
      fail(column_, fmt::format("unexpected \"{}\"", token_));
    }
    advance();
    return value;
  }

  Value named(const std::string& name) const {
    if (name == "true" || name == "false") return name == "true";
    if (lookup_ == nullptr) check_name(name);
    if (skipping_) return false;
    const std::optional<Value> value = (*lookup_)(name);
    if (!value) {
      fail(column_, fmt::format("\"{}\" has no value in this sweep", name),
           "add it to fixed or axes");
    }
    if (const auto* whole = std::get_if<std::int64_t>(&*value)) return static_cast<double>(*whole);
    return *value;
  }

  void check_name(const std::string& name) const {
    std::vector<std::string> known = {kCoresName};
    for (const Parameter& parameter : parameters()) known.emplace_back(parameter.name);
    if (std::ranges::find(known, name) != known.end()) return;
    fail(column_, fmt::format("unknown name \"{}\"", name), suggestion(name, known));
  }

  const std::string& text_;
  const std::string& where_;
  const Expression::Lookup* lookup_;
  bool skipping_;
  std::string token_;
  std::size_t column_ = 1, end_ = 0;  // where it begins, from 1, and ends
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
