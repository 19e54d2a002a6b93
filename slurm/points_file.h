// A points file: what the elements of an array run, one JSON list of words per line. Only paceline
// reads it, never a shell, so no text of a study can become a shell command.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace paceline {

// Without a line break. Throws usage for words that are not UTF-8.
std::string line_of_words(const std::vector<std::string>& words);

// The words of element `index`, in line index + 1. Throws input naming file and line if it does not
// exist or is not a list of words.
std::vector<std::string> words_of_element(const std::filesystem::path& file, std::size_t index);

}  // namespace paceline
