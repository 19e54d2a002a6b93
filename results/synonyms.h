// Words of other tools for what Paceline calls otherwise, so that people who come from Horovod,
// PyTorch or TensorFlow are led to our names.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace paceline {

// What to use instead of `word`, ready to stand behind "; ": "use gpus", or nothing. `kind` is
// "axis" (as specs spell it), "option" ("--batch-size"), "backend", "device" or "command".
std::optional<std::string> instead_of(std::string_view kind, std::string_view word);

// Our name where another's means just that ("gpu" is the device cuda), else the word itself.
std::string our_name(std::string_view kind, std::string_view word);

}  // namespace paceline
