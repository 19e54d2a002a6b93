#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "analysis/document/page_script.h"
#include "analysis/report.h"
#include "engine/core/error.h"
#include "tests/support/expect_error.h"
#include "tests/unit/analysis/samples.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

void store(const fs::path& study, const std::vector<Json>& records) {
  const Store store(study);
  for (const Json& json : records) {
    store.write(json["point"].get<std::string>().substr(0, 60), json["repeat"], json, "");
  }
}

std::string make_page(const fs::path& study, const ReportOptions& wanted = {}) {
  ReportOptions options = wanted;
  options.format = Format::html;
  std::ostringstream stream;
  write_report({study}, options, stream);
  return stream.str();
}

// Why the page is not well-formed, or nothing: every tag closed in order, attributes in quotes.
std::string complaint(const std::string& page) {
  std::vector<std::string> open;
  static const std::regex kTag(
      R"(^<(/?)([A-Za-z][A-Za-z0-9:-]*)((?:\s+[A-Za-z_:][-A-Za-z0-9_:.]*\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(/?)>)");
  for (std::size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at + 1)) {
    if (page.compare(at, 2, "<!") == 0) continue;
    const std::string rest = page.substr(at, page.find('>', at) - at + 1);
    std::smatch match;
    if (!std::regex_search(rest, match, kTag)) return "no tag: " + rest.substr(0, 120);
    if (match[1].length() > 0) {
      if (open.empty() || open.back() != match[2]) return "closed out of order: " + rest;
      open.pop_back();
    } else if (match[4].length() == 0) {
      open.push_back(match[2]);
    }
  }
  return open.empty() ? "" : "left open: " + open.back();
}

std::size_t count(const std::string& page, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = page.find(what); at != std::string::npos; at = page.find(what, at + 1)) {
    ++found;
  }
  return found;
}

