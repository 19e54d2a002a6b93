// A sweep spec: which runs a study consists of. README.md describes the keys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/parameters.h"
#include "sweeps/expression.h"
#include "sweeps/program.h"

namespace paceline {

struct Axis {
  std::string name;
  std::vector<Value> values;
  std::string where;  // "file.json:7", for errors
};

// Axes that advance together, by index.
using Zip = std::vector<Axis>;

// A point written in the file itself. May be partial.
struct SpecPoint {
  Point point;
  std::string where;
  bool may_repeat = false;  // omitted if the product has it already, instead of an error
};

struct Spec {
  std::string name, description, workload;
  std::string where;                          // the file, for errors
  std::map<std::string, std::string> places;  // of each axis: "file.json:7", for errors
  Point fixed;
  std::vector<Axis> axes;
  std::vector<Zip> zips;
  std::vector<SpecPoint> include;  // in addition to the product
  std::vector<SpecPoint> exclude;  // partial points
  std::vector<Expression> exclude_if;
  std::optional<Expression> condition;  // `where`
  int repeats = 1;
  bool interleaved = true;
  bool control = false;               // runs the smallest point a second time in each round
  std::uint64_t seed = 0;             // for the order of runs; default: from the name
  double timeout_seconds = 0;         // per run; 0: none
  bool sequential = false;            // RunFlags::sequential of its runs; no key of the file
  std::vector<UserProgram> programs;  // of workload "command", which parameter "program" names
  std::string text;                   // as it was read
  std::vector<std::string> set;       // what override_axis() applied, in order
};

// The program of a point, by its name or tag. Throws usage suggesting the nearest.
const UserProgram& program_at(const Spec& spec, const Point& parameters, const std::string& where);

// Throws input or usage naming key, file and line, and suggesting the nearest known key or name.
Spec read_spec(const std::filesystem::path& file);
Spec parse_spec(const std::string& name, std::string_view text);

// JSON Schema of the file. `schema` has its keys, to which are added: axes, programs, and what
// several keys have to do with each other.
std::string spec_schema();
void add_spec_rules(Json& schema);

// The text of a spec that gives the same runs: what was read, without comments, and what the
// command line changed (set, repeats, control, timeout).
std::string to_text(const Spec& spec);

// Applies "axis=value" or "axis=v1,v2,..." from --set. It replaces everything that the spec says
// about that axis: fixed, varied or zipped. Omits included points with another value, and
// those that the axis now produces anyway. The axis stays an axis even with a single value, so that
// points keep their names and records. Throws usage.
void override_axis(Spec& spec, const std::string& assignment);

// Changes every value of an axis in the spec. Values of a plain axis, and included points, that
// become equal are merged.
void change_values(Spec& spec, const std::string& name,
                   const std::function<Value(const Value&)>& change);

// The text of a first spec, commented, from a few answers.

struct NewSpec {
  std::string name;
  std::string workload;               // ours; empty: `command`
  std::string command;                // a command line, as in a shell
  std::string throughput;             // regular expression or preset; empty: the whole time counts
  std::string unit = "samples/s";     // of it
  std::string better;                 // "more" or "less"; empty: as the unit says
  std::string work;                   // "fixed" or "grows"; empty: not stated
  std::string processes = "one";      // or "node" or "replica"
  std::vector<std::string> backends;  // of our workload
  std::string device = "cpu";
  std::vector<int> gpus;
  int repeats = 5;
};

// The value of a spec's "results" for NewSpec::throughput.
std::string results_text(const std::string& throughput, const std::string& unit = "samples/s",
                         const std::string& better = "");

// The words of a command line without quotes, variables and the like, which a shell would split in
// the same way. Empty: it needs a shell.
std::vector<std::string> plain_words(const std::string& command);

// Throws usage or input if no study can be made of it, as reading the text would.
std::string to_text(const NewSpec& spec);

// 1, 2, 4, ... up to and with `most`.
std::vector<int> doubling(int most);

}  // namespace paceline
