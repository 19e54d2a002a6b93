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

using Token = Expression::Token;

[[noreturn]] void fail_at(std::size_t column, const std::string& text, const std::string& where,
                          const std::string& what, const std::string& fix) {
  throw input_error(what, fmt::format("{}, column {} of \"{}\"", where, column, text), fix);
}

// Numbers, names, texts and operators; an empty one at the end.
std::vector<Token> split_tokens(const std::string& text, const std::string& where) {
  if (text.size() > kMaxLength) {
    throw input_error(fmt::format("an expression of {} characters is too long", text.size()), where,
                      fmt::format("use at most {}", kMaxLength));
  }
  const auto fail = [&](std::size_t column, const std::string& what) {
    fail_at(column, text, where, what, "fix the expression");
  };
  thread_local const Pattern pattern(
      R"(\G\s*(\d[\w.]*(?:(?<=[eE])[-+][\w.]*)?|\w+|'[^']*'?|&&|\|\||[=!<>]=|[-+*/%<>!()]|$))");
  std::vector<Token> tokens;
  std::size_t end = 0;
  do {
    const auto found = pattern.find(text, end);
    if (!found) {  // no token, which no operator or value is
      const std::size_t column = text.find_first_not_of(" \t\n\r\f\v", end);
      tokens.push_back({text.substr(column, 8), column + 1});
      break;
    }
    const std::size_t begin = found->group.begin;
    end = found->group.end;
    Token& token = tokens.emplace_back(Token{text.substr(begin, end - begin), begin + 1});
    if (token.text.starts_with('\'')) {
      if (token.text.size() == 1 || token.text.back() != '\'') {
        fail(token.column, "a text without its closing quote");
      }
      token.value = token.text.substr(1, token.text.size() - 2);
    } else if (!token.text.empty() && std::isdigit(static_cast<unsigned char>(token.text[0]))) {
      const auto real = to_real(token.text);
      if (!real) fail(token.column, fmt::format("\"{}\" is not a number", token.text));
      token.value = *real;
    }
  } while (!tokens.back().text.empty());
  tokens.emplace_back();
  return tokens;
}

// Recursive descent, a function a level of precedence, that computes while it reads. Numbers are
// double. What is skipped has its syntax and names checked, and a value that means nothing.
class Interpreter {
 public:
  // Without `lookup` all is skipped.
  Interpreter(const std::string& text, const std::string& where, const std::vector<Token>& tokens,
              const Expression::Lookup* lookup)
      : text_(text),
        where_(where),
        lookup_(lookup),
        skipping_(lookup == nullptr),
        token_(tokens.begin()) {}

  bool run() {
    const std::size_t start = column();
    const bool result = truth(binary(0), start);
    if (!token_->text.empty()) fail(column(), fmt::format("unexpected \"{}\"", token_->text));
    return result;
  }

 private:
  [[noreturn]] void fail(std::size_t column, const std::string& what,
                         const std::string& fix = "fix the expression") const {
    fail_at(column, text_, where_, what, fix);
  }

  std::size_t column() const { return token_->column; }

  // The next token if it is one of `tokens`, else empty.
  std::string_view take(std::initializer_list<std::string_view> tokens) {
    if (std::find(tokens.begin(), tokens.end(), token_->text) == tokens.end()) return "";
    return (token_++)->text;
  }

  class Depth {
   public:
    explicit Depth(Interpreter& interpreter) : interpreter_(interpreter) {
      if (++interpreter_.depth_ > kMaxDepth)
        interpreter_.fail(interpreter_.column(), "nested too deeply");
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
    const std::size_t start = column();
    Value left = binary(level + 1);
    while (true) {
      const std::size_t place = column();
      const std::string_view token = level == 0   ? take({"||"})
                                     : level == 1 ? take({"&&"})
                                     : level == 2 ? take({"==", "!=", "<=", ">=", "<", ">"})
                                     : level == 3 ? take({"+", "-"})
                                                  : take({"*", "/", "%"});
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

  Value compute(std::string_view token, const Value& left, const Value& right,
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
    const std::size_t place = column();
    if (!take({"-"}).empty()) return -number(unary(), place);
    if (take({"!"}).empty()) return primary();
    const std::size_t operand = column();
    return !truth(unary(), operand);
  }

  Value primary() {
    if (!take({"("}).empty()) {
      Value value = binary(0);
      if (take({")"}).empty()) fail(column(), "expected \")\"");
      return value;
    }
    if (token_->text.empty()) fail(column(), "something is missing at the end");
    const Token& token = *token_;
    const auto first = static_cast<unsigned char>(token.text[0]);
    if (first != '\'' && std::isalnum(first) == 0) {
      fail(column(), fmt::format("unexpected \"{}\"", token.text));
    }
    Value value = std::isalpha(first) != 0 ? named(token.text) : token.value;
    ++token_;
    return value;
  }

  Value named(const std::string& name) const {
    if (name == "true" || name == "false") return name == "true";
    if (lookup_ == nullptr) check_name(name);
    if (skipping_) return false;
    const std::optional<Value> value = (*lookup_)(name);
    if (!value) {
      fail(column(), fmt::format("\"{}\" has no value in this sweep", name),
           "add it to fixed or axes");
    }
    if (const auto* whole = std::get_if<std::int64_t>(&*value)) return static_cast<double>(*whole);
    return *value;
  }

  void check_name(const std::string& name) const {
    std::vector<std::string> known = {kCoresName};
    for (const Parameter& parameter : parameters()) known.emplace_back(parameter.name);
    if (std::ranges::find(known, name) != known.end()) return;
    fail(column(), fmt::format("unknown name \"{}\"", name), suggestion(name, known));
  }

  const std::string& text_;
  const std::string& where_;
  const Expression::Lookup* lookup_;
  bool skipping_;
  std::vector<Token>::const_iterator token_;
  int depth_ = 0;
};

}  // namespace

Expression::Expression(std::string text, std::string where)
    : text_(std::move(text)), where_(std::move(where)), tokens_(split_tokens(text_, where_)) {
  Interpreter(text_, where_, tokens_, nullptr).run();
}

bool Expression::holds(const Lookup& lookup) const {
  return Interpreter(text_, where_, tokens_, &lookup).run();
}

}  // namespace paceline
