// An archive for support: this machine, this program, and the files of a study or run, without
// secrets.
#pragma once

#include <filesystem>
#include <string>

#include "run/diagnosis.h"

namespace paceline {

struct SupportBundle {
  std::filesystem::path file;   // NAME.tar.gz; must not exist
  std::filesystem::path about;  // a folder of a study or run; may be empty
};

// `doctor_text` and its JSON are the output of `paceline doctor`. Prints the archive's contents.
// Throws input.
void write_support_bundle(const SupportBundle& bundle, const std::string& doctor_text,
                          const std::string& doctor_json);

}  // namespace paceline
