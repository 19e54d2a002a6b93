// The parameters of a training run, in a single table (parameter_table.cpp). The table defines
// sweep axes, command-line options (underscores become dashes), the identity of a point, and
// columns of tables.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/core/json.h"

namespace paceline {

using Value = std::variant<bool, std::int64_t, double, std::string>;
std::string to_text(const Value& value);  // "4", "0.001", "mpi", "true"

enum class ValueKind { boolean, integer, real, text };

// Groups of parameters in --help and docs/options.md, in this order.
enum class Group {
  place,
  precision,
  model,
  batch,
  schedule,
  evaluation,
  input,
  communication,
  checkpoints,
  measurement,
  output,
};
const std::vector<Group>& groups();
std::string_view group_title(Group group);  // "Where it runs"

// When --help shows a parameter. --help-all shows all.
enum class Shown { rarely, often, first };

// The role of a parameter in a study.
enum class Role {
  layout,       // has columns of its own; speed-ups compare rows that differ in it
  table,        // one table for each value
  replication,  // may differ between repeats
  work,         // amount of work: runs with different values cannot be compared
  threads,      // how CPUs of a replica are divided; derived if not given
  setting,      // anything else that affects measurements
  none,         // does not affect measurements; not part of a point's identity
};

// What a different value means when a run resumes from a checkpoint.
enum class OnResume {
  must_match,  // an error: the run would not continue as it began
  announced,
  free,
};

// What a run needs for a parameter to have an effect.
enum class Requirement { nothing, gpu, batch_norm, encoded_images, own_program };

// Another parameter that must be given, with one of these values (any value if empty).
struct With {
  std::string_view parameter, values;  // "schedule", "cosine|polynomial"
};

// What most parameters leave as it is.
struct ParameterTraits {
  std::string_view form = {};       // placeholder in help for other kinds of values: "NAME"
  bool is_assumed = false;          // `initial` is implied by absence and not written to points
  std::string_view otherwise = {};  // describes the default in words
  Shown shown = Shown::rarely;
  Role role = Role::setting;
  OnResume on_resume = OnResume::announced;
  bool is_file = false;       // may be a local file or folder
  bool follows_size = false;  // studies may vary it with the number of replicas
  Requirement need = Requirement::nothing;
  With with = {};
  bool is_gone = false;  // of earlier versions: records and plans may name it, nobody else
};

// The complete definition of a parameter. Help, completion, docs/options.md, defaults, checks,
// resume rules, columns, grouping of tables and the gate's matching are derived from it.
struct Parameter : ParameterTraits {
  Parameter(std::string_view name, ValueKind kind, std::string_view values,
            std::string_view initial, Group group, std::string_view help, ParameterTraits more = {})
      : ParameterTraits(more),
        name(name),
        kind(kind),
        values(values),
        initial(initial),
        group(group),
        help(help) {}

  std::string_view name;
  ValueKind kind;
  std::string_view values;   // "a|b|c" for a closed set, a range "1.." or "0..1", or empty
  std::string_view initial;  // default value; empty: see `otherwise`
  Group group;
  std::string_view help;  // one line