TEST(Html, TextIsEscaped) {
  EXPECT_EQ(html_text("<a href=\"x\">&'\x01"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39; ");
}

TEST(Html, PicturesInOnePageHaveTheirOwnIds) {
  const std::string svg =
      "<?xml version=\"1.0\"?><svg width=\"7\" xmlns=\"http://www.w3.org/2000/svg\" "
      "xmlns:xlink=\"http://www.w3.org/1999/xlink\"><title>Gnuplot</title><path id='p'/>"
      "<use xlink:href='#p'/></svg>";
  const std::string inlined = inline_svg(svg, "x-", "a <title>");
  EXPECT_TRUE(inlined.starts_with("<svg role=\"img\" aria-label=\"a &lt;title&gt;\" width=\"7\""));
  expect_parts(inlined, {"id='x-p'", "href='#x-p'"});
  expect_no_parts(inlined, {"http", "Gnuplot"});
}

TEST(Html, ThePageHasEveryRowAndPlotAndNeedsNothingElse) {
  const Scratch folder;
  store(folder / "quick", drifting_study());
  const std::string page = make_page(folder / "quick");
  EXPECT_EQ(complaint(page), "");
  EXPECT_EQ(count(page, "<svg "), 4U);
  EXPECT_EQ(count(page, "speed-up 1.80 for 2 replicas"), 1U);  // said above, not by explain, too
  for (const char* plot : {"speedup", "loss", "efficiency", "breakdown"}) {
    EXPECT_NE(page.find(std::string("id=\"plot-") + plot), std::string::npos) << plot;
  }
  expect_parts(page,
               {"1.80<span class=\"margin\"> ±0.05</span>", "Rules of Hoefler and Belli", "Legend",
                "paired interval", "Where the numbers come from", "A CPU", "0.1.0 abc"});
  expect_no_parts(page, {"http:", "https:", "<script ", "<link", "<iframe", "<img", "@import",
                         " src=", "url(http"});
  EXPECT_EQ(count(page, "<script"), 1U);
  EXPECT_FALSE(std::regex_search(page, std::regex("href=['\"][^#]")));
}

// What screen readers go by: one main part with all that is shown, headings without skipped levels.
TEST(Html, APageOfOneTableOrSeveralHasAnOutline) {
  for (const bool several : {false, true}) {
    const Scratch folder;
    std::vector<Json> records = drifting_study();
    if (several) {
      for (Json record : drifting_study()) {
        record["parameters"]["workload"] = "mnist-mlp";
        record["point"] = "mlp," + record["point"].get<std::string>();
        records.push_back(record);
      }
    }
    store(folder / "quick", records);
    const std::string page = make_page(folder / "quick");
    EXPECT_EQ(count(page, "<main>"), 1U);
    EXPECT_LT(page.find("<main>"), page.find("<h1>"));
    EXPECT_EQ(count(page, "<h1"), 1U);
    EXPECT_GE(count(page, "<h2>"), several ? 2U : 1U);
    EXPECT_EQ(count(page, "<h3>"), count(page, "</h3>"));
    int level = 0;
    for (std::size_t at = page.find("<h"); at != std::string::npos; at = page.find("<h", at + 1)) {
      const int next = page[at + 2] - '0';
      if (next < 1 || next > 6) continue;  // <head>, <html>
      EXPECT_LE(next, level + 1) << page.substr(at, 60);
      level = next;
    }
    EXPECT_GT(level, 1);
  }
}

TEST(Html, NamesFromRecordsAreOnlyText) {
  const Scratch folder;
  std::vector<Json> records = drifting_study();
  for (Json& json : records) {
    json["parameters"]["workload"] = "\"><script>alert(1)</script>";
    json["parameters"]["backend"] = "<img src=x onerror='alert(2)'>";
    json["provenance"]["cpu_model"] = "</td></table><b>";
    json["provenance"]["command"] = "paceline train x '--data=<i>' &amp;";
  }
  store(folder / "quick", records);
  const std::string page = make_page(folder / "quick");
  EXPECT_EQ(complaint(page), "");
  EXPECT_EQ(count(page, "<script"), 1U);  // ours
  expect_no_parts(page, {"<script>alert", "<img", "<b>", "<i>", "onerror='"});
  expect_parts(page, {"&lt;script&gt;alert(1)", "&amp;amp;"});
}

TEST(Html, GapsAndCommandsAreThere) {
  const Scratch folder;
  std::vector<Json> records = drifting_study();
  for (Json& json : records) {
    json["provenance"]["command"] =
        "/opt/bin/paceline train mnist-cnn --gpus=2 --quiet --store=x '--context={\"a\": 1}'";
  }
  Json failed = sample_record({.gpus = 4});
  failed["status"] = "failed";
  records.push_back(failed);
  store(folder / "quick", records);
  const std::string page = make_page(folder / "quick");
  EXPECT_EQ(count(page, "<tr class=\"gap\">"), 1U);
  expect_parts(page, {"<code>paceline train mnist-cnn --gpus=2</code>"});
}

TEST(Html, RowsOfSeveralMachinesStandBelowTheirNames) {
  Section section{.table = {.columns = {{.key = "point", .is_text = true},
                                        {.key = "system", .is_text = true, .is_layout = true}}}};
  for (const char* size : {"1 GPU", "2 GPUs"}) {
    for (const std::string machine : {"lumi", "mahti"}) {
      section.table.rows.push_back({{machine + ", " + size}, {machine}});
    }
  }
  const auto page = [&] { return to_html(Document{.name = "report", .sections = {section}}); };
  const std::string text = page();
  EXPECT_EQ(count(text, "<th scope=\"rowgroup\""), 2U) << text;
  EXPECT_EQ(count(text, ">1 GPU</td>"), 2U) << "the name is in the heading";
  EXPECT_LT(text.find(">2 GPUs</td>"), text.find(">mahti</th>"));
  for (auto& row : section.table.rows) row[1].text = "lumi";
  EXPECT_EQ(count(page(), "rowgroup\""), 1U) << "in the style alone";
}

std::string base64(const std::string& hexadecimal) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < hexadecimal.size(); at += 3) {  // three digits, two of base64
    std::string part = hexadecimal.substr(at, 3);
    const std::size_t known = part.size();
    part.resize(3, '0');
    const std::size_t bits = std::stoul(part, nullptr, 16);
    text += kDigits[bits >> 6U];
    if (known > 1) text += kDigits[bits & 63U];
  }
  while (text.size() % 4 != 0) text += '=';
  return text;
}

