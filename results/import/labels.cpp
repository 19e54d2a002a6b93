#include "results/import/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "engine/core/utf8.h"
#include "results/import/lines.h"

namespace paceline {

namespace {

constexpr std::size_t kLongestLabel = 160;
constexpr int kMostLabels = 3;  // one before the other

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Where a text as "dddd-dd-dd" ends: d is a digit, other characters are themselves. 0: not there.
std::size_t end_of_shape(std::string_view line, std::string_view shape, std::size_t at = 0) {
  if (line.size() < at + shape.size()) return 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const char c = line[at + i];
    if (shape[i] == 'd' ? !is_digit(c) : shape[i] == 'l' ? !is_letter(c) : c != shape[i]) return 0;
  }
  return at + shape.size();
}

// A label is followed by a blank, or by nothing.
std::size_t with_blank(std::string_view line, std::size_t end) {
  if (end == 0 || end == line.size()) return end;
  return line[end] == ' ' ? end + 1 : 0;
}

// "2026-03-01T10:00:00.123456789Z ", "2026-03-01 10:00:00,123 ", "Nov 25 21:00:00 "
std::size_t end_of_time(std::string_view line) {
  std::size_t end = 0;
  for (const char* shape : {"dddd-dd-ddTdd:dd:dd", "dddd-dd-dd dd:dd:dd", "lll dd dd:dd:dd",
                            "lll  d dd:dd:dd", "dd:dd:dd"}) {
    if (end == 0) end = end_of_shape(line, shape);
  }
  if (end == 0) return 0;
  if (end < line.size() && (line[end] == '.' || line[end] == ',')) {
    do {
      ++end;
    } while (end < line.size() && is_digit(line[end]));
  }
  if (end < line.size() && line[end] == 'Z') {
    ++end;
  } else if (end < line.size() && (line[end] == '+' || line[end] == '-')) {
    const std::size_t zone =
        std::max(end_of_shape(line, "dd:dd", end + 1), end_of_shape(line, "dddd", end + 1));
    end = zone;
  }
  return with_blank(line, end);
}

// "[1,0]<stdout>:", also with a time before it.
std::size_t end_of_tag(std::string_view line) {
  line = line.substr(0, kLongestLabel);
  for (const std::string_view tag : {"<stdout>:", "<stderr>:", "<stddiag>:"}) {
    if (const std::size_t at = line.find(tag); at != line.npos) return at + tag.size();
  }
  return 0;
}

// "[pod/train-0/main] ", "[default0]:", "[0] "
std::size_t end_of_bracket(std::string_view line) {
  line = line.substr(0, kLongestLabel);
  if (!line.starts_with('[')) return 0;
  const std::size_t end = line.find_first_of("[]{}\"", 1);
  if (end == line.npos || line[end] != ']' || end == 1) return 0;
  if (end + 1 < line.size() && line[end + 1] == ':') return end + 2;
  return with_blank(line, end + 1);
}

// "train-1  | "
std::size_t end_of_bar(std::string_view line) {
  const std::size_t end = line.substr(0, kLongestLabel).find_first_of(" |,#\"{");
  if (end == line.npos || end == 0 || line[end] == ',') return 0;
  const std::size_t bar = line.find_first_not_of(' ', end);
  return bar == line.npos || line[bar] != '|' ? 0 : with_blank(line, bar + 1);
}

// "0: ", " 12: ", "node-a: "
std::size_t end_of_name(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(' ');
  if (begin == line.npos) return 0;
  std::size_t end = begin;
  const bool is_number = is_digit(line[begin]);
  if (!is_number && begin > 0) return 0;
  while (end < std::min(line.size(), kLongestLabel) &&
         (is_digit(line[end]) ||
          (!is_number && (is_letter(line[end]) ||
                          std::string_view("-_.").find(line[end]) != std::string_view::npos)))) {
    ++end;
  }
  if (end == begin || end >= line.size() || line[end] != ':') return 0;
  return with_blank(line, end + 1);
}

using EndOfLabel = std::size_t (*)(std::string_view line);
constexpr EndOfLabel kLabels[] = {end_of_time, end_of_tag, end_of_bracket, end_of_bar, end_of_name};

// A banner of a launcher need not have it.
bool is_common(const std::vector<TextLine>& lines, EndOfLabel end) {
  std::size_t all = 0, labelled = 0;
  for (const TextLine& line : lines) {
    if (line.text.find_first_not_of(" \t") == line.text.npos) continue;
    ++all;
    if (end(line.text) > 0) ++labelled;
  }
  return labelled > 1 && labelled * 4 >= all * 3;
}

std::string without_escapes(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      plain += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '[') {
      const std::size_t end = text.find_first_not_of("0123456789;:?<=> ", i + 2);
      i = std::min(end, text.size());
    } else {
      ++i;
    }
  }
  return plain;
}

}  // namespace

std::string without_labels(std::string_view text, std::vector<std::string>& notes) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::string plain = text.find('\x1b') == text.npos ? std::string(text) : without_escapes(text);
  for (int round = 0; round < kMostLabels; ++round) {
    const std::vector<TextLine> lines = split_lines(plain);
    const auto label = std::find_if(std::begin(kLabels), std::end(kLabels),
                                    [&](EndOfLabel each) { return is_common(lines, each); });
    if (label == std::end(kLabels)) break;
    std::string rest, first;
    rest.reserve(plain.size());
    for (const TextLine& line : lines) {
      const std::size_t end = (*label)(line.text);
      if (first.empty()) first = line.text.substr(0, end);
      rest += line.text.substr(end);
      rest += '\n';
    }
    notes.push_back(fmt::format("labels before its lines are taken off, as \"{}\"",
                                printable(std::string_view(first).substr(0, 60))));
    plain = std::move(rest);
  }
  return plain;
}

}  // namespace paceline
