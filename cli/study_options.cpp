#include "cli/study_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "engine/core/environment.h"

namespace paceline {

void add_study_options(CLI::App& verb, StudyOptions& options) {
  verb.add_option("spec", options.spec, "a sweep spec: a file, or the name of one that ships")
      ->required();
  verb.add_option("--results", options.results, "folder of studies; jobs write here, too")
      ->type_name("FOLDER")
      ->capture_default_str();
  verb.add_option("--data", options.data,
                  "folder that holds the data sets' folders (data/mnist is in data)")
      ->type_name("FOLDER");
  verb.add_option("--set", options.set, "replace values of the spec (or AXIS=V1,V2; repeatable)")
      ->type_name("AXIS=VALUE")
      ->expected(1)
      ->take_all();
  verb.add_option("--repeats", options.repeats, "runs of each point")->check(CLI::Range(1, 1000));
  CLI::Option* until =
      verb.add_option("--until-precision", options.until_precision,
                      "run each point until the 95 % interval of its mean time is this narrow (±)")
          ->type_name("PERCENT");
  verb.add_option("--max-repeats", options.max_repeats, "with --until-precision, of each point")
      ->needs(until)
      ->check(CLI::Range(3, 1000))
      ->capture_default_str();
  verb.add_flag("--control", options.control,
                "run the smallest point twice a round, to show run-to-run noise");
  verb.add_flag("--new-build", options.new_build, "rerun points that another build recorded");
}

std::string leading_variable(const std::string& text) {
  if (text.empty() || text[0] != '$') return "";
  const bool is_braced = text.starts_with("${");
  const std::size_t begin = is_braced ? 2 : 1;
  return text.substr(begin, text.find(is_braced ? '}' : '/') - begin);
}

std::optional<std::string> filled_in(const std::string& text) {
  const std::string name = leading_variable(text);
  if (name.empty()) return text;
  const Environment environment = environment_of_process();
  const auto known = environment.find(name);
  if (known == environment.end()) return std::nullopt;
  const std::size_t end = name.size() + (text.starts_with("${") ? 3 : 1);
  return known->second + text.substr(std::min(end, text.size()));
}

}  // namespace paceline
