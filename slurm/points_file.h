// What the elements of an array run: a points file, a JSON list of words a line. Only paceline
// reads it, never a shell, so that no text of a study can become a command of the job.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace paceline {

// Without its line break. Throws usage for a word that is not UTF-8.
std::string line_of_words(const std::vector<std::string>& words);

// Of the element of that index: line index + 1. Throws input naming file and line where there is
// none, or where it is no list of words.
std::vector<std::string> words_of_element(const std::filesystem::path& file, std::size_t index);

}  // namespace paceline