TEST(Html, ThePolicyAdmitsOurScriptAlone) {
  const Scratch folder;
  std::ofstream(folder / "script") << kPageScript;
  const std::string in = "cd '" + folder.path().string() + "' && ";
  ASSERT_EQ(std::system((in + "sha256sum script > sum").c_str()), 0);
  std::string sum;
  std::ifstream(folder / "sum") >> sum;
  EXPECT_EQ(kPageScriptHash, "sha256-" + base64(sum));
}

TEST(Html, RowsLinkToTheRecordsOfTheirRuns) {
  const Scratch folder;
  store(folder / "a study", drifting_study());
  ReportOptions options;
  options.out = folder / "page";
  options.plots.clear();
  std::ostringstream printed;
  write_report({folder / "a study"}, options, printed);
  std::stringstream page;
  page << std::ifstream(folder / "page/report.html").rdbuf();
  const std::string text = page.str();
  const std::size_t at = text.find("href=\"../a%20study/");
  ASSERT_NE(at, std::string::npos) << text;
  const std::string path = text.substr(at + 19, text.find('"', at + 6) - at - 19);
  EXPECT_TRUE(fs::exists(folder / "a study" / path)) << path;
  EXPECT_EQ(count(text, ".json\">"), drifting_study().size() + 1);  // and report.json
}

TEST(Html, WithoutPlotsItIsStillAPage) {
  const Scratch folder;
  store(folder / "quick", drifting_study());
  ReportOptions options;
  options.plots.clear();
  const std::string page = make_page(folder / "quick", options);
  EXPECT_EQ(complaint(page), "");
  expect_no_parts(page, {"<svg"});
}

std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    if (std::system((std::string("command -v ") + name + " >/dev/null 2>&1").c_str()) == 0) {
      return name;
    }
  }
  return "";
}

// Asked of the page in the browser; the answer stands in its title.
constexpr char kQuestions[] = R"(<script>
addEventListener('load', () => {
  const wrong = [], root = document.scrollingElement;
  if (root.scrollWidth > innerWidth) wrong.push('wider than the window by ' + (root.scrollWidth - innerWidth));
  for (const each of document.querySelectorAll('h1, h2, h3, p, ul, figure, .wide, pre, details')) {
    const box = each.getBoundingClientRect();
    if (box.width && box.right > innerWidth + 1) wrong.push('sticks out: ' + each.textContent.slice(0, 30));
  }
  for (const svg of document.querySelectorAll('svg')) {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].filter(t => t.textContent.trim())
        .map(t => [t.textContent.trim(), t.getBoundingClientRect()]);
    for (const [text, box] of texts) {
      if (box.left < frame.left - 1 || box.right > frame.right + 1) wrong.push('cut off: ' + text);
    }
    for (let i = 0; i < texts.length; ++i) for (let k = 0; k < i; ++k) {
      const [a, b] = [texts[i][1], texts[k][1]];
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1 && down > Math.min(a.height, b.height) / 3) {
        wrong.push('overlap: ' + texts[i][0] + ' / ' + texts[k][0]);
      }
    }
  }
  for (const link of document.querySelectorAll('a')) {
    const to = link.getAttribute('href');
    if (to.startsWith('#') && !document.getElementById(to.slice(1))) wrong.push('leads nowhere: ' + to);
  }
  wrong.push(...[...document.querySelectorAll('.results')].filter(table => {
    const head = [...table.tHead.rows[0].cells].findIndex(each => each.textContent.includes('speed-up'));
    if (head < 0) return false;
    const shown = () => [...table.tBodies[0].rows].map(row => +row.cells[head].dataset.value).filter(v => v);
    for (const sign of [1, -1]) {
      table.tHead.rows[0].cells[head].querySelector('button').click();
      if (shown().length < 2 || shown().some((v, i, all) => i && sign * (v - all[i - 1]) < 0)) return true;
    }
  }).map(() => 'not sorted'));
  const channel = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = colour => {
    const [r, g, b] = colour.match(/[\d.]+/g).map(Number);
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b) + 0.05;
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  for (const each of document.querySelectorAll('body, .lead, .margin, caption, .rules li, .warning, a')) {
    const ink = light(getComputedStyle(each).color);
    const contrast = Math.max(ink, paper) / Math.min(ink, paper);
    if (contrast < 4.5) wrong.push('hard to read: ' + each.className + ' ' + contrast.toFixed(1));
  }
  const names = [...document.querySelectorAll('svg')].map(svg => svg.getAttribute('aria-label'));
  if (new Set(names).size !== names.length || names.some(name => !name)) wrong.push('pictures alike');
  document.title = 'asked: ' + wrong.join('; ');
});
</script>)";

