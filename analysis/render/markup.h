// Words of records within other people's syntax, and small pieces of HTML, well-formed as XML is
// too.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// Text as it may stand between tags and in quoted attributes: & < > " ' are entities, control
// characters blanks.
std::string html_text(std::string_view text);
// The same, line by line, for <pre>.
std::string html_text_lines(std::string_view text);

// A path as it may stand in a link.
std::string url_text(std::string_view path);

// gnuplot's SVG file as an element of a page: no prolog, no namespaces, no titles of gnuplot's own,
// ids made unlike those of other pictures by `prefix`, `title` for those who hear the page.
std::string inline_svg(const std::string& svg, const std::string& prefix, const std::string& title);

// On one line, with nothing in it that Markdown would act on.
std::string markdown_text(std::string_view text);

// On one line, with nothing in it that LaTeX would act on.
std::string latex_text(std::string_view text);

// A cell of CSV on one line. A text that spreadsheets would take for a formula gets a quote mark
// in front; numbers stay numbers.
std::string csv_text(std::string_view text);

}  // namespace paceline
