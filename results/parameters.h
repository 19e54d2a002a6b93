// The parameters of a training run: one table, used for sweep axes, for command-line flags
// (underscores become dashes), for the identity of a point and for the columns of a table.
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

struct Parameter {
  std::string_view name;
  ValueKind kind;
  std::string_view values;  // "a|b|c" for a closed set, a range "1.." or "0..1", or empty
  std::string_view help;    // one line, for --help and the docs
  bool identity = true;     // false: does not change what is measured (never part of a point)
};

// True of an A/A control: a run that is compared with those of an equal point and is no result.
inline constexpr char kControl[] = "control";

// In canonical order, the order of points and tables.
const std::vector<Parameter>& parameters();
const Parameter* find_parameter(std::string_view name);

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

// 16 hexadecimal digits over the workload and every identity parameter with its value.
std::string identity_hash(std::string_view workload, const Point& all_parameters);

}  // namespace paceline
