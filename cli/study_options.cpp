#include "cli/study_options.h"

#include <CLI/CLI.hpp>

namespace paceline {

void add_study_options(CLI::App& verb, StudyOptions& options) {
  verb.add_option("spec", options.spec, "a sweep spec (sweeps/*.json)")->required();
  verb.add_option("--results", options.results, "where studies lie; of jobs, too")
      ->capture_default_str();
  verb.add_option("--data", options.data, "folder with the data sets' folders (e.g. data)");
  verb.add_option("--set", options.set, "or AXIS=V1,V2: instead of what the spec says")
      ->type_name("AXIS=VALUE")
      ->expected(1)
      ->take_all();
  verb.add_option("--repeats", options.repeats, "runs of each point")->check(CLI::Range(1, 1000));
  verb.add_flag("--control", options.control,
                "run the smallest point once more in each round, to see how far equal runs differ");
  verb.add_flag("--new-build", options.new_build, "run again what another build recorded");
}

}  // namespace paceline
