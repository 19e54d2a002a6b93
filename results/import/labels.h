// What launchers and terminals add to the lines of a program's output.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// The output as its program wrote it: without colours, a byte order mark, and labels that most
// lines begin with, as of srun --label ("0: "), mpirun --tag-output ("[1,0]<stdout>:"), kubectl
// logs --timestamps. `notes` get a sentence on labels that were taken off. Lines keep their
// numbers.
std::string without_labels(std::string_view text, std::vector<std::string>& notes);

}  // namespace paceline
