// Output of the OSU Micro-Benchmarks (mvapich.cse.ohio-state.edu/benchmarks): a title, headings
// that begin with "# Size", and a row a size. Times are in microseconds, rates in 1e6 bytes per
// second.
#include <fmt/format.h>

#include <algorithm>

#include "engine/core/text.h"
#include "results/import/formats.h"
#include "results/import/lines.h"

namespace paceline {

namespace {

struct OsuTest {
  std::size_t line = 1;
  std::string title;  // "Allreduce Latency"
  std::string library, version, datatype;
  std::string verdict;  // that the data check failed
  std::vector<std::string> header;
  std::size_t width = 0;  // of the rows
  std::vector<CollectiveRow> rows;
};

// "Allreduce Latency" is all_reduce, as nccl-tests and `paceline bench` name it.
std::string parse_operation(const std::string& title) {
  static const std::pair<const char*, const char*> kNames[] = {
      {"Allreduce Latency", "all_reduce"},
      {"Allgather Latency", "all_gather"},
      {"Broadcast Latency", "broadcast"},
      {"Reduce Latency", "reduce"},
      {"Reduce_scatter Latency", "reduce_scatter"},
      {"Gather Latency", "gather"},
      {"Scatter Latency", "scatter"},
      {"All-to-All Personalized Exchange Latency", "alltoall"},
      {"Latency", "point_to_point"},
      {"Bandwidth", "stream"},
      {"Bi-Directional Bandwidth", "stream_both_ways"}};
  for (const auto& [known, operation] : kNames) {
    if (title == known) return operation;
  }
  return "";
}

// Headings are separated by two blanks or more, and "Latency (us)" has one in it.
std::vector<std::string> parse_headings(std::string_view line) {
  std::vector<std::string> headings;
  for (std::size_t at = line.find_first_not_of("# \t"); at < line.size();) {
    const std::size_t end = std::min({line.find("  ", at), line.find('\t', at), line.size()});
    headings.emplace_back(line.substr(at, end - at));
    at = line.find_first_not_of(" \t", end);
  }
  return headings;
}

class OsuReader {
 public:
  explicit OsuReader(const ForeignFile& file) : file_(file) {}

  ImportContent read() {
    for (const TextLine& line : split_lines(file_.text)) {
      const auto words = split_words(line.text);
      if (words.size() > 3 && words[0] == "#" && words[1] == "OSU") {
        begin(line.number, words);
      } else if (tests_.empty() || words.empty()) {
        continue;
      } else if (line.text.starts_with("# Datatype:") && words.size() > 2) {
        begin_type();
        test().datatype = words[2].substr(0, words[2].find_last_not_of('.') + 1);
      } else if (line.text.find("VALIDATION ERROR") != line.text.npos) {
        test().verdict = line.text.substr(0, 100);
      } else if (line.text.starts_with("# Size")) {
        test().header = parse_headings(line.text);
        check_header(line.number);
      } else if (begins_with_count(words) && !test().header.empty()) {
        read_row(line.number, words);
      }
    }
    std::erase_if(tests_, [](const OsuTest& each) { return each.rows.empty(); });
    if (tests_.empty()) {
      refuse_line(file_, 1, "the output of the OSU benchmarks has no row of results",
                  "import the complete output");
    }
    for (OsuTest& each : tests_) add(each);
    if (no_bytes_ > 0) content_.notes.emplace_back("rows of 0 bytes are left out");
    content_.tool = "OSU Micro-Benchmarks " + tests_.back().version;
    return std::move(content_);
  }

 private:
  OsuTest& test() { return tests_.back(); }

  // "# OSU MPI-CUDA Allreduce Latency Test v7.4"
  void begin(std::size_t line, const std::vector<std::string_view>& words) {
    tests_.emplace_back();
    test().line = line;
    test().library = words[2];
    std::vector<std::string> title(words.begin() + 3, words.end());
    if (title.back().starts_with("v")) {
      test().version = title.back().substr(1);
      title.pop_back();
    }
    if (!title.empty() && title.back() == "Test") title.pop_back();
    test().title = join(title, " ");
  }

  // Of -T, which runs a test with one type after the other.
  void begin_type() {
    if (test().rows.empty()) return;
    OsuTest next = test();
    next.rows.clear();
    next.verdict.clear();
    tests_.push_back(std::move(next));
  }

