// Output of NVIDIA's nccl-tests (github.com/NVIDIA/nccl-tests; AMD's rccl-tests print the same):
// comments begin with "#", and a row has the times of a size out of place and in place.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "engine/core/text.h"
#include "results/import/formats.h"
#include "results/import/lines.h"

namespace paceline {

namespace {

constexpr std::size_t kSides = 2;
constexpr const char* kSideNames[kSides] = {"out of place", "in place"};

// One call of a test: a file may have several, as a job's log has.
struct NcclTest {
  std::size_t line = 1;
  std::string operation, iterations;
  std::vector<std::string> hosts;  // one per rank
  std::set<std::string> processes;
  std::set<std::string> gpus;
  std::vector<std::string> header;
  bool has_end = false;
  std::set<std::string> ranks;
  std::string command;                        // the line of its options
  std::string verdict;                        // "4 FAILED": that the data check failed
  std::size_t sizes = 0, expected_sizes = 0;  // rows that were read, and as the options ask
  std::set<std::int64_t> seen[kSides];
  bool repeats_sizes = false;
  double factors = 0;            // busbw / algbw of the largest size
  std::string dtype, reduction;  // "sum", "none"; "" of versions that do not name it
  std::vector<CollectiveRow> rows[kSides];
};

std::string without_suffix(std::string text, std::string_view suffix) {
  if (text.ends_with(suffix)) text.resize(text.size() - suffix.size());
  return text;
}

// What busbw is of algbw on n ranks (nccl-tests, PERFORMANCE.md); empty: not known.
std::optional<double> bus_factor(const std::string& operation, double n) {
  if (operation == "all_reduce") return 2 * (n - 1) / n;
  for (const char* each : {"all_gather", "reduce_scatter", "alltoall", "gather", "scatter"}) {
    if (operation == each) return (n - 1) / n;
  }
  return std::nullopt;
}

class NcclReader {
 public:
  explicit NcclReader(const ForeignFile& file) : file_(file) {}

  ImportContent read() {
    for (const TextLine& line : split_lines(file_.text)) {
      const auto words = split_words(line.text);
      if (words.empty()) continue;
      if (words[0].starts_with('#')) {
        read_comment(line, words);
      } else if (begins_with_count(words) && !tests_.empty() && !test().header.empty()) {
        read_row(line, words);
      }
    }
    refuse_separate_processes();
    for (NcclTest& each : tests_) add(each);
    if (content_.runs.empty()) {
      refuse_line(file_, 1, "the output of nccl-tests has no row of results",
                  "import the complete output");
    }
    content_.tool = version_.empty() ? "nccl-tests" : "nccl-tests " + version_;
    return std::move(content_);
  }

 private:
  NcclTest& test() { return tests_.back(); }

  void begin(std::size_t line) {
    tests_.emplace_back();
    test().line = line;
  }

  void read_comment(const TextLine& line, const std::vector<std::string_view>& words) {
    const std::string_view text = line.text;
    const auto word_after = [&](std::string_view word) -> std::string {
      const auto at = std::find(words.begin(), words.end(), word);
      return at == words.end() || at + 1 == words.end() ? "" : std::string(*(at + 1));
    };
    if (text.find("nccl-tests version") != text.npos) version_ = word_after("version");
    if (text.find("Collective test starting:") != text.npos) {
      begin(line.number);
      test().operation = without_suffix(word_after("starting:"), "_perf");
    } else if (text.find("nThread") != text.npos && text.find("minBytes") != text.npos) {
      if (tests_.empty() || !test().iterations.empty()) begin(line.number);
      const auto warm = std::find(words.begin(), words.end(), "warmup");
      const auto iters = std::find(warm == words.end() ? warm : warm + 3, words.end(), "iters:");
      test().iterations = iters == words.end() || iters + 1 == words.end() ? "1" : *(iters + 1);
      test().command = text;
      test().expected_sizes =
          count_sizes(word_after("minBytes"), word_after("maxBytes"), word_after("step:"));
    } else if (tests_.empty()) {
      return;
    } else if (words.size() > 1 && words[1] == "Rank" && text.find(" on ") != text.npos) {
      if (test().has_end) begin(line.number);  // of a log that lacks the headings
      if (!test().ranks.insert(word_after("Rank")).second) refuse_separate(line.number);
      read_rank(text, word_after("Pid"), word_after("on"));
    } else if (word_after("#") == "size" && text.find("count") != text.npos) {
      test().header.assign(words.begin() + 1, words.end());
      if (std::find(words.begin(), words.end(), "cputime") != words.end()) {
        refuse_line(file_, line.number,
                    "the test printed CPU time (-C 1), which is not that of a call",
                    "run it without -C");
      }
    } else if (text.find("Out of bounds values") != text.npos) {
      if (text.find("FAILED") != text.npos) test().verdict = trim(text.substr(1, 100));
    } else if (text.find("Avg bus bandwidth") != text.npos) {
      test().has_end = true;
    }
  }

