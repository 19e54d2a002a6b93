// Every error of the product, read in the sources: "where: what; what to do".
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <regex>

#include "tests/unit/house/sources.h"

namespace {

using paceline::house::sources;

// Comments and characters are blank, so that a quote mark begins a text.
std::string strip_comments(const std::string& text) {
  static const std::regex kToken(
      "//[^\n]*|R\"\\([^]*?\\)\"|\"(?:[^\"\\\\\n]|\\\\.)*\"|'(?:[^'\\\\\n]|\\\\.)'");
  std::string code = text;
  for (std::sregex_iterator it(text.begin(), text.end(), kToken), end; it != end; ++it) {
    if (it->str().front() == '"') continue;
    for (auto i = it->position(); i < it->position() + it->length(); ++i) {
      if (code[static_cast<std::size_t>(i)] != '\n') code[static_cast<std::size_t>(i)] = ' ';
    }
  }
  return code;
}

// The arguments of the call whose "(" is at `at`.
std::vector<std::string> arguments_at(const std::string& code, std::size_t at) {
  std::vector<std::string> arguments(1);
  int depth = 0;
  for (std::size_t i = at; i < code.size(); ++i) {
    const char c = code[i];
    if (c == '"') {
      const std::size_t begin = i;
      for (++i; code[i] != '"'; ++i) i += code[i] == '\\';
      arguments.back() += code.substr(begin, i + 1 - begin);
      continue;
    }
    const bool opens = c == '(' || c == '[' || c == '{', closes = c == ')' || c == ']' || c == '}';
    if (closes && --depth == 0) return arguments;
    if (c == ',' && depth == 1) {
      arguments.emplace_back();
    } else if (depth > 0 && (arguments.back().size() > 0 || std::isspace(c) == 0)) {
      arguments.back() += c;
    }
    depth += opens;
  }
  return arguments;
}

std::string texts_in(const std::string& argument) {
  static const std::regex kText("\"((?:[^\"\\\\]|\\\\.)*)\"");
  std::string texts;
  for (std::sregex_iterator it(argument.begin(), argument.end(), kText), end; it != end; ++it) {
    texts += (*it)[1].str();
  }
  return texts;
}

struct Thrown {
  std::string place, kind, what, call;
  bool has_cure = false;
};

const std::vector<Thrown>& errors() {
  static const std::vector<Thrown> all = [] {
    static const std::regex kCall(
        "\\bError\\((?=\\s*ErrorKind)|\\bthrow Error\\(|\\b(throw|return) "
        "(usage|input|internal)_error\\(");
    std::vector<Thrown> found;
    for (const auto& source : sources()) {
      const std::string code = strip_comments(source.text);
      for (std::sregex_iterator it(code.begin(), code.end(), kCall), end; it != end; ++it) {
        const auto at = static_cast<std::size_t>(it->position() + it->length() - 1);
        const auto line = 1 + std::count(code.begin(), code.begin() + it->position(), '\n');
        std::vector<std::string> arguments = arguments_at(code, at);
        if ((*it)[2].matched) arguments.insert(arguments.begin(), (*it)[2].str());
        Thrown error{source.path + ":" + std::to_string(line), arguments.front(), "", "", false};
        for (const std::string& argument : arguments) error.call += argument + ", ";
        arguments.resize(4);
        error.what = texts_in(arguments[1]);
        error.has_cure = !arguments[3].empty() && arguments[3] != "\"\"";
        found.push_back(error);
      }
    }
    return found;
  }();
  return all;
}

TEST(Errors, HaveASubject) {
  static const std::regex kVerb(
      "^(is|has|have|are|was|cannot|needs|holds|gives|ends|does|names|comes|lies|stands|must|would|"
      "says|asks|takes|contains|differs|begins|belongs|fits|exists|lacks|may|did|could)\\b");
  ASSERT_GT(errors().size(), 400U);
  for (const Thrown& error : errors()) {
    EXPECT_FALSE(std::regex_search(error.what, kVerb)) << error.place << ": " << error.what;
  }
}

// Who reads it cannot cure a defect of ours, nor that another rank died; a sentence that another
// error or a reason brings has its own cure.
TEST(Errors, ReportWhatToDo) {
  for (const Thrown& error : errors()) {
    if (!error.kind.ends_with("usage") && !error.kind.ends_with("input")) continue;
    const bool brings = error.call.find(".what()") != std::string::npos ||
                        error.call.find("because()") != std::string::npos;
    EXPECT_TRUE(error.has_cure || brings) << error.place << ": " << error.what;
  }
}

}  // namespace
