// Formats rows of text as aligned columns, and wraps sentences.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// The first row has the headings. All rows have the same length. The first `left` columns and the
// last one are left-aligned, the others right-aligned. Omits columns with a heading but no content.
// Splits tables wider than `width` (0: any) into blocks of lines, each of which repeats the first
// column.
std::string aligned(std::vector<std::vector<std::string>> rows, std::size_t left,
                    std::size_t width = 0);

// Wraps a sentence into lines of at most `width` columns (longer words get a line of their own),
// each with a line break. The first line starts with `first`, the others with `next` spaces.
std::string wrapped(const std::string& sentence, std::size_t width, const std::string& first = "",
                    std::size_t next = 2);

std::size_t display_width(std::string_view text);  // width on a terminal: characters, not bytes

}  // namespace paceline
