#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "results/csv.h"
#include "results/import/lines.h"
#include "results/run_record.h"
#include "run/program_run.h"
#include "run/result_pattern.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxOutput = 4 << 20, kMaxFile = 64 << 20;
// The most lines without a digit on which the library gives up on an expression.
constexpr std::size_t kMostGivenUp = 1000;

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
    throw usage_error(fmt::format("\"{}\" is not a path in JSON", source.what), source.where,
                      "write $.train.seconds");
  }
}

// An array's elements, or the value itself. Nothing: there is no such value.
std::vector<std::string> values_at(const Json& json, const ResultSource& source) {
  const auto pointer = to_json_pointer(source);
  const Json* found = nullptr;
  try {
    found = &json.at(pointer);
  } catch (const Json::exception&) {  // no such key, or an index that is none of this list
    return {};
  }
  const Json& value = *found;
  std::vector<std::string> values;
  const auto add = [&](const Json& one) {
    values.push_back(one.is_string() ? one.get<std::string>() : json_text(one));
  };
  if (value.is_array()) {
    std::ranges::for_each(value, add);
  } else {
    add(value);
  }
  return values;
}

struct PrintedLine {
  std::size_t number = 0;
  LineFault fault = LineFault::none;
  bool has_codes = false;  // control characters that shown_line() does not know
  std::string text = {};
  std::string_view units = {};  // the line above, if it has nothing but units: "(ns/day) (hour/ns)"

  std::string place() const { return fmt::format("line {}", number); }
};

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

constexpr std::size_t kMostInMemory = 32 << 20;  // of what was printed

}  // namespace

PrintedOutput::PrintedOutput(std::filesystem::path folder) : folder_(std::move(folder)) {}

PrintedOutput::~PrintedOutput() {
  if (mapped_ != nullptr) munmap(mapped_, bytes_);
}

void PrintedOutput::add(std::string_view text) noexcept {
  try {
    if (!is_lost_) is_lost_ = !spill(text);
  } catch (const std::exception&) {
    is_lost_ = true;
  }
  bytes_ += text.size();
}

// False: there is no room.
bool PrintedOutput::spill(std::string_view text) {
  if (!file_ && memory_.size() + text.size() <= kMostInMemory) {
    memory_ += text;
    return true;
  }
  if (!file_) {
    file_ = std::make_unique<UnlinkedFile>(folder_);
    if (!file_->write(0, memory_.data(), memory_.size())) return false;
    std::string().swap(memory_);
  }
  return file_->write(static_cast<std::int64_t>(bytes_), text.data(), text.size());
}

std::string_view PrintedOutput::text() {
  const auto fail = [&](const std::string& why) {
    throw input_error(fmt::format("{} of output cannot be searched for results: {}",
                                  format_bytes(static_cast<double>(bytes_)), why),
                      folder_.string(), "make room, print less, or write the results to a file");
  };
  if (is_lost_) fail("there was no room to keep it");
  if (!file_) return memory_;
  if (mapped_ == nullptr) {
    void* const place = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file_->descriptor(), 0);
    if (place == MAP_FAILED) fail(std::strerror(errno));
    mapped_ = place;
  }
  return {static_cast<const char*>(mapped_), bytes_};
}

struct ProgramResults::Finder {
  explicit Finder(const ResultSource& of) : source(of), found(source) {
    if (source.from == ResultFrom::line) pattern.emplace(source);
    if (!source.among.empty()) among.emplace(compiled_pattern(source.among, source.where));
    for (const std::string& end : source.not_between) {
      ends.push_back(compiled_pattern(end, source.where));
    }
    if (source.from == ResultFrom::json || source.from == ResultFrom::json_line) {
      const auto pointer = to_json_pointer(source);  // refuses what is none
      if (!pointer.empty()) last_key = fmt::format("\"{}\"", pointer.back());
    }
    if (const std::string unit = foreign_in_name(source); !unit.empty()) {
      throw usage_error(fmt::format("result {} is of \"{}\", whose \"{}\" may be another unit",
                                    source.name, source.what, unit),
                        source.where, "add a \"scale\": 0.001 of milliseconds, 1 if it is none");
    }
  }

  bool is_printed() const { return source.file.empty(); }

