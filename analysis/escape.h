// Words of records within other people's syntax. (HTML: html.h.)
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// On one line, with nothing in it that Markdown would act on.
std::string markdown_text(std::string_view text);

// A cell of CSV on one line. A text that spreadsheets would take for a formula gets a quote mark
// in front; numbers stay numbers.
std::string csv_text(std::string_view text);

}  // namespace paceline
