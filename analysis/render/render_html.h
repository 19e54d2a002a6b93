// A report as one HTML file that needs nothing else: style, pictures and a script of comfort
// inside, nothing fetched.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/plots/plot.h"
#include "analysis/table/table.h"

namespace paceline {

struct HtmlPicture {
  std::string name, title;  // of its plot
  std::string svg;          // gnuplot's file
};

// What `paceline explain` says.
struct HtmlExplanation {
  std::vector<std::string> first;               // before its table
  std::vector<std::vector<std::string>> table;  // headings, then rows; empty: it says nothing
  std::vector<std::string> sentences, notes;
};

struct HtmlSection {
  Table table;
  std::vector<HtmlPicture> pictures;
  std::string best = {};  // what `paceline best` says, in lines; empty: nothing
  HtmlExplanation explanation = {};
  // A row of the table each: links to the records of its runs; empty where the page stands alone.
  std::vector<std::vector<std::string>> records = {};
};

struct HtmlPage {
  std::vector<HtmlSection> sections;
  std::string collectives;  // an HTML fragment; empty: there are none
  std::vector<HtmlPicture> collective_pictures;
  std::string missing;             // why there are no pictures; empty: they are all there
  std::vector<std::string> files;  // beside the page, for links; none where it stands alone
};

std::string render_html(const HtmlPage& page);

}  // namespace paceline
