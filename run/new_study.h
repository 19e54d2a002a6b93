// The answers that make a first spec.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sweeps/spec.h"

namespace paceline {

// What options gave; empty or 0: asked for.
struct NewStudy {
  std::string name = {}, program = {}, throughput = {}, unit = {}, better = {}, work = {};
  std::string processes = {}, device = {};
  std::vector<std::string> backends = {};
  std::vector<int> gpus = {};
  int repeats = 0;
};

// Asks a person, who may just accept the offer, and reports what was wrong with the answer.
struct Dialog {
  std::function<std::string(const std::string& question, const std::string& offer)> ask;
  std::function<void(const std::string& error)> report;
};

// Shows what the preset or regular expression, or each preset (empty) reads from the log of a
// program, as a run reads it, of the first of `given.gpus`. Throws input: nothing.
std::string try_results(const std::string& log, const NewStudy& given);

// Asks for what is not given, again after an answer that is wrong. Without `dialog`, or its `ask`,
// takes what it would offer: what fits this machine. Throws usage naming the option.
NewSpec make_new_spec(const NewStudy& given, const Dialog& dialog = {});

}  // namespace paceline
