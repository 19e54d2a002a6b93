// Job ids as Slurm's commands print them, of arrays and of plain jobs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// Which elements of which job a text names: "5" (none), "5_3", "5_[2-7%2]", "5_[1,4,6-8]",
// "5_[0-20:4]".
struct ArrayId {
  std::int64_t job = 0;
  std::vector<int> elements;  // in the text's order; empty: a plain job, or the array as a whole
  int throttle = 0;           // "%2"; 0: none
  bool cut_short = false;     // "...": Slurm left some out
};

// Nothing where the text is no job id. Steps ("5_3.batch", "5.0") are none.
std::optional<ArrayId> parse_array_id(std::string_view text);

// "0-7%2", "1,4,6-8", "0-20:4", "3" of an array's elements: as sbatch --array takes them and
// scontrol's ArrayTaskId shows them.
bool parse_elements(std::string_view text, ArrayId& into);

// "0-3,7": the shortest form.
std::string elements_text(const std::vector<int>& elements);

}  // namespace paceline
