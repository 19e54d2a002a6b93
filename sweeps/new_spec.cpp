#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "engine/core/json.h"
#include "engine/core/text.h"
#include "sweeps/expansion.h"
#include "sweeps/spec.h"

namespace paceline {

namespace {

std::string quoted(const std::string& text) {
  return json_text(Json(text));
}

std::string json_list(const std::vector<std::string>& words) {
  return "[" + join(mapped(words, quoted), ", ") + "]";
}

std::string program_lines(const NewSpec& spec) {
  const std::vector<std::string> words = plain_words(spec.command);
  std::string text = "  \"workload\": \"command\",\n";
  if (words.empty()) {
    text +=
        "  // For /bin/sh. Placeholders have the point's values: {gpus}, {cpus_per_replica}, "
        "{port} ...\n  \"shell\": true,\n  \"command\": " +
        quoted(spec.command) + ",\n";
  } else {
    text +=
        "  // Words; no shell reads them. Placeholders have the point's values: {gpus}, "
        "{cpus_per_replica}, {port} ...\n  \"command\": " +
        json_list(words) + ",\n";
  }
  text +=
      "  // How often it is started: \"one\" starts its others itself, as torchrun does;\n"
      "  // \"replica\" and \"node\" are ranks, with torchrun's variables.\n  \"processes\": " +
      quoted(spec.processes) + ",\n";
  if (spec.throughput.empty()) {
    return text +
           "  // Its time from start to end counts. To read a throughput from what it prints (or "
           "one "
           "in a unit of your own: \"unit\": \"ns/day\"):\n"
           "  // \"results\": {\"samples_per_second\": {\"line\": \"throughput: {number}\", "
           "\"pick\": "
           "\"last\"}},\n";
  }
  return text +
         "  // Where its throughput stands: the group of a regular expression, in printed lines, "
         "of "
         "several\n  // the last; or a preset.\n  \"results\": " +
         results_text(spec.throughput, spec.unit, spec.better) + ",\n";
}

}  // namespace

std::string results_text(const std::string& throughput, const std::string& unit,
                         const std::string& better) {
  if (is_preset(throughput)) return quoted(throughput);
  return "{\"throughput\": {\"line\": " + quoted(throughput) +
         ", \"pick\": \"last\", \"unit\": " + quoted(unit) +
         (better.empty() ? "" : ", \"better\": " + quoted(better)) + "}}";
}

std::vector<std::string> plain_words(const std::string& command) {
  if (command.find_first_of("'\"\\$`|&;<>()*?[]#~!\n") != std::string::npos) return {};
  std::vector<std::string> words = split(command, ' ');
  std::erase(words, "");
  const bool sets_variable = !words.empty() && words.front().find('=') != std::string::npos;
  return sets_variable ? std::vector<std::string>() : words;
}

std::string to_text(const NewSpec& spec) {
  std::string text = fmt::format("{{\n  \"name\": {},\n", quoted(spec.name));
  if (spec.workload.empty()) {
    text += program_lines(spec);
  } else {
    text += fmt::format("  // One of: paceline list workloads\n  \"workload\": {},\n",
                        quoted(spec.workload));
  }
  if (spec.workload.empty()) {
    text +=
        "  // \"work\": \"fixed\" is the same work at every size, and \"grows\" the same on each "
        "replica.\n";
  }
  const std::string work = spec.work.empty() ? "" : ", \"work\": " + quoted(spec.work);
  text += fmt::format(
      "  // The same in all runs. Of our workloads, any option: paceline train --help\n"
      "  \"fixed\": {{\"device\": {}{}}},\n"
      "  // Every combination of these is a point. All replicas get the same number of CPUs.\n"
      "  \"axes\": {{\n    \"gpus\": [{}]",
      quoted(spec.device), work, fmt::join(spec.gpus, ", "));
  if (!spec.backends.empty()) text += ",\n    \"backend\": " + json_list(spec.backends);
  text += fmt::format("\n  }},\n  // Intervals need at least 3.\n  \"repeats\": {}\n}}\n",
                      spec.repeats);
  expand(parse_spec(spec.name + ".json", text), 1 << 20, Unbuilt::keep);
  return text;
}

std::vector<int> doubling(int most) {
  std::vector<int> counts;
  for (int count = 1; count < most; count *= 2) counts.push_back(count);
  counts.push_back(most);
  return counts;
}

}  // namespace paceline
