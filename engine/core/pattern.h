// Regular expressions (PCRE2), compiled to machine code where the library can.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace paceline {

// For one thread at a time.
class Pattern {
 public:
  enum class Text { bytes, utf8 };

  // Throws std::invalid_argument: "missing closing parenthesis at character 4".
  explicit Pattern(std::string_view text, Text kind = Text::bytes);
  ~Pattern();
  Pattern(Pattern&&) noexcept;

  int groups() const;

  struct Span {
    std::size_t begin = 0, end = 0;
  };
  struct Match {
    Span whole, group;  // the first group
  };
  // Empty: none from `from` on. Throws internal where the library gives up, so that nobody knows.
  std::optional<Match> find(std::string_view text, std::size_t from = 0) const;
  // The texts of the whole and of each group if the pattern matches the whole text. A group that
  // took no part is empty. Throws as find() does.
  std::optional<std::vector<std::string>> match(std::string_view text) const;
  // Each match replaced; $1 is the first group. Throws as find() does.
  std::string replace(std::string_view text, std::string_view by) const;

 private:
  struct Engine;
  std::unique_ptr<Engine> engine_;
};

// Patterns and what replaces their matches, one after the other.
class Replacements {
 public:
  Replacements(std::initializer_list<std::pair<std::string, const char*>> table);
  std::string operator()(std::string text) const;

 private:
  std::vector<std::pair<Pattern, std::string>> table_;
};

}  // namespace paceline
