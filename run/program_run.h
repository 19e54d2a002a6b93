// One run of somebody's own program (workload command), from its start to its record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/environment.h"
#include "engine/facts/provenance.h"
#include "engine/input/cache/cache_area.h"
#include "results/import/kineto.h"
#include "results/parameters.h"
#include "run/diagnosis.h"
#include "run/training_run.h"
#include "sweeps/program.h"

namespace paceline {

struct ProgramRequest {
  UserProgram program;
  Point parameters;  // resolved
  Layout layout;
  RecordTarget target;
  std::vector<std::string> command;  // ours, as typed, which each of its processes is started by
};

// `definition`: the program's recipe in the study (sweeps/program.h). Throws usage.
ProgramRequest make_program_request(const Point& given, const std::string& definition,
                                    const std::vector<std::string>& command);

// Starts the program's processes, bound to the CPUs and GPUs of the point, waits for all that they
// start, and writes the record. A process that it started becomes the program here. Returns 0 or
// throws: the program cannot be started, ended with an error, left no results.
int run_program(const ProgramRequest& request);

// What a program prints, kept until it has ended. To search it is dear, and would slow the program
// down, which waits as long as nobody reads.

class PrintedOutput {
 public:
  // Up to 32 MB are in memory, more in a file in `folder` that nobody else sees.
  explicit PrintedOutput(std::filesystem::path folder);
  ~PrintedOutput();
  PrintedOutput(const PrintedOutput&) = delete;
  PrintedOutput& operator=(const PrintedOutput&) = delete;

  // Never fails, as the program runs.
  void add(std::string_view text) noexcept;
  // All of it, after the last add(). Throws input if there was no room for it.
  std::string_view text();

 private:
  bool spill(std::string_view text);

  std::filesystem::path folder_;
  std::string memory_;
  std::unique_ptr<UnlinkedFile> file_;
  std::size_t bytes_ = 0;
  bool is_lost_ = false;
  void* mapped_ = nullptr;
};

// Finds the results of somebody's own program in what it prints and in files that it writes.

// What a program reports, by the name of the result.
struct ProgramReport {
  std::map<std::string, std::vector<double>> numbers;  // one, or a list in its order; all finite
  std::map<std::string, std::string> words;
  std::map<std::string, std::vector<double>> each = {};  // all of which one was picked
  const ResultSource* rate = nullptr;  // a rate in a unit of its own, or by a name of its own
  std::size_t steps_left_out = 0;      // by not_between
};

// Throws usage as the constructor below does.
void check_results(const UserProgram& program);

// A line that may be a part: its end did not come, or two writers can have met in it. Stands behind
// the line.
enum class LineFault : char { none = 0, cut = '\x1a', met = '\x19' };

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
  // The same, of a line that has a fault: no number is read from it.
  void append(std::string_view line, LineFault fault);
  std::string_view output() { return output_->text(); }
  // After its end, searches what it printed and its files. `resolve_file` turns a source's file
  // into a path. Throws input naming the result: it is not there, more than once, not a number, not
  // finite. What is of one replica is multiplied by `replicas`.
  ProgramReport finish(const std::function<std::filesystem::path(const std::string&)>& resolve_file,
                       int replicas = 1);

 private:
  struct Finder;
  void search(std::string_view output);

  std::vector<std::unique_ptr<Finder>> finders_;
  std::unique_ptr<PrintedOutput> output_;
};

// Scalars of TensorBoard event files, of any framework.

struct ScalarEvent {
  std::int64_t step = 0;
  std::string value;  // a number as text, or why it is none
};

// The scalars with this tag of a file, or of all event files below a folder, by step. A file that
// is still written to may end within a record. Throws input for one that is damaged before its end.
std::vector<ScalarEvent> scalar_events(const std::filesystem::path& place, const std::string& tag);

// A process of a user's program (workload command): its CPUs, GPUs, variables and words.

// Which part of a program the process becomes: "setup" or "run". Set by the process that starts it.
inline constexpr char kPartVariable[] = "PACELINE_PROGRAM_PART";

LaunchSpec make_launch_spec(const ProgramRequest& request);
bool has_ranks(const UserProgram& program);
// Whether ranks are started by another program, which passes on what they print.
bool hides_ranks(const ProgramRequest& request);
// Below the study's folder. With ".start": a file with now_seconds() of the moment before its first
// process became the program; with ".kept": what was measured, and what it printed.
std::filesystem::path name_of_run(const ProgramRequest& request);
std::filesystem::path folder_of_run(const ProgramRequest& request);  // placeholder {out}

// What a run's placeholders stand for, except those that differ by process.
// Empty: no value.
std::optional<std::string> value_in_run(const std::string& name, const ProgramRequest& request);

// The process becomes that part of the program. Throws if it cannot be started.
[[noreturn]] void become_program(const ProgramRequest& request, const std::string& part);

// The sections of a program's record: what it is, and its numbers.

// Its folder's commit, the hash of the files that its command names, its Python environment with
// the packages that matter to speed. `seconds` are those from its start to its end.
ProgramFacts program_facts(const UserProgram& program, double seconds);

// Sets the program's precision, too, so after its facts. Without a result of its own, fit_seconds
// is the program's whole time, and the record says so.
void set_results(RunRecord& record, const ProgramReport& report, double seconds);

// Gzipped JSON lines {"rank":0,"step":0,"total":..}; empty: no times of steps.
std::string compressed_steps(const ProgramReport& report);

// The files that a glob matches, in the order of their names. Throws input if there are none.
std::vector<std::string> find_traces(const std::string& glob);

// Sets the phases of a run by its trace. If the record does not say how long it trained, its steps
// are those of the trace, and are returned for the sidecar. Else they stand for all steps: by the
// number of these, or without it by the time. Throws input if the trace is of another number of
// replicas.
std::string set_traced_phases(RunRecord& record, const KinetoRun& trace);

// The frameworks of the user's Python, for studies of programs (workload command).

// Imports each in the python3 of the PATH, which takes seconds. A framework that is missing or
// cannot be imported is a fact with its reason, not a problem: Paceline needs none.
DiagnosisSection frameworks_here(const Environment& environment);

}  // namespace paceline