  // From "1048576", "4194304", "2(factor)" or "1048576(bytes)"; 0: not known.
  static std::size_t count_sizes(const std::string& least, const std::string& most,
                                 const std::string& step) {
    const auto from = to_integer(least), to = to_integer(most);
    const auto by = to_integer(step.substr(0, step.find('(')));
    if (!from || !to || !by || *from < 1 || *to < *from || *by < 1) return 0;
    if (step.ends_with("(bytes)")) return static_cast<std::size_t>((*to - *from) / *by + 1);
    if (!step.ends_with("(factor)") || *by < 2) return 0;
    std::size_t sizes = 1;
    for (std::int64_t size = *from; size <= *to / *by; size *= *by) ++sizes;
    return sizes;
  }

  [[noreturn]] void refuse_separate(std::size_t line) const {
    refuse_line(file_, line, "the output is of processes that ran separately, as each has a rank 0",
                "build nccl-tests with MPI=1, and start it again");
  }

  // Their outputs mix, or stand one after the other.
  void refuse_separate_processes() const {
    const auto is_without_rows = [](const NcclTest& each) {
      return !each.ranks.empty() && each.sizes == 0;
    };
    const bool some_without = std::any_of(tests_.begin(), tests_.end(), is_without_rows);
    std::map<std::string, int> alone;  // tests of one rank, by their options
    for (const NcclTest& each : tests_) {
      if (some_without && each.repeats_sizes) refuse_separate(each.line);
      if (each.hosts.size() == 1 && ++alone[each.operation + each.command] > 1) {
        refuse_separate(each.line);
      }
    }
  }

  // "#  Rank  0 Group  0 Pid 204199 on  nid005471 device  0 [0009:01:00] NVIDIA GH200 120GB"
  void read_rank(std::string_view text, const std::string& pid, const std::string& host) {
    test().hosts.push_back(host);
    test().processes.insert(host + " " + pid);
    const std::size_t bracket = text.find(']');
    if (bracket != text.npos) test().gpus.emplace(trim(text.substr(bracket + 1)));
  }

  void read_row(const TextLine& line, const std::vector<std::string_view>& words) {
    const std::vector<std::string>& header = test().header;
    check_width(words, header, file_, line.number);
    CollectiveRow common;
    std::size_t side = 0;
    ++test().sizes;
    for (std::size_t i = 0; i < header.size(); ++i) {
      const std::string& name = header[i];
      if (name == "size") common.bytes = to_integer(words[i]).value_or(0);
      if (name == "count") common.count = to_integer(words[i]).value_or(0);
      if (name == "type") test().dtype = element_type(words[i]).name;
      if (name == "redop") test().reduction = words[i].substr(0, 20);
      if (name != "time") continue;
      if (side == kSides || i + 2 >= header.size()) break;
      if (common.bytes > 0) {
        const bool has_check = i + 3 < words.size();
        read_time(line, common, {words[i], words[i + 1], words[i + 2]},
                  {has_check ? header[i + 3] : "", has_check ? words[i + 3] : ""}, side);
      }
      ++side;
    }
  }

  struct Measured {
    std::string_view time, algbw, busbw;
  };

  // "#wrong" of versions since 2.12, before them "error", the largest difference.
  struct DataCheck {
    std::string heading;
    std::string_view value;
  };

  static void read_check(const DataCheck& check, CollectiveRow& row) {
    const std::string value = to_lower(check.value);
    const auto number = to_real(value);
    const bool is_infinite = value.find("nan") != value.npos || value.find("inf") != value.npos;
    const bool counts = check.heading == "#wrong" && number && *number >= 0;
    if (counts && *number < 9e15) row.wrong = std::llround(*number);
    if (is_infinite || (counts && *number > 0)) {
      row.first_wrong = fmt::format("{} {}", check.heading, check.value.substr(0, 20));
    }
  }