  void check_header(std::size_t line) {
    const std::vector<std::string>& header = test().header;
    const std::string second = header.size() > 1 ? header[1] : "";
    const bool known =
        second == "Avg Latency(us)" || second == "Latency (us)" || second == "Bandwidth (MB/s)";
    if (known && !parse_operation(test().title).empty()) return;
    refuse_line(file_, line,
                fmt::format("the OSU test \"{}\" cannot be imported", test().title.substr(0, 80)),
                "import latency, bw, bibw, or a blocking collective such as osu_allreduce");
  }

  void read_row(std::size_t line, const std::vector<std::string_view>& words) {
    const std::vector<std::string>& header = test().header;
    check_width(words, header, test().width, file_, line);
    CollectiveRow row{.bytes = to_integer(words[0]).value_or(0)};
    if (row.bytes == 0) {
      ++no_bytes_;
      return;
    }
    if (std::ranges::find(test().rows, row.bytes, &CollectiveRow::bytes) != test().rows.end()) {
      refuse_line(file_, line,
                  fmt::format("the size {} is there twice: the output is of processes that ran "
                              "separately",
                              row.bytes),
                  "start them with the launcher of their MPI library, an output a run");
    }
    const int element = element_type(test().datatype).bytes;
    row.count = element > 0 ? std::max<std::int64_t>(row.bytes / element, 1) : row.bytes;
    row.samples = 1;
    for (std::size_t i = 1; i < header.size(); ++i) {
      const std::string& name = header[i];
      const auto microseconds = [&] {
        return kMicro * positive_number(words[i], name, file_, line);
      };
      if (name == "Avg Latency(us)" || name == "Latency (us)") row.seconds = microseconds();
      if (name == "Min Latency(us)") row.seconds_min = microseconds();
      if (name.starts_with("P95 ")) row.seconds_p95 = microseconds();
      if (name == "Iterations") row.calls_per_sample = to_integer(words[i]);
      if (name == "Validation" && words[i] == "Pass") row.wrong = 0;
      if (name == "Validation" && words[i] != "Pass") row.first_wrong = words[i].substr(0, 40);
      if (name != "Bandwidth (MB/s)") continue;
      row.seconds =
          static_cast<double>(row.bytes) / (kMega * positive_number(words[i], name, file_, line));
    }
    row.algbw_bytes_per_second = static_cast<double>(row.bytes) / row.seconds;
    test().rows.push_back(row);
  }

  // Each size is twice the one before.
  void note_gap(const OsuTest& each) {
    for (std::size_t i = 1; i < each.rows.size(); ++i) {
      const std::int64_t before = each.rows[i - 1].bytes, after = each.rows[i].bytes;
      if (after <= 2 * before) continue;
      content_.notes.push_back(fmt::format(
          "between {} and {} bytes there are no rows; are they missing, or behind other "
          "text of their line?",
          before, after));
      return;
    }
  }

  void add(OsuTest& each) {
    note_gap(each);
    ImportedRun& run = content_.runs.emplace_back();
    run.line = each.line;
    RunRecord& record = run.record;
    record.provenance.backend_requested = each.library;
    CollectiveFacts& facts = record.collective.emplace();
    facts.operation = parse_operation(each.title);
    facts.dtype = element_type(each.datatype).name;
    const bool between_two = each.title == "Latency" || each.title.ends_with("Bandwidth");
    facts.note = each.title.ends_with("Bandwidth")
                     ? "time of a message in a stream of messages: bytes / rate"
                 : between_two ? "one way, between two ranks"
                               : "mean over ranks and calls";
    if (between_two) set_replicas(record, 2);
    facts.rows = std::move(each.rows);
    report_failed_checks(facts, each.verdict, content_.notes);
    keep_rows(facts, content_.notes);
  }

  const ForeignFile& file_;
  std::vector<OsuTest> tests_;
  std::size_t no_bytes_ = 0;
  ImportContent content_;
};

}  // namespace

ImportFormat osu_format() {
  return {.name = "osu",
          .what = "output of the OSU Micro-Benchmarks",
          .example = "osu_allreduce.txt --study links --set gpus=64 --set nodes=16",
          .is_one = [](std::string_view text) { return text.find("# OSU ") != text.npos; },
          .read = [](const ForeignFile& file) { return OsuReader(file).read(); }};
}

}  // namespace paceline
