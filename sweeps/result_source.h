// Where the results of somebody's own program stand.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/text.h"

namespace paceline {

enum class ResultFrom {
  line,       // a regular expression with one group, in what the program prints
  json,       // a path in a JSON file, or in the whole output
  json_line,  // a path in the last printed line that is a JSON object
  csv,        // a column of a CSV file
  key,        // a key of a file of key=value or key: value lines, or of such printed lines
  events,     // a tag of TensorBoard event files
};

// The keys of a result, by which a spec says it.
inline constexpr EnumName<ResultFrom> kResultSources[] = {
    {ResultFrom::line, "line"}, {ResultFrom::json, "json"}, {ResultFrom::json_line, "json_line"},
    {ResultFrom::csv, "csv"},   {ResultFrom::key, "key"},   {ResultFrom::events, "events"}};

// What becomes of several numbers.
enum class Pick { only, first, last, mean, median, least, most };

struct ResultSource {
  std::string name;  // "samples_per_second"
  ResultFrom from = ResultFrom::line;
  std::string what;  // the expression, path, column, key or tag
  std::string file;  // with placeholders; empty: the output
  Pick pick = Pick::only;
  double scale = 1;          // milliseconds: 0.001
  std::string where = {};    // "file.json:7", for errors
  bool per_replica = false;  // what one replica does: times their number
  bool has_scale = false;    // stated, if only as 1
  // Of a printed line: an expression. Only lines that match it are searched, and each must hold the
  // number. Empty: all lines.
  std::string among = {};
  // Two expressions, or none: behind a line that matches the first, as of a validation, no number
  // is read up to one that matches the second, and in that one.
  std::vector<std::string> not_between = {};
  // Of a result in a unit of the user's own: "ns/day" with "more" or "less". "tokens", as of a unit
  // "tokens/s", is what it counts a second.
  std::string unit = {}, better = {};
};

inline constexpr std::size_t kLongestUnit = 40;

struct ResultName {
  const char* name;
  const char* about;
  bool is_list;                 // of steps or epochs
  std::string_view words = {};  // "fp32|bf16": one of these instead of a number
  std::string_view unit = {};   // "tokens": what it counts, if not samples
};
const std::vector<ResultName>& result_names();
// Of one's own results: as samples_per_second.
const ResultName& result_name(const ResultSource& source);
std::string_view unit_counted(const ResultSource& source);  // "tokens"; empty: samples, or nothing

// How a common program prints its results, by name in a spec: "results": "nanogpt".
struct ResultPreset {
  const char* name;
  const char* of;       // "nanoGPT's train.py"
  const char* results;  // JSON, as it would stand in a spec
};
const std::vector<ResultPreset>& result_presets();
bool is_preset(std::string_view name);

}  // namespace paceline
