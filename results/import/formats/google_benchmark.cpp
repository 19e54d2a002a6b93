#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/facts/json.h"
#include "results/import/formats.h"
#include "results/import/lines.h"
#include "results/names.h"

namespace paceline {

namespace {

std::string text_in(const Json& json, const char* key) {
  return text_or_empty(find_member(json, key));
}

// Versions before 1.4 have no run_type, but names of aggregates show what they are.
bool is_aggregate(const Json& row, const std::set<std::string>& names) {
  if (row.contains("run_type")) return text_in(row, "run_type") == "aggregate";
  const std::string name = text_in(row, "name");
  const std::string stem = name.substr(0, name.rfind('_'));
  const std::string ending = name.substr(stem.size());
  if (ending == "_BigO" || ending == "_RMS") return true;
  if (ending != "_mean" && ending != "_median" && ending != "_stddev" && ending != "_cv") {
    return false;
  }
  return names.contains(stem) ||
         (names.contains(stem + "_mean") && names.contains(stem + "_stddev"));
}

double read_seconds(const Json& row, const std::string& name, const std::string& where) {
  static const std::map<std::string, double> kUnits = {
      {"", 1e-9}, {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  const auto fail = [&](const std::string& what) -> Error {
    return input_error(fmt::format("benchmark \"{}\" {}", name, what), where,
                       "run it again, or leave it out");
  };
  const auto time = number_or_empty(find_member(row, "real_time"));
  if (!time) throw fail("has no real_time");
  const auto unit = kUnits.find(text_in(row, "time_unit"));
  if (unit == kUnits.end() || (row.contains("time_unit") && !row["time_unit"].is_string()))
    throw fail("has unknown time_unit " + json_text(row["time_unit"]));
  const double seconds = *time * unit->second;
  if (!(seconds > 0) || !std::isfinite(seconds)) throw fail("has a real_time that is not positive");
  return seconds;
}

BenchmarkRow make_row(const Json& row, const std::string& where) {
  BenchmarkRow result;
  result.where = where;
  result.name = text_in(row, text_in(row, "run_name").empty() ? "name" : "run_name");
  if (find_member(row, "error_occurred") == Json(true)) {
    result.outcome = BenchmarkRow::Outcome::failed;
    result.error = text_in(row, "error_message");
    if (result.error.empty()) result.error = "it reported an error";
  } else if (find_member(row, "skipped") == Json(true)) {
    result.outcome = BenchmarkRow::Outcome::skipped;
  } else if (find_member(row, "real_time") == 0) {
    result.outcome = BenchmarkRow::Outcome::took_no_time;
  } else {
    result.seconds = read_seconds(row, result.name, where);
    const auto rate = number_or_empty(find_member(row, "items_per_second"));
    if (rate && *rate > 0) result.items_per_second = rate;
  }
  return result;
}

// Empty if the benchmark has an argument of its own that has a parameter's name.
std::optional<Value> value_of_argument(const std::string& key, const std::string& text) {
  try {
    if (key == "backend" || key == "device") find_name(key, text);
    const Value value = parsed_value(key, text, "");
    const auto* number = std::get_if<std::int64_t>(&value);
    if (number && has_role(key, Role::layout) && static_cast<double>(*number) > kMostOfAnInt)
      return std::nullopt;
    return value;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Parts of a name that are values of parameters, as ArgNames writes them: "BM_step/gpus:4". The
// rest names the program.
std::string take_parameters(const std::string& name, Point& parameters) {
  std::vector<std::string> kept;
  for (const std::string& part : split(name, '/')) {
    const std::size_t end = part.find(':');
    const std::string key = part.substr(0, end);
    const bool is_parameter = end != part.npos && find_parameter(key) != nullptr;
    const auto value = is_parameter ? value_of_argument(key, part.substr(end + 1)) : std::nullopt;
    if (value) {
      parameters.set(key, *value);
    } else {
      kept.push_back(part);
    }
  }
  return join(kept, "/");
}

ImportContent read_google_benchmark_rows(const ForeignFile& foreign) {
  const JsonDocument document(foreign.name, foreign.text);
  const BenchmarkFile file = read_benchmark_file(document);
  ImportContent content;
  content.tool = "Google Benchmark";
  std::size_t left_out = 0;
  for (const BenchmarkRow& row : file.rows) {
    if (row.outcome == BenchmarkRow::Outcome::skipped ||
        row.outcome == BenchmarkRow::Outcome::took_no_time) {
      ++left_out;
      continue;
    }
    ImportedRun& run = content.runs.emplace_back();
    RunRecord& record = run.record;
    record.workload = take_parameters(row.name, record.parameters);
    set_replicas(record, static_cast<int>(record.parameters.integer("gpus").value_or(1)));
    if (row.outcome == BenchmarkRow::Outcome::failed) {
      record.status = "failed";
      record.reason = row.error;
    } else {
      record.timing->fit_seconds = row.seconds;
      record.provenance.time_is = "real time of an iteration of the benchmark";
    }
    record.throughput->samples_per_second = row.items_per_second;
    if (row.items_per_second) record.provenance.rate_is = "items per second of the benchmark";
    if (!file.host.empty()) *record.each_rank = {{.host = file.host}};
    record.provenance.started_at = file.date;
    if (file.cpus && *file.cpus > 0) record.provenance.machine.cpus = file.cpus;
    const std::size_t colon = row.where.rfind(':');
    run.line = static_cast<std::size_t>(
        std::max<std::int64_t>(1, to_integer(row.where.substr(colon + 1)).value_or(1)));
  }
  if (content.runs.empty()) {
    refuse_line(foreign, 1, "the file has no benchmark that took time", "import another file");
  }
  if (left_out > 0) {
    content.notes.push_back(fmt::format("{} skipped or timeless rows are left out", left_out));
  }
  return content;
}

}  // namespace

bool is_benchmark_json(const Json& json) {
  return find_member(json, "benchmarks").is_array();
}

BenchmarkFile read_benchmark_file(const JsonDocument& document) {
  const Json& json = document.value();
  if (!is_benchmark_json(json)) {
    throw input_error("the file has no list of benchmarks", document.where(""),
                      "make the file again with --benchmark_format=json");
  }
  BenchmarkFile file;
  const Json& context = find_member(json, "context");
  file.date = text_in(context, "date");
  file.host = text_in(context, "host_name");
  file.build_type = text_in(context, "library_build_type");
  if (const Json& cpus = find_member(context, "num_cpus"); cpus.is_number_integer()) {
    file.cpus = cpus.get<int>();
  }
  const Json& benchmarks = json["benchmarks"];
  std::set<std::string> names;
  for (const Json& row : benchmarks) {
    if (row.is_object()) names.insert(text_in(row, "name"));
    if (!row.is_object() || !row.contains("stats") || row.contains("real_time")) continue;
    throw input_error("the file is pytest-benchmark's JSON, not Google Benchmark's",
                      document.name(), "give a file of --benchmark_out_format=json, or records");
  }
  for (std::size_t i = 0; i < benchmarks.size(); ++i) {
    const Json& row = benchmarks[i];
    const std::string where = document.where(fmt::format("/benchmarks/{}", i));
    if (!row.is_object() || text_in(row, "name").empty()) {
      throw input_error("the benchmark has no name", where, "make the file again");
    }
    if (is_aggregate(row, names)) {
      ++file.aggregates;
    } else {
      file.rows.push_back(make_row(row, where));
    }
  }
  if (file.rows.empty() && file.aggregates > 0) {
    throw input_error("the file has only aggregates, no single runs", document.name(),
                      "run it again without --benchmark_report_aggregates_only");
  }
  return file;
}

ImportFormat google_benchmark_format() {
  return {.name = "google-benchmark",
          .what = "JSON of Google Benchmark",
          .example = "build.json --study micro",
          .is_one =
              [](std::string_view text) {
                return text.find("\"benchmarks\"") != text.npos &&
                       text.find_first_not_of(" \t\r\n") == text.find('{');
              },
          .read = read_google_benchmark_rows};
}

}  // namespace paceline
