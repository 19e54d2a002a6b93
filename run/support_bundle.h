// An archive for whoever helps: this machine, this program, and what a study or run left behind,
// without secrets.
#pragma once

#include <filesystem>
#include <string>

#include "run/diagnosis.h"

namespace paceline {

struct SupportBundle {
  std::filesystem::path file;   // NAME.tar.gz, which must not exist
  std::filesystem::path about;  // a study's or a run's folder; empty: none
};

// `doctor`: what that verb says, as text and as JSON. Prints what went in. Throws input.
void write_support_bundle(const SupportBundle& bundle, const std::string& doctor_text,
                          const std::string& doctor_json);

}  // namespace paceline
