#include "run/program_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/core/error.h"
#include "engine/core/foreign_text.h"
#include "engine/core/json_text.h"
#include "engine/core/text.h"
#include "results/csv.h"
#include "run/printed_output.h"
#include "run/result_numbers.h"
#include "run/result_pattern.h"
#include "run/scalar_events.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxOutput = 4 << 20, kMaxFile = 64 << 20;
// Of lines without a digit, on which the library gave up on an expression.
constexpr std::size_t kMostGivenUp = 1000;

using PlaceText = std::function<std::string()>;

// "$.train.time", "$.epochs[2].seconds" and "/train/time" as a JSON pointer.
nlohmann::json_pointer<std::string> to_json_pointer(const ResultSource& source) {
  std::string text = source.what;
  if (!text.starts_with('/')) {
    std::string_view path = source.what;
    if (path.starts_with('$')) path.remove_prefix(1);
    text.clear();
    for (const char c : path) {
      if (c == '.' || c == '[') {
        text += '/';
      } else if (c != ']' && c != '\'' && c != '"') {
        if (text.empty()) text = "/";
        text += c == '~' ? "~0" : std::string(1, c);
      }
    }
    // "[" after "." would double the slash.
    for (auto at = text.find("//"); at != std::string::npos; at = text.find("//")) {
      text.erase(at, 1);
    }
  }
  try {
    return nlohmann::json_pointer<std::string>(text);
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorKind::usage, fmt::format("\"{}\" is not a path in JSON", source.what),
                source.where, "write $.train.seconds");
  }
}

// An array's elements, or the value itself. Nothing: there is no such value.
std::vector<std::string> values_at(const Json& json, const ResultSource& source) {
  const auto pointer = to_json_pointer(source);
  if (!json.contains(pointer)) return {};
  const Json& value = json.at(pointer);
  std::vector<std::string> values;
  const auto add = [&](const Json& one) {
    values.push_back(one.is_string() ? one.get<std::string>() : json_text(one));
  };
  if (value.is_array()) {
    std::for_each(value.begin(), value.end(), add);
  } else {
    add(value);
  }
  return values;
}

// "key=value" or "key: value"; quotes around the value are dropped.
std::optional<std::string> value_of_key(std::string_view line, std::string_view key) {
  std::string_view rest = trim(line);
  if (rest.starts_with("export ")) rest.remove_prefix(7);
  if (!rest.starts_with(key)) return std::nullopt;
  rest = trim(rest.substr(key.size()));
  if (!rest.starts_with('=') && !rest.starts_with(':')) return std::nullopt;
  rest = trim(rest.substr(1));
  if (rest.size() > 1 && rest.front() == rest.back() &&
      (rest.front() == '"' || rest.front() == '\''))
    rest = rest.substr(1, rest.size() - 2);
  return std::string(rest);
}

}  // namespace

struct ProgramResults::Finder {
  explicit Finder(const ResultSource& of) : source(of), found(source) {
    if (source.from == ResultFrom::line) pattern.emplace(source);
    if (source.from == ResultFrom::json || source.from == ResultFrom::json_line)
      to_json_pointer(source);  // refuses what is none
  }

  bool is_printed() const { return source.file.empty(); }

  void search_line(std::string_view line, std::size_t number) {
    const auto place = [number] { return fmt::format("line {}", number); };
    if (pattern) {
      match_line(line, place);
    } else if (source.from == ResultFrom::key) {
      if (const auto value = value_of_key(line, source.what)) found.add(*value, place);
    } else if (source.from == ResultFrom::json_line && trim(line).starts_with('{')) {
      const Json json = parse_json(line);
      if (!json.is_object()) return;
      auto there = values_at(json, source);
      if (there.empty()) return;
      last_values = std::move(there);
      last_text = line;
      last_line = number;
    }
  }

  void match_line(std::string_view line, const PlaceText& place) {
    std::size_t from = 0;
    while (from <= line.size()) {
      std::optional<PatternMatch> match;
      try {
        match = pattern->next(line, from);
      } catch (const Error& error) {
        if (!may_hold_number(line) && ++given_up <= kMostGivenUp) return;
        found.fail(fmt::format("cannot be searched in {} of {}: {}", place(),
                               format_bytes(static_cast<double>(line.size())), error.what()),
                   "write an expression that has less to try, as \"throughput: {number}\"");
      }
      if (!match) return;
      check_whole(*match, place);
      found.add(match->group, place);
      from = match->end;
    }
  }

  // Elsewhere, whatever the expression would have found is none.
  bool may_hold_number(std::string_view line) const {
    const std::string lower = to_lower(line);
    return found.is_word() || lower.find_first_of("0123456789") != lower.npos ||
           lower.find("nan") != lower.npos || lower.find("inf") != lower.npos;
  }

  void check_whole(const PatternMatch& match, const PlaceText& place) const {
    if (!match.whole.empty()) {
      const bool is_number = to_real(match.whole).has_value();
      found.fail(fmt::format("is \"{}\" ({}), which is only a part of \"{}\"", match.group, place(),
                             match.whole.substr(0, 60)),
                 is_number ? "write {number} for the group, which reads all of it"
                           : "name in the expression what stands beside the number, with a "
                             "\"scale\", or print it as 1234.5");
    }
    if (match.unit.empty() || source.scale != 1) return;
    if (source.name == "test_accuracy" && match.unit == "%") {
      found.fail(fmt::format("is {} % ({}), and must be from 0 to 1", match.group, place()),
                 "of percent, add \"scale\": 0.01");
    }
    if (source.name.ends_with("_seconds") && match.unit != "%") {
      found.fail(fmt::format("is \"{} {}\" ({}), which is not in seconds", match.group, match.unit,
                             place()),
                 "add a \"scale\": 0.001 of milliseconds, 60 of minutes");
    }
  }

