#include "results/import/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "results/step_samples.h"

namespace paceline {

std::vector<TextLine> split_lines(std::string_view text) {
  std::vector<TextLine> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back({lines.size() + 1, line});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::string_view> split_words(std::string_view line) {
  constexpr std::string_view kBlanks = " \t";
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(kBlanks); at < line.size();) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

const Json& find_member(const Json& json, const char* key) {
  static const Json none;
  const auto it = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && it != json.end() ? *it : none;
}

std::string text_or_empty(const Json& json) {
  return json.is_string() ? json.get<std::string>() : "";
}

std::optional<double> number_or_empty(const Json& json) {
  return json.is_number() ? std::optional(json.get<double>()) : std::nullopt;
}

ObjectText object_at_begin(std::string_view text) {
  static const std::string kNull = json_text(Json());
  ObjectText object;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (depth == 0 && text[i] != '{' && text[i] != ' ') return {};
    const std::size_t begin = i;
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
      }
    }
    std::string_view part = text.substr(begin, i + 1 - begin);
    for (const std::string_view word : {"NaN", "-Infinity", "Infinity"}) {
      if (!text.substr(begin).starts_with(word)) continue;
      object.has_not_finite = true;
      part = kNull;
      i += word.size() - 1;
      break;
    }
    object.text += part;
    depth += part == "{" ? 1 : part == "}" ? -1 : 0;
    if (depth > 0 || part == " ") continue;
    return object;
  }
  return {};
}

std::string place_in(const ForeignFile& file, std::size_t line) {
  return fmt::format("{}:{}", file.name, line);
}

void refuse_line(const ForeignFile& file, std::size_t line, const std::string& what,
                 const std::string& fix) {
  throw input_error(what, place_in(file, line), fix);
}

double positive_number(std::string_view word, const std::string& what, const ForeignFile& file,
                       std::size_t line) {
  const auto number = to_real(word);
  if (number && *number > 0) return *number;
  refuse_line(file, line,
              fmt::format("the {} \"{}\" is not a positive number", what, word.substr(0, 40)),
              "remove the damaged line or import the complete file");
}

void check_width(const std::vector<std::string_view>& words,
                 const std::vector<std::string>& headings, std::size_t& width,
                 const ForeignFile& file, std::size_t line) {
  if (width == 0) width = std::max(words.size(), headings.size());
  if (words.size() == width) return;
  refuse_line(file, line,
              fmt::format("the row has {} values, but there are {} columns", words.size(), width),
              "take other text out of the rows, or import the complete output");
}

bool begins_with_count(const std::vector<std::string_view>& words) {
  return !words.empty() && words[0].find_first_not_of("0123456789") == std::string_view::npos;
}

void set_replicas(RunRecord& record, int count) {
  record.layout.gpus = count;
  record.parameters.set("gpus", std::int64_t{count});
}

void merge_repeated_sizes(std::vector<CollectiveRow>& rows) {
  struct Place {
    std::size_t row = 0;
    std::vector<double> seconds;
  };
  std::map<std::pair<std::int64_t, std::string>, Place> places;
  std::vector<CollectiveRow> merged;
  for (const CollectiveRow& row : rows) {
    const auto [it, is_new] = places.try_emplace({row.bytes, row.label}, Place{merged.size(), {}});
    it->second.seconds.push_back(row.seconds);
    if (is_new) {
      merged.push_back(row);
      continue;
    }
    CollectiveRow& first = merged[it->second.row];
    first.wrong = std::max(first.wrong, row.wrong);
    if (first.first_wrong.empty()) first.first_wrong = row.first_wrong;
  }
  for (auto& [key, place] : places) {
    std::vector<double>& seconds = place.seconds;
    if (seconds.size() < 2) continue;
    std::sort(seconds.begin(), seconds.end());
    CollectiveRow& row = merged[place.row];
    const double before = row.seconds;
    row.samples = static_cast<std::int64_t>(seconds.size());
    row.seconds = quantile(seconds, 0.5);
    row.seconds_min = seconds.front();
    row.seconds_p95 = quantile(seconds, 0.95);
    for (auto* rate : {&row.algbw_bytes_per_second, &row.busbw_bytes_per_second}) {
      if (*rate) **rate *= before / row.seconds;
    }
  }
  rows = std::move(merged);
}

void keep_rows(CollectiveFacts& facts, std::vector<std::string>& notes) {
  constexpr std::size_t kMostRows = 100;  // of some 250 bytes, in a record of 32 KB
  const std::size_t all = facts.rows.size(), every = (all + kMostRows - 1) / kMostRows;
  if (every < 2) return;
  std::vector<CollectiveRow> kept;
  for (std::size_t i = 0; i < all; i += every) kept.push_back(std::move(facts.rows[i]));
  facts.rows = std::move(kept);
  notes.push_back(fmt::format("of {} sizes, {} are kept", all, facts.rows.size()));
}

void report_failed_checks(CollectiveFacts& facts, const std::string& verdict,
                          std::vector<std::string>& notes) {
  constexpr std::size_t kShown = 3;  // the others would fill the record
  std::vector<std::string> shown;
  std::size_t failed = 0;
  for (CollectiveRow& row : facts.rows) {
    if (row.first_wrong.empty()) continue;
    row.first_wrong =
        ++failed > kShown ? "" : fmt::format("{} bytes: {}", row.bytes, row.first_wrong);
    if (failed <= kShown) shown.push_back(row.first_wrong);
  }
  if (failed == 0 && verdict.empty()) return;
  const std::string what =
      failed > 0 ? fmt::format("the data check of {} of {} sizes failed", failed, facts.rows.size())
                 : fmt::format("the output says \"{}\"", verdict);
  facts.note += "; " + what;
  notes.push_back(fmt::format("warning: {}{}: {}{}; do not rely on these times", facts.operation,
                              facts.placement.empty() ? "" : " " + facts.placement, what,
                              shown.empty() ? "" : " (" + join(shown, ", ") + ")"));
}

ElementType element_type(std::string_view foreign) {
  struct Known {
    const char* names;  // as other tools write it
    ElementType type;
  };
  static const Known kKnown[] = {{"float float32 mpi_float", {"f32", 4}},
                                 {"half float16", {"f16", 2}},
                                 {"bfloat16", {"bf16", 2}},
                                 {"double float64 mpi_double", {"f64", 8}},
                                 {"int int32 mpi_int", {"i32", 4}},
                                 {"uint8 mpi_char mpi_byte byte", {"u8", 1}},
                                 {"int8 char bool fp8_e4m3 fp8_e5m2 f8e4m3 f8e5m2", {"", 1}},
                                 {"uint32", {"", 4}},
                                 {"int64 uint64 long", {"", 8}}};
  const std::string name = to_lower(foreign);
  for (const Known& known : kKnown) {
    for (const std::string& each : split(known.names, ' ')) {
      if (each != name) continue;
      return known.type.name.empty() ? ElementType{name, known.type.bytes} : known.type;
    }
  }
  return {std::string(foreign), 0};
}

}  // namespace paceline
