#include <fmt/format.h>

#include <algorithm>

#include "analysis/render/page_script.h"
#include "analysis/render/render.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// Screens first, and light enough to print as it is.
constexpr char kStyle[] = R"(
:root { color-scheme: light dark; --ink: #1a1a1a; --soft: #555; --line: #d5d9de; --paper: #fff;
  --band: #f6f8fa; --accent: #0072b2; --alarm: #8a3a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #a9b0b8; --line: #3c434b;
  --paper: #16191d; --band: #1f242a; --accent: #56b4e9; --alarm: #f0a860; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, "DejaVu Sans", Helvetica, Arial, sans-serif; color: var(--ink);
  background: var(--paper); max-width: 84rem; margin: 1.5rem auto; padding: 0 1rem;
  overflow-wrap: break-word; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; border-top: 2px solid var(--accent);
  padding-top: .6rem; }
h3, h2.part { font-size: 1rem; margin: 1.4rem 0 .4rem; border: 0; padding: 0; }
a { color: var(--accent); }
.lead { color: var(--soft); margin: 0 0 .8rem; }
.headline { font-size: 1.15rem; margin: .8rem 0; }
.wide { overflow: auto; max-height: 85vh; border-bottom: 1px solid var(--line); }
table { border-collapse: separate; border-spacing: 0; font-size: .86rem;
  font-variant-numeric: tabular-nums; }
caption { caption-side: bottom; text-align: left; color: var(--soft); padding: .4rem 0;
  font-size: .95em; }
th, td { padding: .2rem .4rem; text-align: right; white-space: nowrap; background: var(--paper);
  border-bottom: 1px solid var(--line); }
.results thead th { position: sticky; top: 0; z-index: 2; border-bottom: 2px solid var(--soft);
  vertical-align: bottom; }
.results th:first-child, .results td:first-child { position: sticky; left: 0; z-index: 1; }
.results thead th:first-child { z-index: 3; }
.text { text-align: left; }
tbody tr:nth-child(even) td { background: var(--band); }
tr.gap td { color: var(--soft); font-style: italic; }
.margin { display: block; font-size: .75em; color: var(--soft); }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(28rem, 100%), 1fr));
  gap: 1rem; margin: 1rem 0; }
