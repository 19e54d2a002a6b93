// A report as one HTML file that needs nothing else: style and pictures inside, no scripts, nothing
// fetched.
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

struct HtmlSection {
  Table table;
  std::vector<HtmlPicture> pictures;
  std::string best = {};     // what `paceline best` says, in lines; empty: nothing
  std::string explain = {};  // what `paceline explain` says, in lines; empty: nothing
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
