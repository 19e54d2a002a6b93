// Finds the results of somebody's own program in what it prints and in files that it writes.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sweeps/program.h"

namespace paceline {

// What a program reports, by the name of the result.
struct ProgramReport {
  std::map<std::string, std::vector<double>> numbers;  // one, or a list in its order; all finite
  std::map<std::string, std::string> words;
};

// Throws usage as the constructor below does.
void check_results(const UserProgram& program);

class ProgramResults {
 public:
  // Throws usage if an expression is none or has not exactly one group.
  explicit ProgramResults(const std::vector<ResultSource>& sources);
  ~ProgramResults();
  ProgramResults(const ProgramResults&) = delete;
  ProgramResults& operator=(const ProgramResults&) = delete;

  // What the program prints, in any pieces. Keeps no more of it than its results.
  void hear(std::string_view text);
  // After its end. `file_of` turns a source's file into a path. Throws input naming the result:
  // it is not there, more than once, not a number, not finite.
  ProgramReport finish(const std::function<std::filesystem::path(const std::string&)>& file_of);

 private:
  struct Finder;
  void take_line();

  std::vector<std::unique_ptr<Finder>> finders_;
  std::string line_, output_;  // the line so far; all output where a result is of it as a whole
  std::size_t lines_ = 0;
  bool keeps_output_ = false, output_is_cut_ = false;
};

}  // namespace paceline
