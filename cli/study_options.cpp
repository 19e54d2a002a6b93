#include "cli/study_options.h"

#include <CLI/CLI.hpp>

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
  verb.add_flag("--control", options.control,
                "run the smallest point twice a round, to show run-to-run noise");
  verb.add_flag("--new-build", options.new_build, "rerun points that another build recorded");
}

}  // namespace paceline