  void read_time(const TextLine& line, CollectiveRow row, const Measured& words,
                 const DataCheck& check, std::size_t side) {
    if (words.time == "N/A") return;
    row.seconds = kMicro * positive_number(words.time, "time", file_, line.number);
    row.count = std::max<std::int64_t>(row.count, 1);
    row.samples = 1;
    row.calls_per_sample = to_integer(test().iterations).value_or(1);
    const double algbw = static_cast<double>(row.bytes) / row.seconds;
    // Printed with two digits.
    const double printed = to_real(words.algbw).value_or(-1) * kGiga;
    if (!(std::abs(printed - algbw) <= 0.02 * algbw + 0.006 * kGiga)) {
      refuse_line(file_, line.number,
                  fmt::format("size, time {} us and algbw {} GB/s contradict each other",
                              words.time.substr(0, 40), words.algbw.substr(0, 40)),
                  "remove the damaged line or import the complete file");
    }
    row.algbw_bytes_per_second = algbw;
    const double busbw = to_real(words.busbw).value_or(0) * kGiga;
    if (busbw > 0) row.busbw_bytes_per_second = busbw;
    if (printed > kGiga) test().factors = busbw / printed;
    read_check(check, row);
    test().repeats_sizes |= !test().seen[side].insert(row.bytes).second;
    test().rows[side].push_back(row);
  }

  // Versions before 2.14 do not name it. Of reductions on ranks that all have the result, the ratio
  // of bandwidths tells all_reduce from reduce_scatter.
  void name_operation(NcclTest& each) const {
    const auto n = static_cast<double>(each.hosts.size());
    if (!each.operation.empty() || each.reduction.empty() || each.reduction == "none" || n < 3 ||
        each.factors == 0)
      return;
    for (const char* operation : {"all_reduce", "reduce_scatter"}) {
      if (std::abs(*bus_factor(operation, n) - each.factors) < 0.05) each.operation = operation;
    }
  }

  void add(NcclTest& each) {
    name_operation(each);
    add_notes(each);
    for (std::size_t side = 0; side < kSides; ++side) {
      if (each.rows[side].empty()) continue;
      ImportedRun& run = content_.runs.emplace_back();
      run.line = each.line;
      RunRecord& record = run.record;
      const auto ranks = static_cast<int>(each.hosts.size());
      if (ranks > 0) {
        set_replicas(record, ranks);
        record.layout.nodes =
            static_cast<int>(std::set(each.hosts.begin(), each.hosts.end()).size());
        record.layout.ntasks = static_cast<int>(each.processes.size());
      }
      record.layout.replicas_are = "gpus";
      record.provenance.hosts = each.hosts;
      record.provenance.hardware = join({each.gpus.begin(), each.gpus.end()}, ", ");
      record.provenance.backend_requested = "NCCL";
      CollectiveFacts& facts = record.collective.emplace();
      facts.operation = each.operation;
      facts.dtype = each.dtype;
      const bool is_plain =
          each.reduction.empty() || each.reduction == "sum" || each.reduction == "none";
      facts.placement = kSideNames[side];
      facts.note = fmt::format("{}; mean of {} calls{}{}", facts.placement, each.iterations,
                               is_plain ? "" : "; reduction " + each.reduction,
                               each.has_end ? "" : "; the output has no end, so the test was cut");
      if (lacks_rows(each)) {
        facts.note += fmt::format("; {} of {} sizes have a row", each.sizes, each.expected_sizes);
      }
      facts.rows = std::move(each.rows[side]);
      report_failed_checks(facts, each.verdict, content_.notes);
      if (const auto factor = bus_factor(each.operation, ranks); factor && *factor > 0) {
        for (CollectiveRow& row : facts.rows) {
          row.busbw_bytes_per_second = *row.algbw_bytes_per_second * *factor;
        }
      }
      keep_rows(facts, content_.notes);
    }
  }

  static bool lacks_rows(const NcclTest& each) {
    return each.has_end && each.sizes < each.expected_sizes;
  }

  void add_notes(const NcclTest& each) {
    if (each.sizes == 0) return;
    if (each.hosts.size() == 1) {
      content_.notes.push_back(
          fmt::format("warning: the test at line {} is of 1 rank, which sends nothing; if there "
                      "were more, build nccl-tests with MPI=1",
                      each.line));
    }
    if (lacks_rows(each)) {
      content_.notes.push_back(
          fmt::format("warning: the test at line {} has {} of {} sizes; other rows are missing, or "
                      "stand behind other text of their line",
                      each.line, each.sizes, each.expected_sizes));
    }
  }

  const ForeignFile& file_;
  std::vector<NcclTest> tests_;
  std::string version_;
  ImportContent content_;
};

}  // namespace

ImportFormat nccl_tests_format() {
  return {.name = "nccl-tests",
          .what = "output of nccl-tests or rccl-tests",
          .example = "all_reduce.txt --study links",
          .is_one =
              [](std::string_view text) {
                return text.find("# Avg bus bandwidth") != text.npos ||
                       text.find("# nThread") != text.npos ||
                       (text.find("algbw") != text.npos && text.find("busbw") != text.npos);
              },
          .read = [](const ForeignFile& file) { return NcclReader(file).read(); }};
}

}  // namespace paceline
