#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "sweeps/program.h"

namespace paceline {

namespace {

// Follows the quotes of a shell's text, character by character.
class QuoteTracker {
 public:
  void read(char c) {
    const char before = before_;
    before_ = c;
    if (is_escaped_) {
      is_escaped_ = false;
      before_ = 'x';
      return;
    }
    switch (in_.back().kind) {
      case Kind::single:
      case Kind::comment:
        if (c == in_.back().end) in_.pop_back();
        return;
      case Kind::ansi:
        is_escaped_ = c == '\\';
        if (c == '\'') in_.pop_back();
        return;
      case Kind::words:
      case Kind::twofold:
        read_expanded(c, before);
    }
  }

  void pass_value() {
    before_ = 'x';
    is_escaped_ = false;
  }

  bool is_in_quotes() const { return in_.back().kind != Kind::words; }
  // Behind a here-document, whose quotes are none, nobody knows.
  bool is_sure() const { return !has_here_document_; }

 private:
  enum class Kind { words, single, ansi, twofold, comment };
  struct Part {
    Kind kind;
    char end;  // 0: that of the text
  };

  void read_expanded(char c, char before) {
    const bool in_words = in_.back().kind == Kind::words;
    if (c == '\\') {
      is_escaped_ = true;
    } else if (c == in_.back().end && in_.size() > 1) {  // a text may hold a NUL
      in_.pop_back();
    } else if (c == '"') {
      in_.push_back({Kind::twofold, '"'});
    } else if (c == '`') {
      in_.push_back({Kind::words, '`'});
    } else if (c == '(' && (in_words || before == '$')) {
      in_.push_back({Kind::words, ')'});
    } else if (in_words && c == '\'') {
      in_.push_back({before == '$' ? Kind::ansi : Kind::single, '\''});
    } else if (in_words && c == '#' && std::string_view(" \t\n;&|(").find(before) != npos) {
      in_.push_back({Kind::comment, '\n'});
    } else if (in_words && c == '<' && before == '<') {
      has_here_document_ = true;
    }
  }

  static constexpr auto npos = std::string_view::npos;
  std::vector<Part> in_ = {{Kind::words, '\0'}};
  char before_ = '\n';
  bool is_escaped_ = false, has_here_document_ = false;
};

bool is_read_by_shells(const std::string& value) {
  return std::any_of(value.begin(), value.end(), [](unsigned char c) {
    return c < ' ' ||
           std::string_view("$`\"\\'!;&|<>()").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

}  // namespace

std::string fill_shell_command(std::string_view text, const PlaceholderValue& value) {
  QuoteTracker quotes;
  return filled(
      text,
      [&](const std::string& name) {
        const std::string plain = value(name);
        const bool is_in_quotes = quotes.is_in_quotes();
        if (is_read_by_shells(plain) && (is_in_quotes || !quotes.is_sure())) {
          throw usage_error(
              fmt::format("{{{}}} stands {}, and a shell would read some of its value: {}", name,
                          is_in_quotes ? "in quotes" : "behind a here-document", plain),
              "the program's command",
              is_in_quotes ? "take the quotes away: values are quoted already"
                           : "put the command into a script, and give it the value");
        }
        quotes.pass_value();
        return is_in_quotes ? plain : shell_quote(plain);
      },
      [&](char c) { quotes.read(c); });
}

std::string RunContext::json() const {
  Json context = {{"study", study},   {"point", point},     {"point_folder", point_folder},
                  {"repeat", repeat}, {"session", session}, {"round", round}};
  if (sequential) context["sequential"] = true;
  if (!program.empty()) context["program"] = Json::parse(program);
  return json_text(context);
}

RunContext parse_run_context(const std::string& text) {
  const JsonDocument document("--context", text);
  const Json& json = document.value();
  RunContext context;
  try {
    context.study = json.at("study");
    context.point = json.at("point");
    context.point_folder = json.at("point_folder");
    context.session = json.at("session");
    context.repeat = json.at("repeat");
    context.round = json.at("round");
    context.sequential = json.value("sequential", false);
    if (json.contains("program")) context.program = json_text(json.at("program"));
  } catch (const nlohmann::json::exception& error) {
    throw usage_error(std::string("--context is incomplete: ") + error.what(), "",
                      "it is for sweeps: leave it out");
  }
  return context;
}

}  // namespace paceline