// A page that scripts may ask, of one colour scheme.
std::string with_questions(std::string page, bool dark) {
  static const std::regex kPolicy("<meta http-equiv=\"Content-Security-Policy\"[^>]*>");
  page = std::regex_replace(page, kPolicy, kQuestions, std::regex_constants::format_first_only);
  static const std::regex kDark("\\(prefers-color-scheme: dark\\)");
  return std::regex_replace(page, kDark, dark ? "all" : "not all");
}

TEST(Html, ABrowserFindsNothingCutOffOverlappingOrPale) {
  const std::string program = browser();
  if (program.empty()) GTEST_SKIP() << "no chromium or google-chrome is installed";
  const Scratch folder;
  store(folder / "quick", drifting_study());
  ReportOptions options;
  options.out = folder / "page";
  std::ostringstream printed;
  write_report({folder / "quick"}, options, printed);
  std::stringstream written;
  written << std::ifstream(folder / "page/report.html").rdbuf();
  for (const char* file : {"report.csv", "report.json", "speedup.svg"}) {
    EXPECT_EQ(count(written.str(), std::string("href=\"") + file), 1U) << file;
    EXPECT_TRUE(fs::exists(folder / "page" / file)) << file;
  }
  for (const bool dark : {false, true}) {
    std::ofstream(folder / "page/asked.html") << with_questions(written.str(), dark);
    for (const int width : {1400, 800, 400}) {
      const std::string command =
          "cd '" + folder.path().string() + "' && HOME=. timeout 45 " + program +
          " --headless --no-sandbox --disable-gpu --user-data-dir=profile --hide-scrollbars "
          "--window-size=" +
          std::to_string(width) + ",1000 --dump-dom page/asked.html > dom.html 2>/dev/null";
      if (std::system(command.c_str()) != 0) GTEST_SKIP() << program << " does not run here";
      std::stringstream dom;
      dom << std::ifstream(folder / "dom.html").rdbuf();
      const std::string text = dom.str();
      const std::size_t at = text.find("<title>asked: ");
      ASSERT_NE(at, std::string::npos) << text.substr(0, 500);
      EXPECT_EQ(text.substr(at + 14, text.find("</title>", at) - at - 14), "")
          << width << (dark ? " dark" : " light");
    }
  }
}

// What a browser makes of the page: it has laid out every picture and row, and painted something.
TEST(Html, ABrowserShowsIt) {
  const std::string program = browser();
  if (program.empty()) GTEST_SKIP() << "no chromium or google-chrome is installed";
  const Scratch folder;
  store(folder / "quick", drifting_study());
  std::ofstream(folder / "page.html") << make_page(folder / "quick");
  const std::string base = "cd '" + folder.path().string() + "' && HOME=. timeout 45 " + program +
                           " --headless --no-sandbox --disable-gpu --user-data-dir=profile "
                           "--hide-scrollbars ";
  const std::string url = "'file://" + (folder / "page.html").string() + "'";
  if (std::system(
          (base + "--window-size=1000,2400 --screenshot=page.png " + url + " >/dev/null 2>&1")
              .c_str()) != 0 ||
      !fs::exists(folder / "page.png")) {
    GTEST_SKIP() << program << " does not run here";
  }
  EXPECT_GT(fs::file_size(folder / "page.png"), 50'000U);  // an empty page has 10,000 bytes
  if (std::system((base + "--dump-dom " + url + " >dom.html 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << program << " did not end in time";
  }
  std::stringstream dom;
  dom << std::ifstream(folder / "dom.html").rdbuf();
  EXPECT_EQ(count(dom.str(), "<svg "), 4U);
  EXPECT_EQ(count(dom.str(), "</figure>"), 4U);
  expect_parts(dom.str(), {"1.80<span class=\"margin\"> ±0.05</span>",
                           "<button title=\"Sort\">"});  // the script ran
  expect_parts(dom.str(), {"</html>"});
}

}  // namespace
}  // namespace paceline
