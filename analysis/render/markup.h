// Escapes text of records for HTML, Markdown, LaTeX and CSV. HTML fragments are well-formed XML
// too.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// Escapes text for element content and quoted attributes: & < > " ' become entities, control
// characters become spaces.
std::string html_text(std::string_view text);
// The same for <pre>, keeping line breaks.
std::string html_text_lines(std::string_view text);

// Escapes a path for a link.
std::string url_text(std::string_view path);

// Converts gnuplot's SVG file to an element of a page: removes prolog, namespaces and gnuplot's
// titles, makes ids unique with `prefix`, and sets `title` for screen readers.
std::string inline_svg(const std::string& svg, const std::string& prefix, const std::string& title);

// On one line, with all characters escaped that Markdown would interpret.
std::string markdown_text(std::string_view text);

// On one line, with all characters escaped that LaTeX would interpret.
std::string latex_text(std::string_view text);

// A CSV cell on one line. Text that spreadsheets would interpret as a formula gets a leading quote;
// numbers stay unchanged.
std::string csv_text(std::string_view text);

}  // namespace paceline
