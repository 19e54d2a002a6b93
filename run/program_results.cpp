#define PCRE2_CODE_UNIT_WIDTH 8
#include "run/program_results.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "engine/core/error.h"
#include "engine/core/json_text.h"
#include "engine/core/text.h"
#include "engine/input/formats/tfrecord.h"
#include "engine/train/events/event.pb.h"
#include "results/csv.h"

namespace paceline {

namespace program_results {

// A number as it was found, before it is known to be one.
struct Found {
  std::string text;
  std::string where;  // "line 17", "row 3"
};

// Runs compiled to machine code where the library can, as a log may have gigabytes.
class Pattern {
 public:
  explicit Pattern(const ResultSource& source) {
    int code = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.what.data()), source.what.size(),
                              PCRE2_UTF | PCRE2_MATCH_INVALID_UTF, &code, &offset, nullptr));
    if (!code_) {
      std::array<unsigned char, 256> text{};
      pcre2_get_error_message(code, text.data(), text.size());
      fail(source, fmt::format("is not a regular expression: {} at character {}",
                               reinterpret_cast<const char*>(text.data()), offset + 1));
    }
    std::uint32_t groups = 0;
    pcre2_pattern_info(code_.get(), PCRE2_INFO_CAPTURECOUNT, &groups);
    if (groups != 1) {
      fail(source, fmt::format("has {} groups, and needs one around the number", groups));
    }
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
    match_.reset(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  }

  // Where the group's text stands; empty: no match from `from` on. `from` becomes the match's end.
  std::optional<std::string_view> next(std::string_view line, std::size_t& from) {
    const int count = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(line.data()),
                                  line.size(), from, 0, match_.get(), nullptr);
    if (count < 1) return std::nullopt;
    const PCRE2_SIZE* at = pcre2_get_ovector_pointer(match_.get());
    from = std::max(at[1], at[0] + 1);
    if (count < 2) return std::string_view();
    return line.substr(at[2], at[3] - at[2]);
  }

 private:
  [[noreturn]] static void fail(const ResultSource& source, const std::string& what) {
    throw Error(ErrorKind::usage, fmt::format("\"{}\" {}", source.what, what), source.where,
                "write \"throughput: ([0-9.]+)\"");
  }

  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  std::unique_ptr<pcre2_code, Free> code_;
  std::unique_ptr<pcre2_match_data, Free> match_;
};

}  // namespace program_results

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxLine = 64 << 10, kMaxOutput = 4 << 20, kMaxFile = 64 << 20;
constexpr std::size_t kMaxNumbers = 1'000'000;

using program_results::Found;
using program_results::Pattern;