figure { margin: 0; min-width: 0; max-width: 46rem; }
svg { display: block; width: 100%; height: auto; border: 1px solid var(--line);
  background: #fff; }
pre { max-width: 100%; padding: .6rem .8rem; background: var(--band); white-space: pre-wrap;
  font: .8rem/1.4 "DejaVu Sans Mono", monospace; }
button { font: inherit; color: var(--accent); background: none; border: 1px solid var(--line);
  border-radius: .2rem; cursor: pointer; }
th button { color: inherit; border: 0; padding: 0; text-align: inherit; }
th[aria-sort="ascending"] button::after { content: " \25b4"; }
th[aria-sort="descending"] button::after { content: " \25be"; }
input { font: inherit; color: inherit; background: none; border: 1px solid var(--line);
  border-radius: .2rem; padding: .15rem .4rem; margin: .4rem 0; max-width: 100%; }
.rules li { color: var(--alarm); }
.warning { font-weight: 600; color: var(--alarm); border-left: 4px solid #d55e00;
  padding-left: .6rem; }
.facts, .commands { width: 100%; }
.facts td, .commands td { text-align: left; white-space: normal; vertical-align: top; }
.facts td:first-child { white-space: nowrap; }
code { font: .82rem/1.35 "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
@media (max-width: 40rem) { body { padding: 0 .6rem; }
  .commands td { display: block; } .results td, .results th { padding: .2rem .3rem; } }
@media print { :root { color-scheme: light; --ink: #000; --soft: #444; --line: #ccc;
    --paper: #fff; --band: #fff; --accent: #000; --alarm: #000; }
  @page { margin: 1.2cm; } html { font-size: 10px; }
  body { margin: 0; padding: 0; max-width: none; font-size: 9px; line-height: 1.35; }
  h2 { margin-top: 1.2rem; } h1, h2, h3 { break-after: avoid; } ul { margin: .4rem 0; }
  figure, tr, li { break-inside: avoid; } .wide { overflow: visible; max-height: none; }
  .pictures { grid-template-columns: 1fr 1fr; } svg { max-height: 5.6cm; border: 0; }
  table { font-size: 7.5px; } th, td { padding: .1rem .25rem; } .links, .runs, input { display: none; } }
)";

std::string list(const std::vector<std::string>& sentences, const char* style) {
  if (sentences.empty()) return "";
  std::string text = fmt::format("<ul class=\"{}\">\n", style);
  for (const std::string& sentence : sentences) {
    text += "<li>" + html_text(sentence) + "</li>\n";
  }
  return text + "</ul>\n";
}

std::string caption(const Table& table) {
  const std::string alike = alike_text(table);
  return alike.empty() ? "" : "<caption>" + html_text(alike) + "</caption>\n";
}

std::string headings(const Table& table) {
  std::string text = "<thead><tr>";
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    const Column& column = table.columns[k];
    if (!column.shown || is_alike(table, k)) continue;
    std::string heading = html_text(column.heading);
    if (const std::size_t end = column.heading.find('\n'); end != std::string::npos) {
      heading = html_text(column.heading.substr(0, end)) + "<br/>" +
                html_text(column.heading.substr(end + 1));
    }
    text += fmt::format("<th scope=\"col\"{}>{}</th>", column.is_text ? " class=\"text\"" : "",
                        heading);
  }
  return text + "</tr></thead>\n";
}

// 31250.5 is 31,250.5.
std::string separated(std::string number) {
  const std::size_t digits = number.find_first_not_of("0123456789");
  std::size_t end = std::min(digits, number.size());
  if (end < 5) return number;
  while (end > 3) number.insert(end -= 3, ",");
  return number;
}

// The margin stands below the value, so that wide tables fit a page.
std::string content_html(const Column& column, const Cell& cell) {
  if (column.is_text) return html_text(cell.text);
  if (cell.text.empty()) return "–";
  const std::size_t at = std::min(cell.text.find(" ±"), cell.text.find(" ["));
  if (at == std::string::npos) return html_text(separated(cell.text));
  return fmt::format("{}<span class=\"margin\">{}</span>",
                     html_text(separated(cell.text.substr(0, at))),
                     html_text(cell.text.substr(at)));
}

std::string cell_html(const Column& column, const Cell& cell) {
  std::string attributes = column.is_text ? " class=\"text\"" : "";
  if (!column.is_text && cell.value) attributes += fmt::format(" data-value=\"{}\"", *cell.value);
  return fmt::format("<td{}>{}</td>", attributes, content_html(column, cell));
}

std::string rows(const Table& table) {
  std::string text = "<tbody>\n";
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    text += table.is_gap[i] ? "<tr class=\"gap\">" : "<tr>";
    for (std::size_t k = 0; k < table.columns.size(); ++k) {
      const Column& column = table.columns[k];
      if (!column.shown || is_alike(table, k)) continue;
      text += cell_html(column, table.rows[i][k]);
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

// A heading within a section: below the section's own, if it has one.
std::string part(std::string_view title, bool below_title) {
  return below_title ? fmt::format("<h3>{}</h3>\n", html_text(title))
                     : fmt::format("<h2 class=\"part\">{}</h2>\n", html_text(title));
}

std::string facts(const Table& table, bool below_title) {
  if (table.provenance.empty()) return "";
  std::string text =
      part("Where the numbers come from", below_title) + "<table class=\"facts\"><tbody>\n";
  for (const ProvenanceFact& fact : table.provenance) {
    std::string values;
    for (const auto& [value, runs] : fact.values) {
      values += fmt::format("{}{} <small>({})</small>", values.empty() ? "" : "<br/>",
                            html_text(value), counted(runs, "run"));
    }
    text += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", html_text(fact.name), values);
  }
  return text + "</tbody></table>\n";
}

std::string links(const std::vector<std::string>& files) {
  constexpr std::size_t kMost = 20;
  std::string text;
  for (std::size_t i = 0; i < files.size() && i < kMost; ++i) {
    text += fmt::format("{}<a href=\"{}\">{}</a>", i == 0 ? "Records: " : " ",
                        html_text(url_text(files[i])), i + 1);
  }
  if (files.size() > kMost) text += fmt::format(" and {} more", files.size() - kMost);
  return text;
}

std::string runs(const HtmlSection& section, bool below_title) {
  const Table& table = section.table;
  std::string text;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::string command = i < table.commands.size() ? table.commands[i] : "";
    const std::string records = i < section.records.size() ? links(section.records[i]) : "";
    if (command.empty() && records.empty()) continue;
    text += fmt::format("<tr><td>{}</td><td>", html_text(table.row_names[i]));
    if (!command.empty()) text += "<code>" + html_text(command) + "</code>";
    if (!command.empty() && !records.empty()) text += "<br/>";
    text += records + "</td></tr>\n";
  }
  if (text.empty()) return "";
  return "<div class=\"runs\">\n" +
         part("One more run of a row, and the runs that it has", below_title) +
         "<table class=\"commands\"><tbody>\n" + text + "</tbody></table></div>\n";
}

std::string left_out(const Table& table) {
  if (table.left_out.empty()) return "";
  return fmt::format(
      "<details><summary>All records and runs left out: {}</summary>\n{}</details>\n",
      table.left_out.size(), list(table.left_out, "notes"));
}

// When, where: what a reader asks first.
std::string lead(const Table& table) {
  std::string text;
  for (const char* name : {"started", "hosts", "machine", "device"}) {
    for (const ProvenanceFact& fact : table.provenance) {
      if (fact.name != name) continue;
      for (std::size_t i = 0; i < fact.values.size() && i < 3; ++i) {
        text += (text.empty() ? "" : " · ") + fact.values[i].first;
      }
      if (fact.values.size() > 3) text += fmt::format(" and {} more", fact.values.size() - 3);
    }
  }
  return text;
}

std::string best(const std::string& text, bool below_title) {
  if (text.empty()) return "";
  return part("The smallest point within 5 % of the fastest", below_title) +
         "<pre tabindex=\"0\">" + html_text_lines(text) + "</pre>\n";
}

// Whether a row below the headings says something in this column.
bool says_something(const std::vector<std::vector<std::string>>& table, std::size_t column) {
  return std::any_of(table.begin() + 1, table.end(),
                     [&](const auto& row) { return !row[column].empty(); });
}

std::string explanation(const HtmlExplanation& all, bool below_title) {
  if (all.table.empty()) return "";
  std::string text = part("Where the efficiency went", below_title) + list(all.first, "findings");
  text += "<div class=\"wide\" tabindex=\"0\"><table class=\"results\">\n";
  for (std::size_t i = 0; i < all.table.size(); ++i) {
    const std::vector<std::string>& row = all.table[i];
    const char* cell = i == 0 ? "th" : "td";
    text += i == 0 ? "<thead><tr>" : "<tr>";
    for (std::size_t k = 0; k < row.size(); ++k) {
      if (!says_something(all.table, k)) continue;
      const bool is_text = k == 0 || k + 1 == row.size();
      text += fmt::format("<{0}{1}{2}>{3}</{0}>", cell, i == 0 ? " scope=\"col\"" : "",
                          is_text ? " class=\"text\"" : "", html_text(row[k]));
    }
    text += i == 0 ? "</tr></thead>\n<tbody>\n" : "</tr>\n";
  }
  return text + "</tbody></table></div>\n" + list(all.sentences, "findings") +
         list(all.notes, "notes");
}

std::string section(const HtmlSection& section, bool with_title, std::size_t& number) {
  const Table& table = section.table;
  std::string text = "<section>\n";
  if (with_title) text += fmt::format("<h2>{}</h2>\n", html_text(table.title));
  if (const std::string when = lead(table); !when.empty()) {
    text += "<p class=\"lead\">" + html_text(when) + "</p>\n";
  }
  if (!table.load.empty()) text += "<p class=\"lead\">" + html_text(table.load) + "</p>\n";
  if (!table.headline.empty()) {
    text += "<p class=\"headline\">" + html_text(table.headline) + "</p>\n";
  }
  text += list(table.findings, "findings");
  text += pictures(section.pictures, number);
  text += "<div class=\"wide\" tabindex=\"0\"><table class=\"results\">\n" + caption(table) +
          headings(table) + rows(table) + "</table></div>\n";
  text += best(section.best, with_title) + explanation(section.explanation, with_title);
  if (!table.is_comparison) {
    text += part(summarize(table.broken), with_title);
  }
  std::vector<std::string> broken;
  for (const BrokenRule& each : table.broken) broken.push_back(format_sentence(each));
  text += list(broken, "rules");
  text += part("Legend", with_title) + list(table.notes, "notes") + left_out(table);
  return text + facts(table, with_title) + runs(section, with_title) + "</section>\n";
}

// Each once: tables of one study may be flawed alike.
std::vector<std::string> list_warnings(const HtmlPage& page) {
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

std::string make_title(const HtmlPage& page) {
  if (page.sections.empty()) return "all-reduce";
  std::string title = page.sections.front().table.title;
  if (page.sections.size() > 1) title += fmt::format(" and {} more", page.sections.size() - 1);
  return title;
}

}  // namespace

std::string render_html(const HtmlPage& page) {
  const std::string title = html_text(make_title(page));
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src &#39;none&#39;; "
      "style-src &#39;unsafe-inline&#39;; script-src &#39;{2}&#39;\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"generator\" content=\"paceline\"/>\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n",
      title, kStyle, kPageScriptHash);
  for (const std::string& warning : list_warnings(page)) {
    text += "<p class=\"warning\">Warning: " + html_text(warning) + "</p>\n";
  }
  if (!page.missing.empty()) text += "<p>" + html_text(page.missing) + "</p>\n";
  std::size_t number = 0;
  const bool has_several = page.sections.size() > 1;
  for (const HtmlSection& each : page.sections) text += section(each, has_several, number);
  if (!page.collectives.empty()) {
    text += "<section>\n<h2>All-reduce</h2>\n" + page.collectives;
    text += pictures(page.collective_pictures, number) + "</section>\n";
  }
  if (!page.files.empty()) {
    text += "<p class=\"links\">The same as files:";
    for (const std::string& file : page.files) {
      text += fmt::format(" <a href=\"{0}\">{0}</a>", html_text(file));
    }
    text += "</p>\n";
    if (std::ranges::find(page.files, "report.csv") != page.files.end()) {
      text +=
          "<p class=\"links\">In pandas: "
          "<code>pandas.read_csv(&quot;report.csv&quot;)</code></p>\n";
    }
  }
  return text + "</main>\n<script>" + kPageScript + "</script>\n</body>\n</html>\n";
}

}  // namespace paceline
