// A table of comma-separated values: --column gives a column to a key of the record, as table.json
// does for published tables (results/reference/README.md).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/core/error.h"
#include "engine/core/pattern.h"
#include "engine/core/text.h"
#include "results/import/formats.h"
#include "results/import/lines.h"

namespace paceline {

namespace {

// "fit_seconds=minutes*60"
struct ChosenColumn {
  std::string key, heading;
  double scale = 1;
  bool is_of_replica = false;  // "*gpus"
};

// As tables for people have them: "19:32:17" or "1-02:00:00" of a time, "74 %", "5,762". Else the
// cell itself.
std::string plain_number(const std::string& cell, bool is_time) {
  thread_local const Pattern clock(R"((?:(\d+)-)?(\d+):([0-5]\d):([0-5]\d(?:\.\d+)?))"),
      share(R"(([-+.\d]+)\s*%)"), grouped(R"([-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?)");
  if (const auto parts = is_time ? clock.match(cell) : std::nullopt) {
    const auto part = [&](std::size_t i) { return to_real((*parts)[i]).value_or(0); };
    return fmt::format("{}", ((part(1) * 24 + part(2)) * 60 + part(3)) * 60 + part(4));
  }
  if (const auto parts = share.match(cell)) {
    const auto hundredths = to_real((*parts)[1]);
    return hundredths ? fmt::format("{}", *hundredths / 100) : cell;
  }
  std::string plain = cell;
  if (grouped.match(cell)) std::erase(plain, ',');
  return plain;
}

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
      Throughput& rate = *run.record.throughput;
      if (is_rate_of_replica_) *rate.samples_per_second *= run.record.layout.gpus;
      if (run.record.timing->fit_seconds && run.record.provenance.time_is.empty()) {
        run.record.provenance.time_is = "column \"" + column_heading("fit_seconds") + "\"";
      }
      if (run.record.throughput->samples_per_second && run.record.provenance.rate_is.empty()) {
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
      throw usage_error("\"" + text + "\" is not KEY=HEADING", "--column",
                        "write for example --column gpus=GPUs");
    }
    ChosenColumn chosen{text.substr(0, equals), text.substr(equals + 1), 1};
    const std::size_t star = chosen.heading.rfind('*');
    if (star == chosen.heading.npos || has(chosen.heading)) return chosen;
    const std::string factor(trim(chosen.heading.substr(star + 1)));
    const auto scale = to_real(factor);
    chosen.is_of_replica = factor == "gpus";
    if (!chosen.is_of_replica && (!scale || *scale == 0)) return chosen;
    chosen.scale = scale.value_or(1);
    chosen.heading = trim(chosen.heading.substr(0, star));
    return chosen;
  }

  bool has(const std::string& heading) const {
    return std::find(headings_.begin(), headings_.end(), heading) != headings_.end();
  }

  void choose(const std::string& text) {
    ChosenColumn chosen = parsed(text);
    // A rate of something else than samples, as a program of one's own may have it.
    for (const char* unit : {"tokens", "images", "steps"}) {
      if (chosen.key != unit + std::string("_per_second")) continue;
      chosen.key = "samples_per_second";
      shared_["throughput"]["unit"] = unit;
    }
    const RecordKey& key = record_key_named(chosen.key, "--column");
    if (chosen.is_of_replica && key.name != "samples_per_second") {
      throw usage_error("only a rate can be times gpus", "--column " + text,
                        "give a number as the factor");
    }
    is_rate_of_replica_ = is_rate_of_replica_ || chosen.is_of_replica;
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
    auto place = static_cast<std::size_t>(at - headings_.begin());
    if (const TableColumn& other = columns_[place];
        !other.to.empty() && (other.is_text != key.is_text || other.scale != chosen.scale)) {
      place = add_copy(place);
    }
    TableColumn& column = columns_[place];
    if (!key.is_text && !given_.insert(key.name).second) {
      throw usage_error(key.name + " is given twice", "--column",
                        "give it one column or one value");
    }
    given_.insert(key.name);
    column.to.insert(column.to.end(), key.to.begin(), key.to.end());
    column.is_text = key.is_text;
    column.replaces = stated_.contains(key.name);
    column.scale = chosen.scale;
    column.is_time = key.name.ends_with("seconds");
    heading_by_key_[key.name] = chosen.heading;
  }

  // For another key: "gpus=nodes*8" beside "nodes=nodes".
  std::size_t add_copy(std::size_t column) {
    const std::size_t width = columns_.size();
    for (CsvRow& row : rows_) {
      if (row.cells.size() == width) row.cells.push_back(std::string(row.cells[column]));
    }
    headings_.push_back("\"" + headings_[column] + "\" again");
    columns_.emplace_back();
    return width;
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
              "add --column fit_seconds=HEADING or --column samples_per_second=HEADING (of one "
              "replica: HEADING*gpus; tokens: tokens_per_second)");
    }
  }

  // Whole numbers beside missing values are "1.0" in tables of pandas.
  void trim_cells() {
    for (std::size_t r = 1; r < rows_.size(); ++r) {
      std::vector<std::string>& cells = rows_[r].cells;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        cells[i] = std::string(trim(cells[i]));
        const bool is_number = i < columns_.size() && !columns_[i].is_text;
        if (is_number) cells[i] = plain_number(cells[i], columns_[i].is_time);
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
  bool is_rate_of_replica_ = false;
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
