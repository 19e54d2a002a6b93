// Rows of texts as lines with columns that stand below each other.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// The first row is the headings; all are of one length. The first `left` columns and the last one
// are flush left, the others flush right. A column of which only the heading says something is left
// out. What is wider than `width` (0: any) stands in several blocks of lines, each with the first
// column again.
std::string aligned(std::vector<std::vector<std::string>> rows, std::size_t left,
                    std::size_t width = 0);

// A sentence in lines of at most `width` columns (a longer word stands alone), each with its end of
// line; the first begins with `first`, the others with as many spaces as `next`.
std::string wrapped(const std::string& sentence, std::size_t width, const std::string& first = "",
                    std::size_t next = 2);

std::size_t columns_of(std::string_view text);  // of a terminal: characters, not bytes

}  // namespace paceline
