#include "analysis/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "analysis/explain/explain.h"
#include "analysis/findings/best.h"
#include "analysis/gate/report_sides.h"
#include "analysis/plots/script.h"
#include "analysis/plots/study_plots.h"
#include "analysis/study/labels.h"
#include "analysis/table/table.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "results/expected_runs.h"
#include "results/store.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr double kNearEnough = 0.05;

Base choose_base(const Study& study, const Base& asked) {
  return asked == Base::matched ? default_base(study) : asked;
}

Section report_section(const Study& study, const ReportOptions& options) {
  const Comparison comparison = compare(study, choose_base(study, options.base));
  std::vector<RowFacts> facts;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    facts.push_back(row_facts(study, comparison, i));
  }
  Section section = make_section(study, comparison, facts);
  choose_columns(section, options.columns);
  section.plots = study_plots({study, comparison, facts, section.title});
  return section;
}

bool is_selected(const Record& record, const std::vector<Selection>& only) {
  return std::all_of(only.begin(), only.end(), [&](const Selection& selection) {
    if (selection.key == "kind") {
      return selection.allows("collective") || selection.allows(record->kind);
    }
    if (selection.key == "study") return selection.allows(record->study);
    return selection.allows(record->parameters.text(selection.key));
  });
}

// Takes them all out of `content`, and returns those that were asked for.
std::vector<Record> take_collectives(StoreContent& content, const std::vector<Selection>& only) {
  const auto first =
      std::stable_partition(content.records.begin(), content.records.end(),
                            [](const Record& record) { return !record->is_collective(); });
  std::vector<Record> collectives(first, content.records.end());
  content.records.erase(first, content.records.end());
  if (collectives.empty()) return {};
  // A selection of a kind that no training run has leaves collectives only.
  const bool only_collectives = std::any_of(only.begin(), only.end(), [&](const Selection& chosen) {
    return chosen.key == "kind" &&
           std::none_of(content.records.begin(), content.records.end(),
                        [&](const Record& record) { return chosen.allows(record->kind); });
  });
  std::erase_if(collectives, [&](const Record& record) { return !is_selected(record, only); });
  if (only_collectives && !collectives.empty()) content.records.clear();
  if (collectives.empty() && content.records.empty()) {
    throw usage_error("no record of a collective has these values", "--only", "choose others");
  }
  return collectives;
}

// A CSV or JSON text is of one thing.
void check_one_kind(const StoreContent& content, Format format) {
  if (content.records.empty() || (format != Format::csv && format != Format::json)) return;
  throw usage_error("records of collectives and of training cannot share a table", "--format",
                    "name the records of one kind, or use text, md or html");
}

// A table of collectives has one size and its own columns.
void check_fits_collectives(const ReportOptions& options) {
  const char* option = options.base != Base::matched             ? "--base"
                       : !options.columns.empty()                ? "--columns"
                       : options.pooling != Pooling::by_sessions ? "--pool, --no-pool"
                                                                 : nullptr;
  if (option == nullptr) return;
  throw usage_error("these records are of collectives only", option,
                    "leave it out, or name records of training");
}

// What `best` and `explain` say, for pages. Of some studies they have nothing to say, and throw
// why; `explain` has no answer where a setting is the base.
void add_answers(const Study& study, const Base& asked, Section& section) {
  std::vector<Section> answers;
  try {
    answers.push_back(best_document(study, find_best(study, kNearEnough)).sections.front());
    answers.back().title = "The smallest point within 5 % of the fastest";
  } catch (const Error&) {
  }
  const Base base = choose_base(study, asked);
  try {
    if (base.compares_sizes()) {
      answers.push_back(explanation_section(explain({study}, base).front()));
      answers.back().title = "Where the efficiency went";
    }
  } catch (const Error&) {
  }
  for (Section& answer : answers) {
    answer.shown = Visibility::on_pages;
    // Behind the speed-up, where there is one.
    const bool has_speed_up = !section.plots.empty() && section.plots.front().name == kSpeedUpPlot;
    section.plots.insert(section.plots.begin() + (has_speed_up ? 1 : 0), answer.plots.begin(),
                         answer.plots.end());
    answer.plots.clear();
    // The page has the findings and the legend of the table above.
    std::erase_if(answer.findings, [&](const Statement& each) {
      return std::ranges::count(section.findings, each.text, &Statement::text) > 0;
    });
    std::erase_if(answer.notes, [&](const std::string& each) {
      return std::ranges::count(section.notes, each) > 0;
    });
  }
  section.parts.insert(section.parts.begin(), answers.begin(), answers.end());
}