  void search_line(const PrintedLine& line) {
    if (pattern) {
      match_line(line);
    } else if (source.from == ResultFrom::key) {
      const auto value = value_of_key(line.text, source.what);
      if (!value) return;
      check_shown(line);
      found.add(*value, [&] { return line.place(); });
    } else if (source.from == ResultFrom::json_line && trim(line.text).starts_with('{')) {
      const Json json = parse_json(line.text);
      const bool is_json = json.is_object();
      auto there = is_json ? values_at(json, source) : std::vector<std::string>();
      // What an earlier line says is stale then.
      if (!is_json) doubt(line);
      if (there.empty()) return;
      broken_text.clear();
      last_values = std::move(there);
      last_text = line.text;
      last_line = line.number;
    } else if (source.from == ResultFrom::json_line && line.text.find(last_key) != line.text.npos &&
               line.text.find('{') != line.text.npos) {
      doubt(line);  // an object behind other text, which may be the last one
    }
  }

  void doubt(const PrintedLine& line) {
    broken_text = fmt::format("{} (\"{}\")", line.place(), cut_text(trim(line.text)));
  }

  void match_line(const PrintedLine& line) {
    const std::string_view text = line.text;
    const bool was_off = is_off;
    if (!ends.empty()) is_off = !(is_off && ends[1].find(text)) && (is_off || ends[0].find(text));
    if (among && !among->find(text)) return;
    if (was_off) {
      ++found.left_out;
      return;
    }
    std::size_t from = 0;
    while (from <= text.size()) {
      std::optional<PatternMatch> match;
      try {
        match = pattern->next(text, from);
      } catch (const Error& error) {
        if (!may_hold_number(text) && ++given_up <= kMostGivenUp) return;
        found.fail(fmt::format("cannot be searched in {} of {}: {}", line.place(),
                               format_bytes(static_cast<double>(text.size())), error.what()),
                   "write an expression that has less to try, as \"throughput: {number}\"");
      }
      if (!match) {
        if (among && from == 0) {
          constexpr std::size_t kMostShown = 240;
          found.fail(fmt::format("is not in {}, where it belongs: \"{}\"", line.place(),
                                 trim(text).substr(0, kMostShown)),
                     "write the expressions of the result for this form of the line");
        }
        return;
      }
      check_shown(line);
      check_beside(*match, line);
      check_above(*match, line);
      found.add(match->group, [&] { return line.place(); });
      from = match->end;
    }
  }

  // Elsewhere, whatever the expression would have found is none.
  bool may_hold_number(std::string_view line) const {
    const std::string lower = to_lower(line);
    return found.is_word() || lower.find_first_of("0123456789") != lower.npos ||
           lower.find("nan") != lower.npos || lower.find("inf") != lower.npos;
  }

  // Of a line that holds a number.
  void check_shown(const PrintedLine& line) const {
    if (line.fault == LineFault::met) {
      found.fail(fmt::format("is in a line that a launcher passed on in parts ({}), between which "
                             "another rank may have printed: \"{}\"",
                             line.place(), cut_text(line.text)),
                 "print whole lines: python3 -u, or flush after each one");
    }
    if (line.fault == LineFault::cut) {
      found.fail(fmt::format("is in a line without an end ({}), which may be cut off: \"{}\"",
                             line.place(), cut_text(line.text)),
                 "print a line break behind it");
    }
    if (line.has_codes) {
      found.fail(fmt::format("is in a line with control characters ({}), of which a terminal may "
                             "show another number",
                             line.place()),
                 "print it on a line of its own, without them");
    }
  }

  void check_beside(const PatternMatch& match, const PrintedLine& line) const {
    if (match.beside.empty()) return;
    found.fail(fmt::format("is \"{}\" ({}), and \"{}\" beside it may change what it means",
                           trim(match.group), line.place(), cut_text(match.beside)),
               match.beside == "%"
                   ? "of percent, add \"scale\": 0.01"
                   : "write {number} for the group, name in the expression what stands beside it, "
                     "or add a \"scale\" (0.001 of milliseconds, 1 if it changes nothing)");
  }

  // A unit above the number, as in a table, is held to the same as one beside it.
  void check_above(const PatternMatch& match, const PrintedLine& line) const {
    const auto first = static_cast<std::size_t>(match.group.data() - line.text.data());
    const std::size_t end = line.units.find(')', first);
    const std::size_t begin = end == line.units.npos ? end : line.units.rfind('(', end);
    if (source.has_scale || begin >= first + match.group.size()) return;
    const std::string_view unit = line.units.substr(begin + 1, end - begin - 1);
    const std::string beside = fmt::format("1 ({})", unit);
    if (!NumberContext(source, false).behind(beside, 0, 1)) return;
    found.fail(
        fmt::format("is \"{}\" ({}), and the unit above it is {}", trim(match.group), line.place(),
                    cut_text(unit)),
        fmt::format("add \"unit\": \"{}\" and \"better\": \"more\" or \"less\", or a \"scale\"",
                    cut_text(unit)));
  }

