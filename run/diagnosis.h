// What this machine, this build and the launcher in force look like, and what is wrong with them.
#pragma once

#include <string>
#include <vector>

#include "engine/core/environment.h"
#include "engine/launch/process_rank.h"

namespace paceline {

struct Fact {
  std::string name, text;
};

struct Section {
  std::string title;
  std::vector<Fact> facts;
};

struct Problem {
  std::string what, cure;  // one line together
  bool blocks = false;     // something that was built cannot be used
};

struct Diagnosis {
  std::vector<Section> sections;
  std::vector<Problem> problems;
};

Diagnosis diagnose(const Environment& environment);
// What makes communication here slower than need be or disturbs it, and modules that the build had.
std::vector<Problem> surroundings_of(const Environment& environment);

// A backend or device that is built, asked. In a build without the engine there are none.
struct Service {
  std::string kind, name;
  bool serves = true;
  std::string description;  // or why it does not serve
  bool absent = false;      // it is not in this machine, which is no fault of it
};
std::vector<Service> services(const ProcessRank& process);
// What a device of GPUs finds here: "NVIDIA H200 (0000:1b:00.0, 150 GB)" a card, or why there is
// none. Empty for other devices.
std::string cards_of(const std::string& device);

}  // namespace paceline
