#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/document/document.h"
#include "analysis/document/page_script.h"
#include "engine/core/text.h"

namespace paceline {

namespace fs = std::filesystem;

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
h3, h4 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
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
th[scope="rowgroup"] { text-align: left; }
tbody tr:nth-child(even) td { background: var(--band); }
tr.gap td { color: var(--soft); font-style: italic; }
.margin { display: block; font-size: .75em; color: var(--soft); }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(28rem, 100%), 1fr));
  gap: 1rem; margin: 1rem 0; }
figure { margin: 0; min-width: 0; max-width: 46rem; }
figcaption { margin-bottom: .3rem; color: var(--soft); }
figcaption strong { color: var(--ink); }
svg { display: block; width: 100%; height: auto; border: 1px solid var(--line);
  background: #fff; }
@media screen and (prefers-color-scheme: dark) { svg { filter: invert(.9) hue-rotate(180deg); } }
.all:has(input:not(:checked)) ~ .wide .more { display: none; }
summary { cursor: pointer; margin: .6rem 0; font-weight: 600; }
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
.facts td, .runs td { white-space: normal; vertical-align: top; }
code { font: .82rem/1.35 "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
@media (max-width: 40rem) { body { padding: 0 .6rem; }
  .all:has(input:not(:checked)) ~ .wide .less { display: none; }
  .results td:first-child { white-space: normal; }
  .runs td { display: block; } .results td, .results th { padding: .2rem .3rem; } }
@media print { :root { color-scheme: light; --ink: #000; --soft: #444; --line: #ccc;
    --paper: #fff; --band: #fff; --accent: #000; --alarm: #000; }
  @page { margin: 1.2cm; } html { font-size: 10px; }
  body { margin: 0; padding: 0; max-width: none; font-size: 9px; line-height: 1.35; }
  h2 { margin-top: 1.2rem; } h1, h2, h3 { break-after: avoid; } ul { margin: .4rem 0; }
  figure, tr, li { break-inside: avoid; } .wide { overflow: visible; max-height: none; }
  .pictures { grid-template-columns: 1fr 1fr; } svg { max-height: 5.6cm; border: 0; }
  table { font-size: 7.5px; } th, td { padding: .1rem .25rem; } .links, .runs, input { display: none; }
  @page sheet { size: A4; margin: 1.3cm; }
  .sheet { page: sheet; font-size: 10.5px; line-height: 1.25; } .sheet table { font-size: 9.5px; }
  .sheet h1 { font-size: 14px; } .sheet h2, .sheet .headline { font-size: 12px; }
  .sheet h2 { margin: .6rem 0 .3rem; padding-top: .3rem; } .sheet ul, .sheet p { margin: .3rem 0; }
  .sheet .notes { font-size: 8.5px; } .sheet .pictures { grid-template-columns: 1fr; margin: .4rem 0; }
  .sheet .margin { display: inline; } .sheet svg { max-height: 6.5cm; } }
)";

std::string list(const std::vector<Statement>& statements, const char* style) {
  if (statements.empty()) return "";
  std::string text = fmt::format("<ul class=\"{}\">\n", style);
  for (const Statement& each : statements) {
    text += "<li>" + html_text(each.text);
    if (!each.details.empty()) {
      text += '\n' + list({each.details.begin(), each.details.end()}, "details");
    }
    text += "</li>\n";
  }
  return text + "</ul>\n";
}

std::string paragraph(const char* style, const std::string& sentence) {
  if (sentence.empty()) return "";
  return fmt::format("<p class=\"{}\">{}</p>\n", style, html_text(sentence));
}

std::string heading_html(const std::string& heading) {
  const std::size_t end = heading.find('\n');
  if (end == std::string::npos) return html_text(heading);
  return html_text(heading.substr(0, end)) + "<br/>" + html_text(heading.substr(end + 1));
}

// Writes one document as a page.
class Page {
 public:
  Page(const Document& document, const Pictures& pictures, const fs::path& folder)
      : document_(document), pictures_(pictures), folder_(folder) {}

  std::string sections() {
    std::string text;
    for (const Section& each : document_.sections) text += section(each);
    return text + legend(document_.notes, 2);
  }

 private:
  std::string section(const Section& section) {
    const int below = section.title.empty() ? 2 : 3;
    return "<section>\n" + heading(section.title, 2) + content(section, below) +
           legend(section.notes, below) + "</section>\n";
  }

  std::string legend(const std::vector<std::string>& notes, int level) const {
    const std::string text = list({notes.begin(), notes.end()}, "notes");
    if (text.empty() || document_.is_brief) return folded("Legend", text);
    return heading("Legend", level) + text;
  }

  static std::string folded(const std::string& title, const std::string& text) {
    if (text.empty()) return "";
    return fmt::format("<details><summary>{}</summary>\n{}</details>\n", html_text(title), text);
  }

  static std::string heading(const std::string& title, int level) {
    return title.empty() ? "" : fmt::format("<h{0}>{1}</h{0}>\n", level, html_text(title));
  }

  std::string part(const Section& part, int level) {
    std::string text =
        content(part, level + 1) + list({part.notes.begin(), part.notes.end()}, "notes");
    text = part.is_folded ? folded(part.title, text) : heading(part.title, level) + text;
    return fmt::format("<div class=\"{}\">\n{}</div>\n", part.kind.empty() ? "part" : part.kind,
                       text);
  }

  // `below`: the level of the headings of its parts.
  std::string content(const Section& section, int below) {
    std::string text = paragraph("lead", section.lead) + paragraph("headline", section.headline);
    if (!section.code.empty()) {
      text += "<pre tabindex=\"0\">" + html_text_lines(section.code) + "</pre>\n";
    }
    if (!section.table.rows.empty()) text += table(section.table);
    const std::vector<Statement> first = first_findings(section.findings);
    text += list({section.caveats.begin(), section.caveats.end()}, "findings") +
            list(first, "findings") + figures(section);
    std::vector<Statement> others;
    std::ranges::copy_if(section.findings, std::back_inserter(others), [&](const Statement& each) {
      return std::ranges::count(first, each.text, &Statement::text) == 0;
    });
    text += folded("Further findings", list(others, "findings"));
    for (const Section& each : section.parts) text += part(each, below);
    return text;
  }

  std::string table(const Table& table) const {
    const VisibleTable visible = visible_part(table);
    const auto is_hidden = [&](std::size_t k) { return is_more(table.columns[k]); };
    std::string text = std::ranges::any_of(visible.columns, is_hidden)
                           ? "<label class=\"all\"><input type=\"checkbox\"/> all columns</label>\n"
                           : "";
    text += "<div class=\"wide\" tabindex=\"0\"><table class=\"results\">\n";
    if (!visible.alike.empty()) {
      text += "<caption>In all rows: " + html_text(visible.alike) + "</caption>\n";
    }
    text += "<thead><tr>";
    for (const std::size_t k : visible.columns) {
      text += fmt::format("<th scope=\"col\"{}>{}</th>", classes(table.columns[k]),
                          heading_html(table.columns[k].heading));
    }
    text += "</tr></thead>\n";
    for (const auto& [machine, rows] : group_by_machine(table, visible.rows)) {
      text += "<tbody>\n";
      if (!machine.empty()) {
        text += fmt::format("<tr><th scope=\"rowgroup\" colspan=\"{}\">{}</th></tr>\n",
                            visible.columns.size(), html_text(machine));
      }
      for (const std::size_t i : rows) {
        text += i < table.is_gap.size() && table.is_gap[i] ? "<tr class=\"gap\">" : "<tr>";
        for (const std::size_t k : visible.columns) {
          Cell shown = table.rows[i][k];
          if (k == 0 && !machine.empty()) shown.text = without_part(shown.text, machine);
          text += cell(table.columns[k], shown);
        }
        text += "</tr>\n";
      }
      text += "</tbody>";
    }
    return text + "</table></div>\n";
  }

  // Rows of several machines, by their names; else all, without one.
  static std::vector<std::pair<std::string, std::vector<std::size_t>>> group_by_machine(
      const Table& table, const std::vector<std::size_t>& rows) {
    const auto of = std::ranges::find(table.columns, "system", &Column::key);
    std::vector<std::pair<std::string, std::vector<std::size_t>>> groups;
    for (const std::size_t i : rows) {
      const std::string machine =
          of == table.columns.end()
              ? ""
              : table.rows[i][static_cast<std::size_t>(of - table.columns.begin())].text;
      auto group = std::ranges::find(groups, machine, [](const auto& each) { return each.first; });
      if (group == groups.end()) group = groups.insert(groups.end(), {machine, {}});
      group->second.push_back(i);
    }
    if (groups.size() < 2 || 2 * groups.size() > rows.size()) groups = {{"", rows}};
    return groups;
  }

  static std::string classes(const Column& column) {
    std::vector<std::string> names;
    if (column.is_text) names.emplace_back("text");
    if (is_more(column)) names.emplace_back("more");
    if (!is_more(column) && column.detail > 0) names.emplace_back("less");  // on a narrow screen
    return names.empty() ? "" : fmt::format(" class=\"{}\"", join(names, " "));
  }

  std::string cell(const Column& column, const Cell& cell) const {
    std::string attributes = classes(column);
    if (!column.is_text && cell.value) attributes += fmt::format(" data-value=\"{}\"", *cell.value);
    return fmt::format("<td{}>{}{}</td>", attributes, value(column, cell), links(cell.links));
  }

  // The margin stands below the value, so that wide tables fit a page.
  static std::string value(const Column& column, const Cell& cell) {
    if (column.is_code && !cell.text.empty()) return "<code>" + html_text(cell.text) + "</code>";
    if (column.is_text) return html_text(cell.text);
    if (cell.text.empty()) return "–";
    const std::size_t at = std::min(cell.text.find(" ±"), cell.text.find(" ["));
    if (at == std::string::npos) return html_text(cell.text);
    return fmt::format("{}<span class=\"margin\">{}</span>", html_text(cell.text.substr(0, at)),
                       html_text(cell.text.substr(at)));
  }

  // From the page's folder.
  std::string links(const std::vector<std::string>& files) const {
    constexpr std::size_t kMost = 20;
    if (folder_.empty()) return "";
    const fs::path folder = fs::absolute(folder_).lexically_normal();
    std::string text;
    for (std::size_t i = 0; i < files.size() && i < kMost; ++i) {
      const std::string link = fs::absolute(files[i]).lexically_normal().lexically_relative(folder);
      text += fmt::format("{}<a href=\"{}\">{}</a>", i == 0 ? "" : " ", html_text(url_text(link)),
                          i + 1);
    }
    if (files.size() > kMost) text += fmt::format(" and {} more", files.size() - kMost);
    return text;
  }

  std::string figures(const Section& section) {
    std::string text;
    for (const Plot& plot : section.plots) {
      const auto svg = pictures_.svgs.find(plot.name);
      if (svg == pictures_.svgs.end()) continue;
      std::string title = plot.title;  // "Speed-up: mnist-cnn, fp32"
      if (const std::string what = ": " + section.title; title.ends_with(what)) {
        title.resize(title.size() - what.size());
      }
      text += fmt::format(
          "<figure id=\"plot-{}\">\n<figcaption><strong>{}</strong> {}</figcaption>\n"
          "{}</figure>\n",
          html_text(plot.name), html_text(title), html_text(plot.subtitle),
          inline_svg(svg->second, fmt::format("p{}-", ++figures_),
                     plot.title + ": " + plot.subtitle));
    }
    return text.empty() ? "" : "<div class=\"pictures\">\n" + text + "</div>\n";
  }

  const Document& document_;
  const Pictures& pictures_;
  const fs::path& folder_;
  std::size_t figures_ = 0;
};

std::string links_of_files(const std::vector<std::string>& files) {
  if (files.empty()) return "";
  std::string text = "<p class=\"links\">The same as files:", csv;
  for (const std::string& file : files) {
    text += fmt::format(" <a href=\"{0}\">{0}</a>", html_text(file));
    if (file.ends_with(".csv")) csv = html_text(file);
  }
  text += "</p>\n";
  if (csv.empty()) return text;
  return text + fmt::format(
                    "<p class=\"links\">In pandas: "
                    "<code>pandas.read_csv(&quot;{}&quot;)</code></p>\n",
                    csv);
}

}  // namespace

std::string to_html(const Document& given, const Pictures& pictures, const fs::path& folder,
                    const std::vector<std::string>& files) {
  const Document document = with_shared_notes(given);
  const std::string title = html_text(document.title);
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src &#39;none&#39;; "
      "style-src &#39;unsafe-inline&#39;; script-src &#39;{2}&#39;\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"generator\" content=\"paceline\"/>\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<main{3}>\n<h1>{0}</h1>\n",
      title, kStyle, kPageScriptHash, document.stands_alone ? " class=\"sheet\"" : "");
  for (const std::string& line : document.lead) text += paragraph("lead", line);
  for (const std::string& warning : all_warnings(document)) {
    text += paragraph("warning", "Warning: " + warning);
  }
  if (pictures.refused) text += "<p>" + html_text(pictures.refused->what()) + "</p>\n";
  text += Page(document, pictures, folder).sections() + links_of_files(files);
  return text + "</main>\n<script>" + kPageScript + "</script>\n</body>\n</html>\n";
}

}  // namespace paceline
