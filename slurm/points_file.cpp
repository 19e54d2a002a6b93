#include "slurm/points_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/json_text.h"
#include "engine/core/text.h"
#include "engine/core/utf8.h"

namespace paceline {

std::string line_of_words(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (is_utf8(word)) continue;
    throw Error(ErrorKind::usage, "the command line of a run is not UTF-8", join(words, " "),
                "use file and folder names in UTF-8");
  }
  return json_text(words);
}

std::vector<std::string> words_of_element(const std::filesystem::path& file, std::size_t index) {
  const std::vector<std::string> lines = split(read_text(file), '\n');
  const std::string where = fmt::format("{}:{}", file.string(), index + 1);
  if (index >= lines.size() || lines[index].empty()) {
    throw Error(ErrorKind::input, "the points file has no such line", where, "submit again");
  }
  const Json words = Json::parse(lines[index], nullptr, false);
  try {
    if (words.is_array()) return words.get<std::vector<std::string>>();
  } catch (const nlohmann::json::type_error&) {  // of something else than texts
  }
  throw Error(ErrorKind::input, "not a list of a run's words", where, "submit again");
}

}  // namespace paceline