  void end_search() {
    if (!last_values.empty()) {
      const JsonDocument each_key_once(fmt::format("the output, line {}", last_line), last_text);
    }
    for (const std::string& value : last_values) {
      found.add(value, [this] { return fmt::format("line {}", last_line); });
    }
  }

  void read_output(std::string_view output) {
    if (output.size() > kMaxOutput) {
      found.fail(fmt::format("is in an output of more than {}", format_bytes(kMaxOutput)),
                 "write it to a file");
    }
    const Json json = parse_json(output);
    if (json.is_discarded()) found.fail("is in an output that is not JSON", "use json_line");
    const JsonDocument each_key_once("the output", output);
    for (const std::string& value : values_at(json, source)) {
      found.add(value, [] { return std::string("the output"); });
    }
  }

  void read_file(const fs::path& file) {
    std::error_code ignored;
    if (!fs::exists(file, ignored)) {
      found.fail(fmt::format("is to be in {}, which is not there", file.string()),
                 "see the run's log");
    }
    if (source.from == ResultFrom::json) {
      const JsonDocument document(file.string(), read_text(file, kMaxFile));
      for (const std::string& value : values_at(document.value(), source)) {
        found.add(value, [&] { return file.filename().string(); });
      }
    } else if (source.from == ResultFrom::csv) {
      read_csv(file);
    } else if (source.from == ResultFrom::key) {
      read_keys(file);
    } else {
      for (const ScalarEvent& event : scalar_events(file, source.what)) {
        found.add(event.value, [&] { return fmt::format("step {}", event.step); });
      }
    }
  }

  void read_csv(const fs::path& file) {
    const std::vector<CsvRow> rows = parse_csv(read_text(file, kMaxFile), file.string());
    if (rows.empty()) return;
    const auto& head = rows.front().cells;
    const auto is_it = [&](const std::string& cell) { return trim(cell) == source.what; };
    const auto column =
        static_cast<std::size_t>(std::find_if(head.begin(), head.end(), is_it) - head.begin());
    if (column == head.size()) {
      throw Error(ErrorKind::input,
                  fmt::format("result {}: there is no column \"{}\"", source.name, source.what),
                  file.string(),
                  head.size() > 1 && nearest(source.what, head) ? suggestion(source.what, head)
                                                                : shown_headings(head));
    }
    if (std::count_if(head.begin(), head.end(), is_it) > 1) {
      throw Error(ErrorKind::input,
                  fmt::format("result {}: two columns are named \"{}\"", source.name, source.what),
                  file.string(), "rename one");
    }
    for (std::size_t i = 1; i < rows.size(); ++i) {
      if (column >= rows[i].cells.size() || trim(rows[i].cells[column]).empty()) continue;
      found.add(rows[i].cells[column], [&] { return fmt::format("line {}", rows[i].line); });
    }
  }

  void read_keys(const fs::path& file) {
    std::size_t number = 0;
    for (const std::string& line : split(read_text(file, kMaxFile), '\n')) {
      ++number;
      if (const auto value = value_of_key(line, source.what)) {
        found.add(*value, [number] { return fmt::format("line {}", number); });
      }
    }
  }

  const ResultSource source;
  std::optional<ResultPattern> pattern;
  ResultNumbers found;
  std::vector<std::string> last_values;  // of json_line
  std::string last_text;
  std::size_t last_line = 0, given_up = 0;
};

ProgramResults::ProgramResults(const std::vector<ResultSource>& sources, const fs::path& folder)
    : output_(std::make_unique<PrintedOutput>(folder)) {
  for (const ResultSource& source : sources) {
    finders_.push_back(std::make_unique<Finder>(source));
    keeps_output_ = keeps_output_ || finders_.back()->is_printed();
  }
}

void check_results(const UserProgram& program) {
  const ProgramResults checked(program.results);
}

ProgramResults::~ProgramResults() = default;

void ProgramResults::append(std::string_view text) {
  if (keeps_output_) output_->add(text);
}

// A progress bar ends its lines by a carriage return.
void ProgramResults::search(std::string_view output) {
  std::size_t number = 0;
  while (!output.empty()) {
    const std::size_t end = std::min(output.find_first_of("\r\n"), output.size());
    ++number;
    for (const auto& finder : finders_) {
      if (finder->is_printed()) finder->search_line(output.substr(0, end), number);
    }
    output.remove_prefix(std::min(end + 1, output.size()));
  }
  for (const auto& finder : finders_) finder->end_search();
}

ProgramReport ProgramResults::finish(
    const std::function<fs::path(const std::string&)>& resolve_file) {
  if (keeps_output_) search(output_->text());
  ProgramReport report;
  for (const auto& finder : finders_) {
    const ResultSource& source = finder->source;
    if (!source.file.empty()) {
      finder->read_file(resolve_file(source.file));
    } else if (source.from == ResultFrom::json) {
      finder->read_output(output_->text());
    }
    if (finder->found.is_word()) {
      report.words[source.name] = finder->found.word();
    } else {
      report.numbers[source.name] = finder->found.numbers();
    }
  }
  return report;
}

}  // namespace paceline
