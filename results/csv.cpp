#include "results/csv.h"

#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  std::vector<CsvRow> all() {
    std::vector<CsvRow> rows;
    while (at_ < text_.size()) {
      CsvRow next = row();
      const bool empty = next.cells.size() == 1 && next.cells[0].empty();
      if (!empty) rows.push_back(std::move(next));
    }
    return rows;
  }

 private:
  CsvRow row() {
    CsvRow row{line_, {}};
    while (true) {
      row.cells.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted() : plain());
      if (at_ >= text_.size()) return row;
      const char end = text_[at_++];
      if (end == ',') continue;
      ++line_;
      return row;
    }
  }

  // Up to the comma or line end, which is left to be read.
  std::string plain() {
    const std::size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
    std::string cell(text_.substr(at_, end - at_));
    at_ = end;
    if (!cell.empty() && cell.back() == '\r') cell.pop_back();
    return cell;
  }

  std::string quoted() {
    const std::size_t opened = line_;
    std::string cell;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        cell += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        cell += text_[at_++];
      } else {
        ++at_;
        return cell + plain();
      }
    }
    throw input_error("a quote is not closed", fmt::format("{}:{}", name_, opened), "close it");
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0, line_ = 1;
};

}  // namespace

std::vector<CsvRow> parse_csv(std::string_view text, const std::string& name) {
  require_utf8(text, name);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // of spreadsheets
  return Parser(text, name).all();
}

std::string shown_headings(const std::vector<std::string>& headings) {
  if (headings.size() == 1) {
    for (const auto& [separator, word] : {std::pair{';', "semicolons"}, {'\t', "tabs"}}) {
      if (headings[0].find(separator) == std::string::npos) continue;
      return fmt::format("the columns are separated by {}: write commas", word);
    }
  }
  constexpr std::size_t kMost = 20, kLongest = 40;
  const auto shown = mapped(headings, [](const std::string& heading) {
    return heading.size() > kLongest ? heading.substr(0, kLongest) + ".." : heading;
  });
  return "columns: " + join_first(kMost, shown);
}

}  // namespace paceline
