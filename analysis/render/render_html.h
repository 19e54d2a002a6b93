// A report as one self-contained HTML file: it includes style, plots and an optional script, and
// loads nothing.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/plots/plot.h"
#include "analysis/table/table.h"

namespace paceline {

struct HtmlPicture {
  std::string name, title;  // of the plot
  std::string svg;          // gnuplot's output
};

// The output of `paceline explain`.
struct HtmlExplanation {
  std::vector<std::string> first;               // shown before its table
  std::vector<std::vector<std::string>> table;  // headings, then rows; empty: no output
  std::vector<std::string> sentences, notes;
};

struct HtmlSection {
  Table table;
  std::vector<HtmlPicture> pictures;
  std::string best = {};  // the output of `paceline best`, as lines; may be empty
  HtmlExplanation explanation = {};
  // For each row of the table, links to the records of its runs. Empty for a page without links.
  std::vector<std::vector<std::string>> records = {};
};

struct HtmlPage {
  std::vector<HtmlSection> sections;
  std::string collectives;  // an HTML fragment; may be empty
  std::vector<HtmlPicture> collective_pictures;
  std::string missing;  // why there are no plots; empty: there are plots
  // Files next to the page, for links; empty for a page without links.
  std::vector<std::string> files;
};

std::string render_html(const HtmlPage& page);

}  // namespace paceline
