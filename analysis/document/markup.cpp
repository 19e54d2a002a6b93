// Escapes text for HTML, Markdown, LaTeX and CSV.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/document/document.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// Erases all text from an `open` to the next `close`, including both.
void erase_all(std::string& text, std::string_view open, std::string_view close) {
  for (std::size_t at = text.find(open); at != std::string::npos; at = text.find(open, at)) {
    const std::size_t end = text.find(close, at + open.size());
    if (end == std::string::npos) return;
    text.erase(at, end + close.size() - at);
  }
}

void replace_all(std::string& text, std::string_view from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

}  // namespace

std::string escaped(std::string_view text, const Escapes& escapes) {
  std::string result;
  for (const char c : text) {
    const auto escape = std::ranges::find(escapes, c, &Escape::first);
    if (escape == escapes.end()) {
      result += c;
    } else {
      result += escape->second;
    }
  }
  return result;
}

std::string html_text(std::string_view text) {
  return escaped(printable(text),
                 {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}});
}

std::string url_text(std::string_view path) {
  std::string text;
  for (const char c : path) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') ||
                          std::string_view("-._~/=,").find(c) != std::string_view::npos;
    text += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return text;
}

std::string html_text_lines(std::string_view text) {
  std::string lines;
  for (const std::string& line : split(text, '\n')) lines += html_text(line) + '\n';
  while (lines.ends_with("\n\n")) lines.pop_back();
  return lines;
}

std::string inline_svg(const std::string& svg, const std::string& prefix,
                       const std::string& title) {
  std::string text = svg.substr(std::min(svg.size(), svg.find("<svg")));
  erase_all(text, "<title>", "</title>");
  erase_all(text, "<desc>", "</desc>");
  erase_all(text, "xmlns=\"", "\"");
  erase_all(text, "xmlns:xlink=\"", "\"");
  replace_all(text, "xlink:href=", "href=");
  for (const char quote : {'\'', '"'}) {
    replace_all(text, fmt::format(" id={}", quote), fmt::format(" id={}{}", quote, prefix));
    replace_all(text, fmt::format("href={}#", quote), fmt::format("href={}#{}", quote, prefix));
  }
  replace_all(text, "url(#", "url(#" + prefix);
  const std::size_t end = text.find('>');
  if (end == std::string::npos) return "";
  const std::string name = html_text(title);
  return fmt::format("<svg role=\"img\" aria-label=\"{}\"{}><title>{}</title>{}", name,
                     text.substr(4, end - 4), name, text.substr(end + 1));
}

std::string markdown_text(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    if (std::string_view("|\\`*_<>[]").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

std::string latex_text(std::string_view text) {
  std::string result = escaped(printable(text), {{'\\', "\\textbackslash{}"},
                                                 {'~', "\\textasciitilde{}"},
                                                 {'^', "\\textasciicircum{}"},
                                                 {'<', "\\textless{}"},
                                                 {'>', "\\textgreater{}"},
                                                 {'&', "\\&"},
                                                 {'%', "\\%"},
                                                 {'$', "\\$"},
                                                 {'#', "\\#"},
                                                 {'_', "\\_"},
                                                 {'{', "\\{"},
                                                 {'}', "\\}"}});
  replace_all(result, "±", "$\\pm$");
  return result;
}

std::string csv_text(std::string_view text) {
  std::string cell = printable(text);
  const std::string_view content = trim(cell);  // spreadsheets ignore spaces before a formula
  const bool is_number =
      to_real(content.starts_with('+') ? content.substr(1) : content).has_value();
  const bool is_formula = !is_number && !content.empty() &&
                          std::string_view("=+-@").find(content.front()) != std::string_view::npos;
  if (is_formula) {
    cell.insert(0, 1, '\'');
  }
  if (cell.find_first_of(",\"") == std::string::npos) return cell;
  return '"' + escaped(cell, {{'"', "\"\""}}) + '"';
}

}  // namespace paceline
