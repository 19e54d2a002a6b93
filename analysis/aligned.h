// Rows of texts as lines with columns that stand below each other.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace paceline {

// The first row is the headings; all are of one length. The first `left` columns and the last one
// are flush left, the others flush right. A column of which only the heading says something is left
// out.
std::string aligned(std::vector<std::vector<std::string>> rows, std::size_t left);

}  // namespace paceline