  void end_search() {
    if (!broken_text.empty()) {
      found.fail(fmt::format("may be in {}, which is not JSON", broken_text),
                 "print one whole object last, on a line of its own, with null instead of NaN");
    }
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
    // LineFault::cut marks a last line without an end, which of JSON is whole all the same.
    if (output.ends_with('\n') &&
        output.substr(0, output.size() - 1).ends_with(static_cast<char>(LineFault::cut))) {
      output.remove_suffix(2);
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
    const auto column = static_cast<std::size_t>(std::ranges::find_if(head, is_it) - head.begin());
    if (column == head.size()) {
      throw input_error(
          fmt::format("result {}: there is no column \"{}\"", source.name, source.what),
          file.string(),
          head.size() > 1 && nearest(source.what, head) ? suggestion(source.what, head)
                                                        : shown_headings(head));
    }
    if (std::ranges::count_if(head, is_it) > 1) {
      throw input_error(
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
      if (const auto value = value_of_key(without_byte_order_mark(line), source.what)) {
        found.add(*value, [number] { return fmt::format("line {}", number); });
      }
    }
  }

  const ResultSource source;
  std::optional<ResultPattern> pattern;
  std::optional<Pattern> among;
  std::vector<Pattern> ends;  // of what not_between leaves out
  bool is_off = false;        // within it
  ResultNumbers found;
  std::vector<std::string> last_values;  // of json_line
  std::string last_key, last_text, broken_text;
  std::size_t last_line = 0, given_up = 0;
};

ProgramResults::ProgramResults(const std::vector<ResultSource>& sources, const fs::path& folder)
    : output_(std::make_unique<PrintedOutput>(folder)) {
  for (const ResultSource& source : sources) {
    finders_.push_back(std::make_unique<Finder>(source));
  }
}

void check_results(const UserProgram& program) {
  const ProgramResults checked(program.results);
}

ProgramResults::~ProgramResults() = default;

void ProgramResults::append(std::string_view text) {
  output_->add(text);
}

void ProgramResults::append(std::string_view line, LineFault fault) {
  append(line);
  const char mark = static_cast<char>(fault);
  if (fault != LineFault::none) append({&mark, 1});
}

// A progress bar ends its lines by a carriage return.
void ProgramResults::search(std::string_view output) {
  thread_local const Pattern of_units(R"(^\s*+(?:\([^()]++\)\s*+)+$)");
  std::size_t number = 0;
  std::string units;
  while (!output.empty()) {
    const std::size_t end = std::min(output.find_first_of("\r\n"), output.size());
    ++number;
    std::string_view text = without_byte_order_mark(output.substr(0, end));
    PrintedLine line{.number = number};
    for (const LineFault fault : {LineFault::cut, LineFault::met}) {
      if (!text.ends_with(static_cast<char>(fault))) continue;
      line.fault = fault;
      text.remove_suffix(1);
    }
    line.text = shown_line(text, line.has_codes);
    line.units = units;
    for (const auto& finder : finders_) {
      if (finder->is_printed()) finder->search_line(line);
    }
    units = of_units.find(line.text) ? line.text : "";
    output.remove_prefix(std::min(end + 1, output.size()));
  }
  for (const auto& finder : finders_) finder->end_search();
}

ProgramReport ProgramResults::finish(
    const std::function<fs::path(const std::string&)>& resolve_file, int replicas) {
  if (!finders_.empty()) search(output_->text());
  ProgramReport report;
  for (const auto& finder : finders_) {
    const ResultSource& source = finder->source;
    if (!source.unit.empty() || result_name(source).name != source.name) report.rate = &source;
    if (!source.file.empty()) {
      finder->read_file(resolve_file(source.file));
    } else if (source.from == ResultFrom::json) {
      finder->read_output(output_->text());
    }
    if (finder->found.is_word()) {
      report.words[source.name] = finder->found.word();
    } else {
      std::vector<double>& numbers = report.numbers[source.name] = finder->found.numbers();
      if (finder->found.all().size() > 1) report.each[source.name] = finder->found.all();
      if (source.name == "step_seconds") report.steps_left_out = finder->found.left_out;
      if (source.per_replica) {
        for (double& number : numbers) number *= replicas;
      }
    }
  }
  return report;
}

}  // namespace paceline
