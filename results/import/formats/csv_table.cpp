// A table of comma-separated values: --column gives a column to a key of the record, as table.json
// does for published tables (results/reference/README.md).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "results/import/formats.h"
#include "results/import/lines.h"

namespace paceline {

namespace {

// "fit_seconds=minutes*60"
struct ChosenColumn {
  std::string key, heading;
  double scale = 1;
};

class CsvTable {
 public:
  explicit CsvTable(const ForeignFile& file) : file_(file), rows_(parse_csv(file.text, file.name)) {
    if (rows_.size() < 2) {
      refuse_line(file, 1, "the table has no rows", "give a line of headings and a row a result");
    }
    headings_ = rows_[0].cells;
    for (std::string& heading : headings_) heading = trim(heading);
    columns_.resize(headings_.size());
  }

  ImportContent read() {
    for (const std::string& set : file_.set) {
      set_value(shared_, set);
      const std::string key = set.substr(0, set.find('='));
      given_.insert(key);
      if (find_parameter(key) != nullptr) stated_.insert(key);
    }
    for (const std::string& column : file_.columns) choose(column);
    choose_by_name();
    check_complete();
    trim_cells();
    name_systems();
    ImportContent content;
    content.tool = "CSV";
    for (const Record& record : records_of_table(rows_, columns_, shared_, "", file_.name)) {
      ImportedRun& run = content.runs.emplace_back();
      run.record = *record;
      run.line = rows_[content.runs.size()].line;
      if (run.record.timing.fit_seconds && run.record.provenance.time_is.empty()) {
        run.record.provenance.time_is = "column \"" + column_heading("fit_seconds") + "\"";
      }
      if (run.record.throughput.samples_per_second && run.record.provenance.rate_is.empty()) {
        run.record.provenance.rate_is = "column \"" + column_heading("samples_per_second") + "\"";
      }
    }
    add_notes(content);
    return content;
  }

 private:
  ChosenColumn parsed(const std::string& text) const {
    const std::size_t equals = text.find('=');
    if (equals == text.npos || equals == 0 || equals + 1 == text.size()) {
      throw Error(ErrorKind::usage, "\"" + text + "\" is not KEY=HEADING", "--column",
                  "write for example --column gpus=GPUs");
    }
    ChosenColumn chosen{text.substr(0, equals), text.substr(equals + 1), 1};
    const std::size_t star = chosen.heading.rfind('*');
    if (star == chosen.heading.npos || has(chosen.heading)) return chosen;
    const auto scale = to_real(trim(chosen.heading.substr(star + 1)));
    if (!scale || *scale == 0) return chosen;
    chosen.scale = *scale;
    chosen.heading = trim(chosen.heading.substr(0, star));
    return chosen;
  }

  bool has(const std::string& heading) const {
    return std::find(headings_.begin(), headings_.end(), heading) != headings_.end();
  }

  void choose(const std::string& text) {
    const ChosenColumn chosen = parsed(text);
    const RecordKey& key = record_key_named(chosen.key, "--column");
    const auto at = std::find(headings_.begin(), headings_.end(), chosen.heading);
    if (at == headings_.end()) {
      refuse_line(file_, rows_[0].line, fmt::format("there is no column \"{}\"", chosen.heading),
                  nearest(chosen.heading, headings_) ? suggestion(chosen.heading, headings_)
                                                     : shown_headings(headings_));
    }
    if (std::count(headings_.begin(), headings_.end(), chosen.heading) > 1) {
      refuse_line(file_, rows_[0].line, fmt::format("two columns are named \"{}\"", chosen.heading),
                  "rename one");
    }
    TableColumn& column = columns_[static_cast<std::size_t>(at - headings_.begin())];
    if (!column.to.empty() && (column.is_text != key.is_text || column.scale != chosen.scale)) {
      throw Error(ErrorKind::usage, "the column \"" + chosen.heading + "\" is given twice",
                  "--column", "give it once");
    }
    if (!key.is_text && !given_.insert(key.name).second) {
      throw Error(ErrorKind::usage, key.name + " is given twice", "--column",
                  "give it one column or one value");
    }
    given_.insert(key.name);
    column.to.insert(column.to.end(), key.to.begin(), key.to.end());
    column.is_text = key.is_text;
    column.replaces = stated_.contains(key.name);
    column.scale = chosen.scale;
    heading_by_key_[key.name] = chosen.heading;
  }

  // A heading that is a key's name needs no --column. --set of a parameter holds where its cells
  // are empty.
  void choose_by_name() {
    for (const std::string& key : stated_) {
      if (!heading_by_key_.contains(key)) given_.erase(key);
    }
    for (std::size_t i = 0; i < headings_.size(); ++i) {
      const bool plain = headings_[i].find_first_of("=*\"") == std::string::npos;
      if (!columns_[i].to.empty() || !plain || given_.contains(headings_[i])) continue;
      if (find_record_key(headings_[i])) choose(headings_[i] + "=" + headings_[i]);
    }
    given_.insert(stated_.begin(), stated_.end());
  }

