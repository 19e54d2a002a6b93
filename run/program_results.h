// Finds the results of somebody's own program in what it prints and in files that it writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sweeps/program.h"

namespace paceline {

class PrintedOutput;

// What a program reports, by the name of the result.
struct ProgramReport {
  std::map<std::string, std::vector<double>> numbers;  // one, or a list in its order; all finite
  std::map<std::string, std::string> words;
};

// Throws usage as the constructor below does.
void check_results(const UserProgram& program);

class ProgramResults {
 public:
  // Throws usage if an expression is none or has not exactly one group. What does not fit into
  // memory is kept in a nameless file of `folder`.
  explicit ProgramResults(const std::vector<ResultSource>& sources,
                          const std::filesystem::path& folder = {});
  ~ProgramResults();
  ProgramResults(const ProgramResults&) = delete;
  ProgramResults& operator=(const ProgramResults&) = delete;

  // What the program prints, in any pieces. Only keeps it, as the program waits meanwhile.
  void append(std::string_view text);
  // After its end, searches what it printed and its files. `resolve_file` turns a source's file
  // into a path. Throws input naming the result: it is not there, more than once, not a number, not
  // finite.
  ProgramReport finish(
      const std::function<std::filesystem::path(const std::string&)>& resolve_file);

 private:
  struct Finder;
  void search(std::string_view output);

  std::vector<std::unique_ptr<Finder>> finders_;
  std::unique_ptr<PrintedOutput> output_;
  bool keeps_output_ = false;
};

// Scalars of TensorBoard event files, of any framework.

struct ScalarEvent {
  std::int64_t step = 0;
  std::string value;  // a number as text, or why it is none
};

// The scalars with this tag of a file, or of all event files below a folder, by step. A file that
// is still written to may end within a record. Throws input for one that is damaged before its end.
std::vector<ScalarEvent> scalar_events(const std::filesystem::path& place, const std::string& tag);

}  // namespace paceline