// "$.train.time", "$.epochs[2].seconds" and "/train/time" as a JSON pointer.
nlohmann::json_pointer<std::string> pointer_of(const ResultSource& source) {
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

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

// An array's elements, or the value itself. Nothing: there is no such value.
std::vector<Found> found_in(const Json& json, const ResultSource& source,
                            const std::string& where) {
  const auto pointer = pointer_of(source);
  if (!json.contains(pointer)) return {};
  const Json& value = json.at(pointer);
  std::vector<Found> found;
  if (!value.is_array()) return {{text_of(value), where}};
  for (const Json& one : value) found.push_back({text_of(one), where});
  return found;
}

std::string limited_file(const fs::path& file) {
  return read_text(file, kMaxFile);
}

std::vector<Found> found_in_csv(const fs::path& file, const ResultSource& source) {
  const std::vector<CsvRow> rows = parse_csv(limited_file(file), file.string());
  std::vector<Found> found;
  if (rows.empty()) return found;
  const auto& head = rows.front().cells;
  const auto column = static_cast<std::size_t>(
      std::find_if(head.begin(), head.end(),
                   [&](const std::string& cell) { return trim(cell) == source.what; }) -
      head.begin());
  if (column == head.size()) {
    throw Error(ErrorKind::input,
                fmt::format("result {}: there is no column \"{}\"", source.name, source.what),
                file.string(), suggestion(source.what, head));
  }
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (column >= rows[i].cells.size() || trim(rows[i].cells[column]).empty()) continue;
    found.push_back({rows[i].cells[column], fmt::format("line {}", rows[i].line)});
  }
  return found;
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

std::vector<Found> found_in_keys(const fs::path& file, const ResultSource& source) {
  std::vector<Found> found;
  std::size_t number = 0;
  for (const std::string& line : split(limited_file(file), '\n')) {
    ++number;
    if (const auto value = value_of_key(line, source.what)) {
      found.push_back({*value, fmt::format("line {}", number)});
    }
  }
  return found;
}

double number_of(const wire::Summary::Value& value) {
  if (value.value_case() == wire::Summary::Value::kSimpleValue) {
    return static_cast<double>(value.simple_value());
  }
  const wire::Tensor& tensor = value.tensor();
  if (tensor.float_val_size() > 0) return static_cast<double>(tensor.float_val(0));
  if (tensor.double_val_size() > 0) return tensor.double_val(0);
  const std::string& bytes = tensor.tensor_content();
  if (tensor.dtype() == 1 && bytes.size() == sizeof(float)) {
    float number = 0;
    std::copy_n(bytes.data(), sizeof number, reinterpret_cast<char*>(&number));
    return static_cast<double>(number);
  }
  if (tensor.dtype() == 2 && bytes.size() == sizeof(double)) {
    double number = 0;
    std::copy_n(bytes.data(), sizeof number, reinterpret_cast<char*>(&number));
    return number;
  }
  return NAN;
}

// Of a file, or of all event files below a folder. A file that is still written to may end in the
// middle of a record.
std::vector<Found> found_in_events(const fs::path& place, const ResultSource& source) {
  std::vector<fs::path> files;
  if (fs::is_directory(place)) {
    for (const auto& entry : fs::recursive_directory_iterator(place)) {
      const bool events = entry.path().filename().string().find("tfevents") != std::string::npos;
      if (events && entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
  } else {
    files.push_back(place);
  }
  std::vector<std::pair<std::int64_t, Found>> found;
  for (const fs::path& file : files) {
    const TfRecordFile records(file, 0, TfRecordFile::OnDamage::keep_what_precedes);
    std::string data;
    for (std::size_t i = 0; i < records.records(); ++i) {
      records.read(i, data);
      wire::Event event;
      if (!event.ParseFromString(data)) continue;
      for (const auto& value : event.summary().value()) {
        if (value.tag() != source.what) continue;
        found.push_back(
            {event.step(),
             {fmt::format("{}", number_of(value)), fmt::format("step {}", event.step())}});
      }
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Found> in_order;
  for (auto& [step, one] : found) in_order.push_back(std::move(one));
  return in_order;
}

double picked(std::vector<double> numbers, Pick pick) {
  switch (pick) {
    case Pick::only:
    case Pick::first:
      return numbers.front();
    case Pick::last:
      return numbers.back();
    case Pick::mean:
      return std::accumulate(numbers.begin(), numbers.end(), 0.0) /
             static_cast<double>(numbers.size());
    case Pick::median: {
      std::sort(numbers.begin(), numbers.end());
      const std::size_t middle = numbers.size() / 2;
      return numbers.size() % 2 == 1 ? numbers[middle]
                                     : (numbers[middle - 1] + numbers[middle]) / 2;
    }
    case Pick::least:
      return *std::min_element(numbers.begin(), numbers.end());
    case Pick::most:
      return *std::max_element(numbers.begin(), numbers.end());
  }
  return NAN;
}

const ResultName& name_of(const ResultSource& source) {
  const auto& names = result_names();
  return *std::find_if(names.begin(), names.end(),
                       [&](const ResultName& one) { return one.name == source.name; });
}

std::string first_places(const std::vector<Found>& found) {
  std::vector<std::string> places;
  for (const Found& one : found) {
    if (places.size() < 3) places.push_back(one.where);
  }
  places = each_once(places);
  return fmt::format("{}{}", join(places, ", "), found.size() > 3 ? ", ..." : "");
}

std::string described(const ResultSource& source) {
  const char* kinds[] = {"line", "json", "json_line", "csv", "key", "events"};
  return fmt::format("{} \"{}\"", kinds[static_cast<std::size_t>(source.from)], source.what);
}

}  // namespace

struct ProgramResults::Finder {
  explicit Finder(const ResultSource& of) : source(of) {
    if (source.from == ResultFrom::line) pattern.emplace(source);
    if (source.from == ResultFrom::json || source.from == ResultFrom::json_line)
      pointer_of(source);  // refuses what is none
  }

  void hear_line(std::string_view line, std::size_t number) {
    const auto add = [&](std::string_view text) {
      if (found.size() < kMaxNumbers) {
        found.push_back({std::string(text), fmt::format("line {}", number)});
      }
    };
    if (pattern) {
      std::size_t from = 0;
      while (from <= line.size()) {
        const auto text = pattern->next(line, from);
        if (!text) return;
        add(*text);
      }
    } else if (source.from == ResultFrom::key && source.file.empty()) {
      if (const auto value = value_of_key(line, source.what)) add(*value);
    } else if (source.from == ResultFrom::json_line && trim(line).starts_with('{')) {
      const Json json = Json::parse(line, nullptr, false);
      if (!json.is_object()) return;
      auto there = found_in(json, source, fmt::format("line {}", number));
      if (!there.empty()) found = std::move(there);
    }
  }

  [[noreturn]] void fail(const std::string& what, const std::string& fix) const {
    throw Error(ErrorKind::input, fmt::format("result {} {}", source.name, what), described(source),
                fix);
  }

  void check_found() const {
    if (!found.empty()) return;
    fail(source.file.empty() ? "was not printed" : "is not in " + source.file, "see the run's log");
  }

  // Printed by each rank, perhaps, but the same.
  std::string word() const {
    check_found();
    const std::vector<std::string> known = split(name_of(source).words, '|');
    const std::string text = to_lower(trim(found.front().text));
    if (std::find(known.begin(), known.end(), text) == known.end()) {
      fail(fmt::format("is \"{}\" ({})", text.substr(0, 60), found.front().where),
           "known: " + join(known, ", "));
    }
    for (const Found& one : found) {
      if (to_lower(trim(one.text)) == text) continue;
      fail(fmt::format("was found with different values ({})", first_places(found)),
           "see the run's log");
    }
    return text;
  }

  std::vector<double> numbers() const {
    check_found();
    std::vector<double> all;
    for (const Found& one : found) {
      const auto number = to_real(trim(one.text));
      if (!number) {
        const std::string text = to_lower(trim(one.text));
        const bool infinite =
            text.find("nan") != std::string::npos || text.find("inf") != std::string::npos;
        fail(fmt::format("is \"{}\" ({}), {}", one.text.substr(0, 60), one.where,
                         infinite ? "which is not finite" : "which is not a number"),
             "see the run's log");
      }
      const bool is_amount = source.name != "test_accuracy" && source.name != "train_loss";
      if (is_amount && *number <= 0) {
        fail(fmt::format("is {} ({}), and must be above 0", one.text.substr(0, 60), one.where),
             "see the run's log");
      }
      all.push_back(*number * source.scale);
      if (source.name == "test_accuracy" && (all.back() < 0 || all.back() > 1)) {
        fail(fmt::format("is {} ({}), and must be from 0 to 1", one.text.substr(0, 60), one.where),
             "of percent, add \"scale\": 0.01");
      }
    }
    if (name_of(source).is_list) return all;
    if (all.size() > 1 && source.pick == Pick::only) {
      fail(fmt::format("was found {} times ({})", all.size(), first_places(found)),
           "add \"pick\": \"last\", or first, mean, median, min, max");
    }
    return {picked(std::move(all), source.pick)};
  }

  const ResultSource source;
  std::optional<Pattern> pattern;
  std::vector<Found> found;
};

ProgramResults::ProgramResults(const std::vector<ResultSource>& sources) {
  for (const ResultSource& source : sources) {
    finders_.push_back(std::make_unique<Finder>(source));
    keeps_output_ = keeps_output_ || (source.from == ResultFrom::json && source.file.empty());
  }
}

void check_results(const UserProgram& program) {
  const ProgramResults checked(program.results);
}

ProgramResults::~ProgramResults() = default;

void ProgramResults::take_line() {
  ++lines_;
  for (const auto& finder : finders_) finder->hear_line(line_, lines_);
  line_.clear();
}

// A progress bar ends its lines by a carriage return.
void ProgramResults::hear(std::string_view text) {
  if (keeps_output_ && !output_is_cut_) {
    output_ += text;
    output_is_cut_ = output_.size() > kMaxOutput;
  }
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of("\r\n"), text.size());
    line_ += text.substr(0, std::min(end, kMaxLine - std::min(kMaxLine, line_.size())));
    if (end == text.size()) return;
    take_line();
    text.remove_prefix(end + 1);
  }
}

ProgramReport ProgramResults::finish(const std::function<fs::path(const std::string&)>& file_of) {
  if (!line_.empty()) take_line();
  ProgramReport report;
  for (const auto& finder : finders_) {
    const ResultSource& source = finder->source;
    if (source.from == ResultFrom::json && source.file.empty()) {
      if (output_is_cut_) {
        finder->fail(fmt::format("is in an output of more than {}", format_bytes(kMaxOutput)),
                     "write it to a file");
      }
      const Json json = Json::parse(output_, nullptr, false);
      if (json.is_discarded()) finder->fail("is in an output that is not JSON", "use json_line");
      finder->found = found_in(json, source, "the output");
    } else if (!source.file.empty()) {
      const fs::path file = file_of(source.file);
      std::error_code ignored;
      if (!fs::exists(file, ignored)) {
        finder->fail(fmt::format("is to be in {}, which is not there", file.string()),
                     "see the run's log");
      }
      if (source.from == ResultFrom::json) {
        const Json json = Json::parse(limited_file(file), nullptr, false);
        if (json.is_discarded())
          finder->fail("is in a file that is not JSON", "see " + file.string());
        finder->found = found_in(json, source, file.filename().string());
      } else if (source.from == ResultFrom::csv) {
        finder->found = found_in_csv(file, source);
      } else if (source.from == ResultFrom::key) {
        finder->found = found_in_keys(file, source);
      } else {
        finder->found = found_in_events(file, source);
      }
    }
    if (name_of(source).words.empty()) {
      report.numbers[source.name] = finder->numbers();
    } else {
      report.words[source.name] = finder->word();
    }
  }
  return report;
}

}  // namespace paceline
