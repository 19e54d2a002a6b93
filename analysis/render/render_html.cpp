#include "analysis/render/render_html.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/render/markup.h"

namespace paceline {

namespace {

// Screens first, and light enough to print as it is.
constexpr char kStyle[] = R"(
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, "DejaVu Sans", Helvetica, Arial, sans-serif; color: #1a1a1a;
  background: #fff; max-width: 84rem; margin: 1.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; } h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem;
  border-top: 2px solid #0072b2; padding-top: .6rem; } h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
.lead { color: #555; margin: 0 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .4rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #888; vertical-align: bottom; } .text { text-align: left; }
tbody tr:nth-child(even) { background: #f6f8fa; } tr.gap td { color: #777; font-style: italic; }
.margin { display: block; font-size: .75em; color: #555; }
.pictures { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { margin: 0; flex: 1 1 30rem; max-width: 46rem; }
svg { width: 100%; height: auto; border: 1px solid #eee; }
.rules li { color: #8a3a00; } .warning { font-weight: 600; color: #8a3a00;
  border-left: 4px solid #d55e00; padding-left: .6rem; } .facts td, .commands td { text-align: left; white-space: normal;
  vertical-align: top; } code { font: .82rem/1.35 "DejaVu Sans Mono", monospace;
  overflow-wrap: anywhere; }
@media print { body { margin: 0; max-width: none; font-size: 10.5px; } h2 { break-before: auto; }
  figure, tr, li { break-inside: avoid; } .wide { overflow: visible; }
  .pictures { display: block; } svg { max-height: 10cm; border: 0; }
  table { font-size: 7.5px; } th, td { padding: .1rem .25rem; } }
)";

std::string list(const std::vector<std::string>& sentences, const char* style) {
  if (sentences.empty()) return "";
  std::string text = fmt::format("<ul class=\"{}\">\n", style);
  for (const std::string& sentence : sentences) {
    text += "<li>" + html_text(sentence) + "</li>\n";
  }
  return text + "</ul>\n";
}

std::string headings(const Table& table) {
  std::string text = "<thead><tr>";
  for (const Column& column : table.columns) {
    if (!column.shown) continue;
    std::string heading = html_text(column.heading);
    if (const std::size_t end = column.heading.find('\n'); end != std::string::npos) {
      heading = html_text(column.heading.substr(0, end)) + "<br/>" +
                html_text(column.heading.substr(end + 1));
    }
    text += fmt::format("<th{}>{}</th>", column.is_text ? " class=\"text\"" : "", heading);
  }
  return text + "</tr></thead>\n";
}

// The margin stands below the value, so that wide tables fit a page.
std::string cell_of(const Column& column, const Cell& cell) {
  if (column.is_text) return html_text(cell.text);
  if (cell.text.empty()) return "–";
  const std::size_t at = std::min(cell.text.find(" ±"), cell.text.find(" ["));
  if (at == std::string::npos) return html_text(cell.text);
  return fmt::format("{}<span class=\"margin\">{}</span>", html_text(cell.text.substr(0, at)),
                     html_text(cell.text.substr(at)));
}

std::string rows(const Table& table) {
  std::string text = "<tbody>\n";
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    text += table.is_gap[i] ? "<tr class=\"gap\">" : "<tr>";
    for (std::size_t k = 0; k < table.columns.size(); ++k) {
      const Column& column = table.columns[k];
      if (!column.shown) continue;
      text += fmt::format("<td{}>{}</td>", column.is_text ? " class=\"text\"" : "",
                          cell_of(column, table.rows[i][k]));
    }
    text += "</tr>\n";
  }
  return text + "</tbody>\n";
}

std::string pictures(const std::vector<HtmlPicture>& all, std::size_t& number) {
  if (all.empty()) return "";
  std::string text = "<div class=\"pictures\">\n";
  for (const HtmlPicture& picture : all) {
    text += fmt::format("<figure id=\"plot-{}\">\n{}</figure>\n", html_text(picture.name),
                        inline_svg(picture.svg, fmt::format("p{}-", ++number), picture.title));
  }
  return text + "</div>\n";
}

std::string facts(const Table& table) {
  if (table.provenance.empty()) return "";
  std::string text = "<h3>Where the numbers come from</h3>\n<table class=\"facts\"><tbody>\n";
  for (const ProvenanceFact& fact : table.provenance) {
    std::string values;
    for (const auto& [value, runs] : fact.values) {
      values += fmt::format("{}{} <small>({} run{})</small>", values.empty() ? "" : "<br/>",
                            html_text(value), runs, runs == 1 ? "" : "s");
    }
    text += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", html_text(fact.name), values);
  }
  return text + "</tbody></table>\n";
}

std::string commands(const Table& table) {
  if (std::all_of(table.commands.begin(), table.commands.end(),
                  [](const std::string& command) { return command.empty(); })) {
    return "";
  }
  std::string text = "<h3>One more run of a row</h3>\n<table class=\"commands\"><tbody>\n";
  for (std::size_t i = 0; i < table.commands.size(); ++i) {
    if (table.commands[i].empty()) continue;
    text += fmt::format("<tr><td>{}</td><td><code>{}</code></td></tr>\n",
                        html_text(table.row_names[i]), html_text(table.commands[i]));
  }
  return text + "</tbody></table>\n";
}

std::string left_out(const Table& table) {
  if (table.left_out.empty()) return "";
  return fmt::format(
      "<details><summary>All records and runs left out: {}</summary>\n{}</details>\n",
      table.left_out.size(), list(table.left_out, "notes"));
}

std::string section(const HtmlSection& section, std::size_t& number) {
  const Table& table = section.table;
  std::string text = fmt::format("<section>\n<h2>{}</h2>\n", html_text(table.title));
  text += list(table.findings, "findings");
  text += "<div class=\"wide\"><table>\n" + headings(table) + rows(table) + "</table></div>\n";
  if (!table.is_comparison) {
    text += fmt::format("<h3>{}</h3>\n", html_text(summary_of(table.broken)));
  }
  std::vector<std::string> broken;
  for (const BrokenRule& each : table.broken) broken.push_back(sentence_of(each));
  text += list(broken, "rules");
  text += pictures(section.pictures, number);
  text += "<h3>Legend</h3>\n" + list(table.notes, "notes") + left_out(table);
  return text + facts(table) + commands(table) + "</section>\n";
}

// Each once: tables of one study may be flawed alike.
std::vector<std::string> warnings_of(const HtmlPage& page) {
  std::vector<std::string> warnings;
  for (const HtmlSection& section : page.sections) {
    for (const std::string& warning : section.table.warnings) {
      if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) {
        warnings.push_back(warning);
      }
    }
  }
  return warnings;
}

std::string title_of(const HtmlPage& page) {
  if (page.sections.empty()) return "all-reduce";
  std::string title = page.sections.front().table.title;
  if (page.sections.size() > 1) title += fmt::format(" and {} more", page.sections.size() - 1);
  return title;
}

}  // namespace

std::string render_html(const HtmlPage& page) {
  const std::string title = html_text(title_of(page));
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src &#39;none&#39;; "
      "style-src &#39;unsafe-inline&#39;\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"generator\" content=\"paceline\"/>\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n"
      "<p class=\"lead\">A scaling report by paceline.</p>\n",
      title, kStyle);
  for (const std::string& warning : warnings_of(page)) {
    text += "<p class=\"warning\">Warning: " + html_text(warning) + "</p>\n";
  }
  if (!page.missing.empty()) text += "<p>" + html_text(page.missing) + "</p>\n";
  std::size_t number = 0;
  for (const HtmlSection& each : page.sections) text += section(each, number);
  if (!page.collectives.empty()) {
    text += "<section>\n<h2>All-reduce</h2>\n" + page.collectives;
    text += pictures(page.collective_pictures, number) + "</section>\n";
  }
  return text + "</body>\n</html>\n";
}

}  // namespace paceline
