// Parses job ids of arrays and plain jobs, as Slurm prints them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// The array elements in a text: "5" (none), "5_3", "5_[2-7%2]", "5_[1,4,6-8]", "5_[0-20:4]".
struct ArrayId {
  std::int64_t job = 0;
  std::vector<int> elements;  // in the text's order; empty: a plain job, or the whole array
  int throttle = 0;           // "%2"; 0: none
  bool cut_short = false;     // "...": Slurm truncated the list
};

// Empty if the text is not a job id. Steps ("5_3.batch", "5.0") are not job ids.
std::optional<ArrayId> parse_array_id(std::string_view text);

// Parses the elements alone: "0-7%2", "1,4,6-8", "0-20:4", "3", as in sbatch --array and scontrol's
// ArrayTaskId.
bool parse_elements(std::string_view text, ArrayId& into);

// "0-3,7": the shortest form.
std::string elements_text(const std::vector<int>& elements);

}  // namespace paceline
