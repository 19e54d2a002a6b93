// The figures of speed on the README and in docs/, against the committed records: each is computed
// here and looked for on its page, and no other claim of "N times" may stand there. A figure is the
// range over sessions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/study/comparison.h"
#include "analysis/table/table.h"
#include "engine/core/text.h"
#include "results/csv.h"
#include "tests/support/ratios.h"

namespace paceline {
namespace {

using nlohmann::json;
using nlohmann::operator""_json_pointer;

std::string file_text(const std::string& path) {
  std::ifstream stream(std::string(PACELINE_SOURCE_DIR) + "/" + path);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

// What `key` leads to.
json records_in(const std::string& path, const json::json_pointer& key) {
  return json::parse(file_text("results/comparisons/" + path)).at(key);
}

// In one line.
std::string page(const std::string& path) {
  return std::regex_replace(file_text(path), std::regex("\\s+"), " ");
}

struct Span {
  double low = std::numeric_limits<double>::infinity(), high = 0;

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// Two digits: "1.3", "12", "290".
std::string two_digits(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  const double rounded = std::round(value / unit) * unit;
  if (unit < 1) return fmt::format("{:.1f}", rounded);
  std::string digits = fmt::format("{:.0f}", rounded);
  if (digits.size() > 3) digits.insert(digits.size() - 3, ",");
  return digits;
}

std::string to_text(const Span& span) {
  return two_digits(span.low) + " to " + two_digits(span.high);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// --- Training steps beside the fastest peer (tests/peers/compare.py says how it is chosen).

struct PeerCell {
  std::string workload, precision, peer;
  int batch = 0, threads = 0;
  double ours = 0, theirs = 0, ratio = 0;
  Span rounds{};
};

std::vector<PeerCell> peer_cells(const std::string& path) {
  std::vector<PeerCell> cells;
  for (const json& each : records_in(path, "/cells"_json_pointer)) {
    std::size_t most = 0;
    std::vector<double> ours;
    for (const auto& [peer, pairs] : each["pairs"].items()) most = std::max(most, pairs.size());
    PeerCell cell{each["cell"][0], each["cell"][1], "", each["cell"][2], each["cell"][3]};
    for (const auto& [peer, pairs] : each["pairs"].items()) {
      std::vector<double> theirs, ratios;
      for (const json& pair : pairs) {
        ours.push_back(pair["ours"]);
        theirs.push_back(pair["theirs"]);
        ratios.push_back(theirs.back() / ours.back());
      }
      if (pairs.size() < most || (!cell.peer.empty() && median(ratios) >= cell.ratio)) continue;
      cell.peer = peer;
      cell.theirs = median(theirs);
      cell.ratio = median(ratios);
      cell.rounds = {};
      for (const double ratio : ratios) cell.rounds.add(ratio);
    }
    cell.ours = median(ours);
    cells.push_back(cell);
  }
  return cells;
}

// --- The all-reduce of two ranks of a node.

using Seconds = std::map<std::string, double>;  // by backend, and of memcpy

// Of the records, and of the table of another session in docs/backends.md.
std::vector<std::map<std::int64_t, Seconds>> allreduce_sessions() {
  std::map<std::int64_t, Seconds> recorded, printed;
  for (const char* backend : {"gloo", "mpi", "ring"}) {
    for (const json& row : records_in(fmt::format("allreduce/backend={}/1.1.json", backend),
                                      "/collective/rows"_json_pointer)) {
      Seconds& seconds = recorded[row["bytes"]];
      seconds[backend] = row["seconds"];
      if (std::string_view(backend) == "ring") seconds["memcpy"] = row["memcpy_seconds"];
    }
  }
  const std::regex row("\n +([0-9]+)((?: +[0-9.]+){6})");
  const std::string text = file_text("docs/backends.md");
  for (auto it = std::sregex_iterator(text.begin(), text.end(), row); it != std::sregex_iterator();
       ++it) {
    std::vector<std::string> cells = split((*it)[2].str(), ' ');
    std::erase(cells, "");
    Seconds& seconds = printed[std::stoll((*it)[1])];
    const char* const columns[] = {"memcpy", "gloo", "mirrored", "mpi", "mpi-ring", "ring"};
    for (std::size_t i = 0; i < 6; ++i) seconds[columns[i]] = std::stod(cells[i]);
  }
  return {recorded, printed};
}

Span over_ring(const std::string& other, std::int64_t from, std::int64_t to) {
  Span span;
  for (const auto& session : allreduce_sessions()) {
    for (const auto& [bytes, seconds] : session) {
      if (from <= bytes && bytes <= to) span.add(seconds.at(other) / seconds.at("ring"));
    }
  }
  return span;
}

constexpr std::int64_t kKilo = 1024, kMega = kKilo * kKilo;

// --- The quick study.

struct QuickRow {
  std::vector<double> seconds, rates, over;  // over: the base's seconds in the same round
};

// By backend and CPUs of a task, of the first or the second session.
std::map<std::string, QuickRow> quick_rows(std::size_t session) {
  const auto rows = parse_csv(file_text("results/comparisons/quick.csv"), "quick.csv");
  std::vector<std::string> sessions;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::string& name = rows[i].cells[0];
    if (sessions.empty() || sessions.back() != name) sessions.push_back(name);
  }
  std::map<std::string, double> bases;  // by round and CPUs of a replica
  std::map<std::string, QuickRow> found;
  for (const bool is_base : {true, false}) {
    for (const CsvRow& row : rows) {
      const auto& cell = row.cells;
      if (cell[0] != sessions[session] || (cell[2] == "1") != is_base) continue;
      const double seconds = std::stod(cell[5]);
      if (is_base) bases[cell[1] + " " + cell[3]] = seconds;
      QuickRow& into = found[cell[4] + " " + cell[3]];
      into.seconds.push_back(seconds);
      into.rates.push_back(std::stod(cell[6]));
      // Two replicas have a core each.
      into.over.push_back(std::log((is_base ? seconds : bases.at(cell[1] + " 1")) / seconds));
    }
  }
  return found;
}

double speed_up(const QuickRow& row) {
  return paired_ratio(row.over).estimate.value;
}

// --- Figures and their pages.

struct Figure {
  std::string page, text;
};

// As Markdown has them.
std::string escaped_brackets(const std::string& cell) {
  return std::regex_replace(cell, std::regex("[\\[\\]]"), "\\$&");
}

void add_quick(std::vector<Figure>& all) {
  const auto first = quick_rows(0), second = quick_rows(1);
  for (const auto& [name, row] : first) {
    const std::string backend = split(name, ' ')[0];
    const bool is_base = backend == "self";
    const int cpus = is_base ? std::stoi(split(name, ' ')[1]) : 1;
    const std::string begin =
        fmt::format("| {}, {}, {} each | {} |", backend, counted(is_base ? 1 : 2, "replica"),
                    counted(cpus, "CPU"), measured_cell(geometric_mean(row.seconds)).text);
    for (const char* on : {"README.md", "docs/quick.md"}) all.push_back({on, begin});
    if (is_base) continue;
    const Estimate ratio = paired_ratio(row.over).estimate;
    const Estimate fraction = karp_flatt(ratio, 2);
    const Interval interval{ratio.interval->low / 2, ratio.interval->high / 2};
    const std::string ratios =
        fmt::format("| {} | {} |", estimate_cell(ratio, 2).text,
                    percent_estimate(Estimate{ratio.value / 2, interval, ratio.count}, 1).text);
    for (const char* on : {"README.md", "docs/quick.md"}) all.push_back({on, ratios});
    const std::string cell = estimate_cell(fraction, fraction_digits(fraction)).text;
    all.push_back({"docs/quick.md", fmt::format("| {} |", escaped_brackets(cell))});
  }
  std::vector<std::string> ranges;
  for (const char* name : {"mirrored 2", "ring 1", "mpi 1", "gloo 1"}) {
    double low = speed_up(first.at(name)), high = speed_up(second.at(name));
    if (low > high) std::swap(low, high);
    ranges.push_back(fmt::format("{:.2f} and {:.2f}", low, high));
  }
  all.push_back(
      {"README.md", fmt::format("Two sessions gave speed-ups of {} (`mirrored`), {} (`ring`), {} "
                                "(`mpi`) and {} (`gloo`)",
                                ranges[0], ranges[1], ranges[2], ranges[3])});
}

void add_peers(std::vector<Figure>& all) {
  Span sessions, second;
  for (const PeerCell& cell : peer_cells("mnist-peers.json")) {
    sessions.add(cell.ratio);
    all.push_back(
        {"docs/performance.md",
         fmt::format("| {} | {} | {} | {:.3f} | {} | {:.3f} | **{:.2f}** | {:.2f} to {:.2f} |",
                     cell.workload, cell.batch, cell.threads, 1e3 * cell.ours, cell.peer,
                     1e3 * cell.theirs, cell.ratio, cell.rounds.low, cell.rounds.high)});
  }
  for (const PeerCell& cell : peer_cells("mnist-peers-one-round.json")) {
    sessions.add(cell.ratio);
    second.add(cell.ratio);
  }
  all.push_back({"docs/performance.md",
                 fmt::format("{} times as fast, over two sessions, as that of the fastest of "
                             "PyTorch",
                             to_text(sessions))});
  all.push_back({"docs/performance.md", "gave " + to_text(second)});
}

void add_resnet(std::vector<Figure>& all) {
  std::map<std::string, Span> rounds;
  for (const PeerCell& cell : peer_cells("resnet50-peers.json")) {
    rounds[cell.precision] = cell.rounds;
    all.push_back({"docs/performance.md",
                   fmt::format("| {} | {} | {:.0f} | {} | {:.0f} | **{:.2f}** | {:.2f} to {:.2f} |",
                               cell.workload, cell.precision, 1e3 * cell.ours, cell.peer,
                               1e3 * cell.theirs, cell.ratio, cell.rounds.low, cell.rounds.high)});
  }
  all.push_back({"docs/performance.md",
                 fmt::format("{:.2f} to {:.2f} times in fp32 and {:.2f} to {:.2f} times in bf16, "
                             "over three rounds of one session",
                             rounds["fp32"].low, rounds["fp32"].high, rounds["bf16"].low,
                             rounds["bf16"].high)});
  std::vector<std::string> medians;
  for (const json& row : records_in("resnet50-pytorch-zen4.json", "/rows"_json_pointer)) {
    const double ratio = row["ratio_median"];
    EXPECT_NEAR(ratio, median(row["ratios"].get<std::vector<double>>()), 1e-9);
    medians.push_back(fmt::format("{:.2f} in {}", ratio, row["precision"].get<std::string>()));
  }
  ASSERT_EQ(medians.size(), 2U);
  all.push_back({"docs/performance.md", "gave " + medians[0] + " and " + medians[1]});
}

void add_gpt2(std::vector<Figure>& all) {
  for (const PeerCell& cell : peer_cells("gpt2-peers.json")) {
    const std::string shape = cell.batch == 1 ? "1 x 1,024" : "4 x 256";
    all.push_back({"docs/performance.md",
                   fmt::format("| {} | {} | {:.0f} | {} | {:.0f} | **{:.2f}** | {:.2f} to {:.2f} |",
                               shape, cell.precision, 1e3 * cell.ours, cell.peer, 1e3 * cell.theirs,
                               cell.ratio, cell.rounds.low, cell.rounds.high)});
  }
}

// What the all-reduce costs ResNet-50, of the rounds in resnet50-null.md.
void add_null(std::vector<Figure>& all) {
  std::string text;
  const std::string table = file_text("results/comparisons/resnet50-null.md");
  for (const std::string precision : {"fp32", "bf16"}) {
    std::smatch row;
    const std::regex pattern("\\| " + precision +
                             " \\| ([0-9]+) \\|[^|\n]*\\|[^|\n]*\\|([0-9. ]+)\\|");
    ASSERT_TRUE(std::regex_search(table, row, pattern));
    std::vector<double> logarithms;
    for (const std::string& cell : split(row[2].str(), ' ')) {
      if (!cell.empty()) logarithms.push_back(std::log(std::stod(cell)));
    }
    ASSERT_EQ(logarithms.size(), std::stoul(row[1]));
    const Estimate mean = paired_ratio(logarithms).estimate;
    text += fmt::format("{}{:.2f} [{:.2f}, {:.2f}] in {} ({} rounds", text.empty() ? "" : ") and ",
                        mean.value, mean.interval->low, mean.interval->high, precision,
                        logarithms.size());
  }
  all.push_back({"docs/performance.md", text});
}

// Of one card, in bf16: steps of PyTorch over Paceline's.
void add_h200(std::vector<Figure>& all) {
  const auto ours = [](const char* name) {
    return records_in(fmt::format("h200/{}.json", name), "/timing/step_seconds/0/p50"_json_pointer)
        .get<double>();
  };
  const auto theirs = [](const char* name, const json::json_pointer& key) {
    return records_in(fmt::format("h200/pytorch-{}.json", name), key).get<double>();
  };
  const auto of_resnet = [&](const char* name) {
    return theirs(name, "/median_step_seconds"_json_pointer) / ours("peers-ours-1");
  };
  // In turns, against the run of ours before each of theirs.
  const double tokens = 32 * 1024, images = 400;
  const double gpt = (tokens / theirs("sustained", "/gpt_tokens_per_second/0"_json_pointer) /
                          ours("sustained-gpt-1") +
                      tokens / theirs("sustained", "/gpt_tokens_per_second/1"_json_pointer) /
                          ours("sustained-gpt-2")) /
                     2;
  const double b400 = images / theirs("sustained", "/b400_images_per_second/0"_json_pointer) /
                      ours("sustained-b400-1");
  all.push_back({"docs/performance.md",
                 fmt::format("ResNet-50 (224 x 224, batch 400) is {:.2f} times and GPT-2 {:.2f} "
                             "times as fast",
                             b400, gpt)});
  all.push_back(
      {"README.md",
       fmt::format("it trains ResNet-50 {:.2f} and GPT-2 {:.2f} times as fast as compiled "
                   "PyTorch",
                   b400, gpt)});
  all.push_back({"docs/gpu.md", fmt::format("| 8,640 images/s | {:.2f} |", b400)});
  all.push_back({"docs/gpu.md", fmt::format("| 556,000 tokens/s | {:.2f} |", gpt)});
  all.push_back({"docs/gpu.md", fmt::format("| 3,466 images/s | {:.2f}; eager {:.2f} |",
                                            of_resnet("reduce"), of_resnet("eager-1"))});
}

void add_allreduce(std::vector<Figure>& all) {
  const auto row = [&](const char* sizes, const char* against, const Span& span, bool faster) {
    all.push_back({"docs/performance.md", fmt::format("| {} | {} | {} times{} |", sizes, against,
                                                      to_text(span), faster ? " as fast" : "")});
  };
  row("4 B to 4 KB", "`mpi` (Open MPI 4.1.4, component tuned)", over_ring("mpi", 4, 4 * kKilo),
      true);
  row("16 to 256 KB", "`mpi`", over_ring("mpi", 16 * kKilo, 256 * kKilo), false);
  row("1 to 256 MB", "`mpi`", over_ring("mpi", kMega, 256 * kMega), false);
  row("16 B to 1 MB", "`gloo`, which waits for the scheduler", over_ring("gloo", 16, kMega), false);
  row("4 to 256 MB", "`gloo`", over_ring("gloo", 4 * kMega, 256 * kMega), false);
  row("256 KB to 256 MB", "memory copies of as many bytes",
      over_ring("memcpy", 256 * kKilo, 256 * kMega), false);
  all.push_back({"docs/performance.md",
                 fmt::format("From 16 KB on, the all-reduce inside a node is {} times as fast as "
                             "MPI_Allreduce of Open MPI 4.1.4, over two sessions",
                             to_text(over_ring("mpi", 16 * kKilo, 256 * kMega)))});
}

void add_links(std::vector<Figure>& all) {
  std::map<std::string, Span> shares;
  for (const json& row : records_in("links.json", "/rows"_json_pointer)) {
    const std::string backend = row["backend"];
    shares[backend == "mpi-ring" ? "ring" : backend].add(row["share_of_bound"]);
  }
  for (const auto& [backend, span] : shares) {
    all.push_back(
        {"docs/performance.md",
         fmt::format("| `{}` | 1 to 16 MB | bandwidth bound | {:.2f} to {:.2f} |",
                     backend == "ring" ? "ring`, `mpi-ring" : backend, span.low, span.high)});
  }
}

// Of two replicas, by the table of the study.
void add_backends(std::vector<Figure>& all) {
  const std::string table = file_text("results/comparisons/backends.md");
  const std::regex row(
      "\\| ([a-z0-9+-]+), 2 replicas \\|[^|\n]*\\| ([0-9.]+)( ±[0-9.]+| "
      "\\\\\\[([0-9.]+), ([0-9.]+)\\\\\\]) \\|");
  int count = 0;
  for (auto it = std::sregex_iterator(table.begin(), table.end(), row);
       it != std::sregex_iterator(); ++it, ++count) {
    const std::string spread = (*it)[4].matched
                                   ? fmt::format(" ({} to {})", (*it)[4].str(), (*it)[5].str())
                                   : (*it)[3].str();
    all.push_back({"docs/performance.md", fmt::format("| {}{} |", (*it)[2].str(), spread)});
  }
  EXPECT_EQ(count, 10);
}

std::vector<Figure> figures() {
  std::vector<Figure> all;
  add_quick(all);
  add_peers(all);
  add_resnet(all);
  add_gpt2(all);
  add_null(all);
  add_h200(all);
  add_allreduce(all);
  add_links(all);
  add_backends(all);
  return all;
}

TEST(Figures, AreThoseOfTheRecords) {
  for (const Figure& figure : figures()) {
    EXPECT_NE(page(figure.page).find(figure.text), std::string::npos)
        << figure.page << " does not have what the records give: " << figure.text;
  }
}

// "3.6 to 12 times", "1.59 times as fast"
TEST(Figures, NoOtherClaimsOfSpeedAreMade) {
  static const std::regex kClaim("[0-9][0-9.,]*(?: to [0-9.,]+)? times");
  for (const char* path :
       {"README.md", "docs/performance.md", "docs/backends.md", "docs/quick.md"}) {
    std::string text = page(path);
    for (const Figure& figure : figures()) {
      if (const auto at = text.find(figure.text); figure.page == path && at != std::string::npos) {
        text.erase(at, figure.text.size());
      }
    }
    // Published, by its own table (results/reference/cassava-resnet50).
    text = std::regex_replace(text, std::regex("1\\.69, 2\\.26 and 2\\.63 times"), "");
    std::smatch claim;
    EXPECT_FALSE(std::regex_search(text, claim, kClaim))
        << path << ": no record stands behind " << claim.str()
        << claim.suffix().str().substr(0, 60);
  }
}

}  // namespace
}  // namespace paceline