  void check_complete() const {
    const auto missing = [&](const std::string& what, const std::string& fix) {
      refuse_line(file_, rows_[0].line, "no column gives " + what,
                  fix + "; " + shown_headings(headings_));
    };
    if (!given_.contains("gpus")) missing("gpus", "add --column gpus=HEADING or --set gpus=N");
    if (!given_.contains("workload")) {
      missing("the workload", "add --set workload=NAME or --column workload=HEADING");
    }
    if (!given_.contains("fit_seconds") && !given_.contains("samples_per_second")) {
      missing("a time or a rate",
              "add --column fit_seconds=HEADING or --column samples_per_second=HEADING");
    }
  }

  // Whole numbers beside missing values are "1.0" in tables of pandas.
  void trim_cells() {
    for (std::size_t r = 1; r < rows_.size(); ++r) {
      std::vector<std::string>& cells = rows_[r].cells;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        cells[i] = std::string(trim(cells[i]));
        const std::size_t point = cells[i].find('.');
        const bool is_whole = i < columns_.size() && !columns_[i].to.empty() &&
                              !columns_[i].is_text && point != std::string::npos &&
                              to_integer(cells[i].substr(0, point)) &&
                              cells[i].find_first_not_of('0', point + 1) == std::string::npos;
        if (is_whole) cells[i].resize(point);
      }
    }
  }

  // "on" below "NVLink" becomes "NVLink on", which tells a system beside other columns and pages.
  void name_systems() {
    static const std::set<std::string> kSwitches = {"on", "off", "yes", "no", "true", "false"};
    for (std::size_t i = 0; i < headings_.size(); ++i) {
      const auto& to = columns_[i].to;
      const bool is_system = std::any_of(to.begin(), to.end(), [](const std::string& each) {
        return each == "/provenance/hardware" || each == "/provenance/stack";
      });
      for (std::size_t r = 1; is_system && r < rows_.size(); ++r) {
        if (i >= rows_[r].cells.size()) continue;  // refused later, with its line
        std::string& cell = rows_[r].cells[i];
        if (kSwitches.contains(to_lower(cell)) || to_real(cell)) cell = headings_[i] + " " + cell;
      }
    }
  }

  std::string column_heading(const std::string& key) const {
    const auto it = heading_by_key_.find(key);
    return it == heading_by_key_.end() ? key : it->second;
  }

  void add_notes(ImportContent& content) const {
    std::vector<std::string> unread;
    for (std::size_t i = 0; i < headings_.size(); ++i) {
      if (columns_[i].to.empty()) unread.push_back(headings_[i]);
    }
    if (unread.empty()) return;
    content.notes.push_back("columns not imported: " + join(unread, ", "));
    for (std::size_t i = 0; i < headings_.size(); ++i) {
      if (!columns_[i].to.empty() || !separates_repeats(i, content)) continue;
      content.notes.push_back(fmt::format(
          "rows that differ only in \"{}\" are repeats of each other; if these are other systems, "
          "add --column \"hardware={}\"",
          headings_[i], headings_[i]));
    }
  }

  // Whether rows of one point differ in the texts of an unread column. Numbers may count repeats.
  bool separates_repeats(std::size_t column, const ImportContent& content) const {
    std::map<std::string, std::string> texts;  // by point
    for (std::size_t r = 0; r < content.runs.size(); ++r) {
      const std::string& text = rows_[r + 1].cells[column];
      if (text.empty() || to_real(text)) return false;
      const RunRecord& record = content.runs[r].record;
      const auto point = join({record.workload, record.parameters.text(),
                               record.provenance.hardware, record.provenance.stack},
                              "\n");
      if (texts.emplace(point, text).first->second != text) return true;
    }
    return false;
  }

  const ForeignFile& file_;
  std::vector<CsvRow> rows_;
  std::vector<std::string> headings_;
  std::vector<TableColumn> columns_;
  std::set<std::string> given_, stated_;  // keys; parameters that --set states
  std::map<std::string, std::string> heading_by_key_;
  Json shared_ = {{"kind", "imported"}, {"layout", {{"replicas_are", "gpus"}}}};
};

}  // namespace

ImportFormat csv_table_format() {
  return {.name = "csv",
          .what = "a table of comma-separated values",
          .example = R"(table.csv --study page --set workload=resnet50 \
    --column gpus=GPUs --column samples_per_second=img/s \
    --column "fit_seconds=time (min)*60")",
          .is_one =
              [](std::string_view text) {
                const std::string_view first = text.substr(0, text.find('\n'));
                return first.find_first_of(",;\t") != first.npos &&
                       trim(text).find_first_of("{[#") != 0;
              },
          .read = [](const ForeignFile& file) { return CsvTable(file).read(); },
          .is_table = true};
}

}  // namespace paceline
