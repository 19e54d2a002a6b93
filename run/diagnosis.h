// Describes this machine, this build and the launcher in use, with their problems.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/core/environment.h"
#include "engine/launch/process_rank.h"

namespace paceline {

struct Fact {
  std::string name, text;
};

struct DiagnosisSection {
  std::string title;
  std::vector<Fact> facts;
};

struct Problem {
  std::string what, cure;  // shown on one line
  bool blocks = false;     // something that was built cannot be used
};

struct Diagnosis {
  std::vector<DiagnosisSection> sections;
  std::vector<Problem> problems;
};

Diagnosis diagnose(const Environment& environment);
// Causes of slow or disturbed communication here, and differences from the modules of the build.
std::vector<Problem> check_environment(const Environment& environment);

// A built backend or device and whether it works here. Without the engine there are none. Backends
// are asked with the GPUs of `device`, or of the first built one if that has none.
struct Service {
  std::string kind, name;
  bool serves = true;
  std::string description;  // or why it does not work
  bool absent = false;      // its hardware is missing, which is not an error
};
std::vector<Service> services(const ProcessRank& process, const std::string& device = "");
// The GPUs that a device finds here: "NVIDIA H200 (0000:1b:00.0, 150 GB)" per card, or why there
// are none. Empty for other devices. Without a name, the first GPU device that is built.
std::string describe_cards(const std::string& device = "");
// How the energy of each visible GPU is measured. None without a driver.
std::vector<Fact> gpu_meters();
int count_gpus(const std::string& device);  // that it can use here

// An archive for support: this machine, this program, and the files of a study or run, without
// secrets.

struct SupportBundle {
  std::filesystem::path file;   // NAME.tar.gz; must not exist
  std::filesystem::path about;  // a folder of a study or run; may be empty
};

// `doctor_text` and its JSON are the output of `paceline doctor`. Prints the archive's contents.
// Throws input.
void write_support_bundle(const SupportBundle& bundle, const std::string& doctor_text,
                          const std::string& doctor_json);

// Prints the post-mortem of a failed run from its status folder.

// The last line has the reason. Returns the run's exit code, or 2 if it runs or may. Throws
// input if the folder has no files of a run.
int print_post_mortem(const std::filesystem::path& folder, bool json);

}  // namespace paceline
