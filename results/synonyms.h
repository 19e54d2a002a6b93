// Terms of other tools (Horovod, PyTorch, TensorFlow) and their equivalents in Paceline.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace paceline {

// What to use instead of `word`, to append to an error after "; ": "use gpus". Empty if nothing is
// known. `kind` is "axis" (spelled as in specs), "option" ("--batch-size"), "backend", "device" or
// "command".
std::optional<std::string> find_replacement(std::string_view kind, std::string_view word);

// Paceline's name if `word` is an exact synonym ("gpu" is the device cuda), else `word`.
std::string our_name(std::string_view kind, std::string_view word);

}  // namespace paceline