  bool identity() const { return role != Role::none; }
};

// Marks an A/A control: a run that is compared with those of an equal point, and is not a result.
inline constexpr char kControl[] = "control";

// The workload of somebody's own program, which only a study runs.
inline constexpr char kCommandWorkload[] = "command";

// In canonical order, used for points and tables.
std::span<const Parameter> parameters();
// Behind them those that are gone: what records may have.
std::span<const Parameter> recorded_parameters();
const Parameter* find_parameter(std::string_view name);  // of all these

bool has_role(std::string_view name, Role role);
// "--batch-per-replica".
std::string option_name(std::string_view parameter);
std::string_view describe_default(const Parameter& parameter);  // "8", "the workload's"
// "[default: 8]", "[default: the workload's]".
std::string default_text(const Parameter& parameter);
std::string type_text(const Parameter& parameter);  // "N", "X", "{a,b}", "FILE", "TEXT"
// All of them: docs/options.md, and a row each with name, group, values, default, only_for,
// on_resume and help.
std::string parameters_markdown();
Json parameters_json();

// Throws usage if `value` does not fit `name`, with the nearest name or the allowed values. Accepts
// integers for reals.
Value checked_value(std::string_view name, const Value& value, const std::string& where);
// The same for what an earlier version wrote, whose choices may be gone.
Value recorded_value(std::string_view name, const Value& value, const std::string& where);
// A JSON number, text, true or false; unchecked. Throws input for others.
Value value_from_json(const Json& json, const std::string& where);
// As checked_value, for text from a command line.
Value parsed_value(std::string_view name, std::string_view text, const std::string& where);

// Values by parameter name, at most one each, in canonical order.
class Point {
 public:
  Point() = default;
  Point(std::initializer_list<std::pair<std::string_view, Value>> values);  // {{"gpus", 4}}

  void set(std::string_view name, Value value);
  void set_default(std::string_view name, Value value);  // sets it only if it has no value
  void erase(std::string_view name);
  const Value* find(std::string_view name) const;
  std::optional<std::int64_t> integer(std::string_view name) const;
  std::optional<double> real(std::string_view name) const;  // also converts integers
  std::optional<std::string> text(std::string_view name) const;

  const std::vector<std::pair<std::string, Value>>& values() const { return values_; }
  bool empty() const { return values_.empty(); }

  // "gpus=4,cpus_per_task=8,backend=nccl". Also the name of the point's folder, where every
  // character except [A-Za-z0-9=,._+-] is percent-encoded (a slash in a backend's name is "%2F").
  std::string text() const;
  std::string folder() const;

  friend bool operator==(const Point&, const Point&) = default;

 private:
  std::vector<std::pair<std::string, Value>> values_;
};

Json to_json(const Point& point);  // {"gpus": 4, "backend": "nccl"}

// "train" of "train@3f9a12cd3f9a12cd", a value of parameter program: its name and its recipe's
// hash.
std::string name_of_program(const std::string& tag);

// Whether the point has the value that `parameter` requires of another one (Parameter::with).
bool is_with(const Point& point, const Parameter& parameter);
// Throws usage with a cure if not: "decay_factor is for schedule step".
void check_with(const Point& point);

// Reads values from a point, and defaults from the table.
class Settings {
 public:
  explicit Settings(const Point& point) : point_(point) {}
  bool given(std::string_view name) const { return point_.find(name) != nullptr; }
  bool flag(std::string_view name) const { return std::get<bool>(value(name)); }
  std::int64_t integer(std::string_view name) const { return std::get<std::int64_t>(value(name)); }
  double real(std::string_view name) const { return std::get<double>(value(name)); }
  std::string text(std::string_view name) const { return to_text(value(name)); }

 private:
  // Throws internal if the parameter has neither a value nor a default.
  Value value(std::string_view name) const;

  const Point& point_;
};

// 16 hexadecimal digits, computed from the workload and all identity parameters with their values.
std::string identity_hash(std::string_view workload, const Point& all_parameters);

// Computes nodes and tasks, in Slurm's terms, from gpus, CPUs and backend.

struct Layout {
  int nodes = 1;
  int ntasks = 1;
  int cpus_per_task = 1;
  int gpus = 1;              // number of replicas, also if a replica is a set of CPU cores
  int cpus_per_replica = 1;  // cpus_per_task divided among the replicas of a task
  bool replicas_are_cores = true;
};

// Uses gpus, nodes, gpus_per_task, cpus_per_task or cpus_per_replica, backend (of a program
// processes) and device. Defaults: 1, "self" and "cpu"; a backend that sums within tasks has one
// task a node. Throws usage if they contradict each other.
Layout make_layout(const Point& parameters, const std::string& where = "");
// The same of a run that was made or planned, by a backend that may be gone.
Layout recorded_layout(const Point& parameters, const std::string& where = "");

}  // namespace paceline