// Plots of a second table are named after it.
void name_plots(std::vector<Section>& sections) {
  std::size_t number = 0;
  for (Section& section : sections) {
    if (section.plots.empty() || ++number == 1) continue;
    for (Plot& plot : section.plots) plot.name += fmt::format("-{}", number);
  }
}

// What the specs beside the records say of the studies.
void add_specs(const std::vector<fs::path>& places, Document& report) {
  for (const fs::path& place : places) {
    std::error_code none;
    const fs::path file = place / kSpecFile;
    if (!fs::is_regular_file(file, none)) continue;
    const std::string text = read_text(file);
    const Json spec = parse_json(without_comments(text));
    if (spec.is_object() && spec.contains("description") && spec["description"].is_string()) {
      report.lead.push_back(spec["description"]);
    }
    report.sections.push_back({.parts = {{.title = "The spec: " + file.string(),
                                          .code = text,
                                          .shown = Visibility::on_pages,
                                          .is_folded = true}},
                               .shown = Visibility::on_pages});
  }
  report.lead = each_once(report.lead);
}

// Studies that have points in common, side by side: the comparisons with the first, then the tables
// of each. Empty where there are none such: tables of all of them have no run in common.
std::vector<Section> compare_studies(const std::vector<fs::path>& places,
                                     const ReportOptions& options, std::vector<Study>& studies,
                                     std::size_t& sides) {
  Sides found = load_sides(places, options.only, options.anonymous);
  if (found.comparisons.empty() || found.has_collectives) return {};
  std::vector<Section> sections = std::move(found.comparisons);
  sides = found.sides.size();
  for (const ReportSide& side : found.sides) {
    studies.insert(studies.end(), side.studies.begin(), side.studies.end());
  }
  check_base(studies, options.base);
  for (const ReportSide& side : found.sides) {
    for (const Study& study : side.studies) {
      sections.push_back(report_section(study, options));
      sections.back().title = side.name + ": " + sections.back().title;
      sections.back().shown = Visibility::in_detail;
      // As the comparison has it, so that each is printed once.
      for (std::string& warning : sections.back().warnings) warning = side.name + ": " + warning;
    }
  }
  return sections;
}

}  // namespace

std::vector<Document> make_report(const std::vector<fs::path>& places,
                                  const ReportOptions& options) {
  Document report{.name = "report", .is_brief = true, .list = "tables"};
  std::vector<Document> documents;
  std::vector<Study> studies;
  std::size_t sides = 0;
  if (options.pooling != Pooling::always) {
    report.sections = compare_studies(places, options, studies, sides);
  }
  if (report.sections.empty()) {
    StoreContent content = load_stores(places);
    const std::vector<ExpectedRuns> wanted = load_plans(places, content);
    if (options.anonymous) content = anonymous(std::move(content));
    const std::vector<Record> collectives = take_collectives(content, options.only);
    if (!collectives.empty()) {
      check_one_kind(content, options.format);
      documents.push_back(collectives_document(collectives));
      documents.back().sections.back().plots = bandwidth_plots(collectives);
      if (content.records.empty()) {
        check_fits_collectives(options);
        return documents;
      }
    }
    studies = make_studies(content, options.only, wanted, options.pooling);
    check_base(studies, options.base);
    for (const Study& study : studies) {
      report.sections.push_back(report_section(study, options));
      if (options.format == Format::html || !options.out.empty()) {
        add_answers(study, options.base, report.sections.back());
      }
    }
  }
  name_plots(report.sections);
  std::set<std::string> names;
  for (const Study& study : studies) names.merge(study_names(study));
  report.title = join_first(kMostStudyNames, {names.begin(), names.end()});
  if (sides > 0) {
    report.title +=
        fmt::format("{}{} studies side by side", report.title.empty() ? "" : ": ", sides);
  }
  if (!options.anonymous) add_specs(places, report);
  if (!documents.empty() && options.format == Format::html) {  // a page is one
    std::ranges::move(documents.back().sections, std::back_inserter(report.sections));
    documents.clear();
  }
  documents.push_back(std::move(report));
  return documents;
}

WrittenFiles write_report(const std::vector<fs::path>& studies, const ReportOptions& options,
                          std::ostream& stream) {
  for (const std::string& format : options.plots) check_plot_format(format);
  return write_documents(make_report(studies, options), options, stream);
}

}  // namespace paceline
