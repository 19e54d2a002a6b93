// Scalars of TensorBoard event files, of any framework.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace paceline {

struct ScalarEvent {
  std::int64_t step = 0;
  std::string value;  // a number as text, or why it is none
};

// The scalars with this tag of a file, or of all event files below a folder, by step. A file that
// is still written to may end within a record. Throws input for one that is damaged before its end.
std::vector<ScalarEvent> scalar_events(const std::filesystem::path& place, const std::string& tag);

}  // namespace paceline
