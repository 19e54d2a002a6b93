// The parameters of a training run: one table (parameter_table.cpp), used for sweep axes, for
// command-line flags (underscores become dashes), for the identity of a point and for the columns
// of a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace paceline {

using Value = std::variant<bool, std::int64_t, double, std::string>;
std::string to_text(const Value& value);  // "4", "0.001", "mpi", "true"

enum class ValueKind { boolean, integer, real, text };

// What a parameter is about: the groups of --help and of docs/options.md, in this order.
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
std::string_view title_of(Group group);  // "Where it runs"

// Where --help shows a parameter; --help-all shows all.
enum class Shown { rarely, often, first };

// What a parameter is in a study.
enum class Role {
  layout,       // columns of its own; a speed-up compares rows that differ in it
  table,        // each of its values has tables of its own
  replication,  // repeats may differ in it
  work,         // how much a run does: unlike values cannot be compared
  threads,      // how the CPUs of a replica are shared; follows from them where not given
  setting,      // anything else that changes what is measured
  none,         // changes nothing that is measured: no part of a point's identity
};

// What another value means for a run that goes on from a checkpoint.
enum class OnResume {
  must_match,  // refused: it would not go on as it began
  announced,
  free,
};

// What a run must have for a parameter to mean anything.
enum class Requirement { nothing, gpu, batch_norm, gpu_batch_norm, encoded_images };

// Another parameter that must be given, with one of these values where there are any.
struct With {
  std::string_view parameter, values;  // "schedule", "cosine|polynomial"
};

// All that there is to say of a parameter; help, completion, docs/options.md, defaults, checks,
// resuming, columns, groups of tables and the gate's matching ask this.
struct Parameter {
  std::string_view name = {};
  std::string_view also = {};  // a short name, or that of records of earlier versions
  ValueKind kind = ValueKind::text;
  std::string_view values = {};   // "a|b|c" for a closed set, a range "1.." or "0..1", or empty
  std::string_view form = {};     // what help calls a value of another kind: "NAME"
  std::string_view initial = {};  // its value where none is given; empty: see `otherwise`
  bool is_assumed = false;        // `initial` is what absence means, and is not written into points
  std::string_view otherwise = {};  // what is done where none is given, in words
  Group group = Group::place;
  Shown shown = Shown::rarely;
  Role role = Role::setting;
  OnResume on_resume = OnResume::announced;
  bool is_file = false;       // may be the name of a file or folder of this machine
  bool follows_size = false;  // studies let it change with the number of replicas
  Requirement need = Requirement::nothing;
  With with = {};
  std::string_view help = {};  // one line

  bool identity() const { return role != Role::none; }
};

// True of an A/A control: a run that is compared with those of an equal point and is no result.
inline constexpr char kControl[] = "control";

// In canonical order, the order of points and tables.
const std::vector<Parameter>& parameters();
const Parameter* find_parameter(std::string_view name);

bool has_role(std::string_view name, Role role);
// Whether tables say it otherwise than by a column of its name: by the layout's columns, by being a
// table of their own, or not at all (the seed).
bool has_own_place(std::string_view name);
// "--batch-per-replica".
std::string option_name(std::string_view parameter);
std::string_view default_of(const Parameter& parameter);  // "8", "the workload's"
// "[default: 8]", "[default: the workload's]".
std::string default_text(const Parameter& parameter);
std::string type_text(const Parameter& parameter);  // "N", "X", "{a,b}", "FILE", "TEXT"

// Throws usage, with the nearest name or the allowed values, if `value` does not fit `name`.
// Integers are accepted where a real is wanted.
Value checked_value(std::string_view name, const Value& value, const std::string& where);
// As above from text, as given on a command line.
Value parsed_value(std::string_view name, std::string_view text, const std::string& where);

// Values by parameter name, at most one each, kept in canonical order.
class Point {
 public:
  void set(std::string_view name, Value value);
  void set_default(std::string_view name, Value value);  // where it has none
  void erase(std::string_view name);
  const Value* find(std::string_view name) const;
  std::optional<std::int64_t> integer(std::string_view name) const;
  std::optional<double> real(std::string_view name) const;  // integers too
  std::optional<std::string> text(std::string_view name) const;

  const std::vector<std::pair<std::string, Value>>& values() const { return values_; }
  bool empty() const { return values_.empty(); }

  // "gpus=4,cpus_per_task=8,backend=nccl"; also the name of the point's folder, with every
  // character but [A-Za-z0-9=,._+-] percent-encoded (a slash in a backend's name is "%2F").
  std::string text() const;
  std::string folder() const;

  friend bool operator==(const Point&, const Point&) = default;

 private:
  std::vector<std::pair<std::string, Value>> values_;
};

// Whether the point gives what `parameter` is to be used with.
bool is_with(const Point& point, const Parameter& parameter);
// Where it does not: "decay_factor is for schedule step", with the cure. Throws usage.
void check_with(const Point& point);

// Reads a point, and the table where the point says nothing.
class Settings {
 public:
  explicit Settings(const Point& point) : point_(point) {}
  bool given(std::string_view name) const { return point_.find(name) != nullptr; }
  bool flag(std::string_view name) const { return std::get<bool>(value(name)); }
  std::int64_t integer(std::string_view name) const { return std::get<std::int64_t>(value(name)); }
  double real(std::string_view name) const { return std::get<double>(value(name)); }
  std::string text(std::string_view name) const { return to_text(value(name)); }

 private:
  // Throws internal for a parameter that has neither a value nor a default.
  Value value(std::string_view name) const;

  const Point& point_;
};

// 16 hexadecimal digits over the workload and every identity parameter with its value.
std::string identity_hash(std::string_view workload, const Point& all_parameters);

}  // namespace paceline
