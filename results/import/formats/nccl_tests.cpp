// Output of NVIDIA's nccl-tests (github.com/NVIDIA/nccl-tests; AMD's rccl-tests print the same):
// comments begin with "#", and a row has the times of a size out of place and in place. A file of
// -J has the same as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/core/text.h"
#include "results/import/formats.h"
#include "results/import/lines.h"
#include "results/import/nccl_test.h"

namespace paceline {

namespace {

std::string without_suffix(std::string text, std::string_view suffix) {
  if (text.ends_with(suffix)) text.resize(text.size() - suffix.size());
  return text;
}

bool is_json(std::string_view text) {
  return trim(text.substr(0, 100)).starts_with('{') && text.find("\"alg_bw\"") != text.npos;
}

bool is_time(std::string_view heading) {
  return heading == "time" || heading == "cputime";
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
        read_row(line.number, words);
      } else if (words.size() > 2 && words[0].ends_with("CCL") && words[1] == "version") {
        library_ = fmt::format("{} {}", words[0], words[2]);
      } else if (!tests_.empty()) {
        const std::string text = printable(trim(line.text).substr(0, 100));
        const bool has_failed =
            text.find("Test ") != text.npos && text.find("failure ") != text.npos;
        if (has_failed && test().verdict.empty()) test().verdict = text;
        if (test().text_behind.empty()) test().text_behind = text;
      }
    }
    refuse_separate_processes();
    return finished();
  }

  ImportContent read_json() {
    const JsonDocument document(file_.name, file_.text);
    const Json &json = document.value(), &config = find_member(json, "config");
    begin(1);
    const Json& arguments = find_member(json, "args");
    const std::string program =
        arguments.is_array() && !arguments.empty() ? text_or_empty(arguments[0]) : "";
    if (program.ends_with("_perf")) {
      test().operation = without_suffix(program.substr(program.rfind('/') + 1), "_perf");
    }
    test().started_at = text_or_empty(find_member(json, "start_time"));
    std::replace(test().started_at.begin(), test().started_at.end(), ' ', 'T');
    const auto number = [&](const char* key) { return json_text(find_member(config, key)); };
    const bool is_factor = config.is_object() && config.contains("step_factor");
    test().iterations = number("iterations");
    test().expected_sizes = count_sizes(
        number("minimum_bytes"), number("maximum_bytes"),
        is_factor ? number("step_factor") + "(factor)" : number("step_bytes") + "(bytes)");
    const auto factor = [&](const char* key) {
      return static_cast<std::size_t>(
          std::clamp<std::int64_t>(to_integer(number(key)).value_or(1), 1, 64));
    };
    read_devices(find_member(config, "devices"), factor("nthreads") * factor("ngpus"));
    test().has_end = find_member(json, "average_bus_bandwidth").is_object();
    const Json& bounds = find_member(json, "out_of_bounds");
    if (text_or_empty(find_member(bounds, "okay")) == "false") {
      test().verdict =
          fmt::format("out of bounds: {} FAILED", json_text(find_member(bounds, "count")));
    }
    last_digit_ = 1e-6 * kGiga;
    const Json& results = find_member(json, "results");
    for (std::size_t i = 0; results.is_array() && i < results.size(); ++i) {
      const std::string where = document.where(fmt::format("/results/{}", i));
      const auto line = to_integer(where.substr(where.rfind(':') + 1)).value_or(1);
      read_json_row(results[i], static_cast<std::size_t>(line));
    }
    return finished();
  }

 private:
  NcclTest& test() { return tests_.back(); }

  ImportContent finished() {
    for (NcclTest& each : tests_) add(each);
    if (content_.runs.empty()) {
      for (const NcclTest& each : tests_) {
        if (each.cpu_line == 0) continue;
        refuse_line(file_, each.cpu_line,
                    "the test printed CPU time (-C 1), which is not that of a call, and its "
                    "bandwidths have too few digits to compute that",
                    "run it without -C");
      }
      refuse_line(file_, 1, "the output of nccl-tests has no row of results",
                  "import the complete output");
    }
    content_.tool = version_.empty() ? "nccl-tests" : "nccl-tests " + version_;
    return std::move(content_);
  }

  // Of a process with several GPUs, only the first is listed.
  void read_devices(const Json& devices, std::size_t gpus_per_process) {
    if (!devices.is_array()) return;
    for (const Json& device : devices) {
      test().groups.insert(json_text(find_member(device, "group")));
      read_rank(text_or_empty(find_member(device, "hostname")),
                json_text(find_member(device, "pid")),
                text_or_empty(find_member(device, "device_info")));
    }
    if (test().processes.size() < test().hosts.size()) return;
    std::vector<std::string> hosts;
    for (const std::string& host : test().hosts) {
      hosts.insert(hosts.end(), gpus_per_process, host);
    }
    test().hosts = hosts;
  }

  // As the row that the test prints.
  void read_json_row(const Json& json, std::size_t line) {
    std::vector<std::string> header, cells;
    const auto add_cell = [&](const Json& object, const char* key, const char* heading) {
      const Json& value = find_member(object, key);
      header.emplace_back(heading);
      cells.push_back(value.is_null()     ? "N/A"
                      : value.is_string() ? std::string(trim(text_or_empty(value)))
                                          : json_text(value));
    };
    for (const char* key : {"size", "count", "type", "redop", "root"}) add_cell(json, key, key);
    for (const char* side : {"out_of_place", "in_place"}) {
      const Json& measured = find_member(json, side);
      const bool is_cpu = !find_member(measured, "cpu_time").is_null();
      if (is_cpu) test().cpu_line = line;
      add_cell(measured, is_cpu ? "cpu_time" : "time", "time");
      add_cell(measured, "alg_bw", "algbw");
      add_cell(measured, "bus_bw", "busbw");
      add_cell(measured, "nwrong", "#wrong");
    }
    test().header = header;
    read_row(line, {cells.begin(), cells.end()});
  }

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
    if (text.find("ccl-tests version") != text.npos) version_ = word_after("version");
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
      const std::size_t bracket = text.find(']');
      test().last_rank = std::max(test().last_rank, to_integer(word_after("Rank")).value_or(-1));
      test().groups.insert(word_after("Group"));
      read_rank(word_after("on"), word_after("Pid"),
                bracket == text.npos ? "" : std::string(trim(text.substr(bracket + 1))));
    } else if (words.size() == 2 && words[1] == "in-place") {
      test().first_side = 1;
    } else if (word_after("#") == "size" && text.find("count") != text.npos) {
      test().header.assign(words.begin() + 1, words.end());
      test().width = 0;
      if (std::ranges::count(words, "cputime")) test().cpu_line = line.number;
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
      if (some_without && each.most_rows > 1) refuse_separate(each.line);
      if (each.hosts.size() == 1 && ++alone[each.operation + each.command] > 1) {
        refuse_separate(each.line);
      }
    }
  }

  // "#  Rank  0 Group  0 Pid 204199 on  nid005471 device  0 [0009:01:00] NVIDIA GH200 120GB"
  void read_rank(const std::string& host, const std::string& pid, const std::string& gpu) {
    test().hosts.push_back(host);
    test().processes.insert(host + " " + pid);
    if (!gpu.empty()) test().gpus.insert(gpu);
  }

  void read_row(std::size_t line, const std::vector<std::string_view>& words) {
    const std::vector<std::string>& header = test().header;
    check_width(words, header, test().width, file_, line);
    // The word below a heading from `from` on; of a side, not beyond its last.
    const auto find_word = [&](std::string_view heading, std::size_t from) -> std::string_view {
      for (std::size_t i = from; i < header.size(); ++i) {
        if (header[i] == heading) return words[i];
        if (from > 0 && is_time(header[i])) break;
      }
      return {};
    };
    const auto value = [&](std::string_view heading) { return std::string(find_word(heading, 0)); };
    CollectiveRow row{.bytes = to_integer(value("size")).value_or(0),
                      .count = to_integer(value("count")).value_or(0)};
    if (row.bytes > 0) {
      test().most_rows = std::max(test().most_rows, ++test().rows_of_size[row.bytes]);
    }
    const std::string type = value("type").substr(0, 20);
    if (!type.empty()) test().dtype = element_type(type).name;
    test().reduction = value("redop").substr(0, 20);
    std::vector<std::string> kind = {type, test().reduction, value("root").substr(0, 20)};
    std::erase_if(kind, [](const std::string& each) { return each.empty() || each == "-1"; });
    row.label = join(kind, " ");
    test().kinds.insert(row.label);
    test().text_behind.clear();
    if (++test().sizes == 1) {
      test().behind =
          join({words.begin() + static_cast<std::ptrdiff_t>(header.size()), words.end()}, " ");
    }
    std::size_t side = test().first_side;
    for (std::size_t i = 0; i < header.size() && side < kSides && row.bytes > 0; ++i) {
      if (!is_time(header[i])) continue;
      const char* check = find_word("#wrong", i + 1).empty() ? "error" : "#wrong";
      read_time(line, row, {words[i], find_word("algbw", i + 1), find_word("busbw", i + 1)},
                {check, find_word(check, i + 1)}, side++);
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
    const bool counts = check.heading == "#wrong" && number;
    if (counts && *number >= 0 && *number < 9e15) row.wrong = std::llround(*number);
    if (is_infinite || (counts && *number != 0)) {
      row.first_wrong = fmt::format("{} {}", check.heading, check.value.substr(0, 20));
    }
  }

  void read_time(std::size_t line, CollectiveRow row, const Measured& words, const DataCheck& check,
                 std::size_t side) {
    if (words.time == "N/A") return;
    const double printed = to_real(words.algbw).value_or(-1) * kGiga;
    row.seconds = kMicro * positive_number(words.time, "time", file_, line);
    if (test().cpu_line > 0) {
      // The bandwidth is that of the whole call; from three digits on, it gives its time.
      if (printed < 100 * last_digit_) {
        ++test().coarse_rates;
        return;
      }
      row.seconds = static_cast<double>(row.bytes) / printed;
    }
    row.count = std::max<std::int64_t>(row.count, 1);
    row.samples = 1;
    row.calls_per_sample = to_integer(test().iterations).value_or(1);
    const double algbw = static_cast<double>(row.bytes) / row.seconds;
    // Printed with two digits.
    if (!(std::abs(printed - algbw) <= 0.02 * algbw + 0.006 * kGiga)) {
      refuse_line(file_, line,
                  fmt::format("size, time {} us and algbw {} GB/s contradict each other",
                              words.time.substr(0, 40), words.algbw.substr(0, 40)),
                  "remove the damaged line or import the complete file");
    }
    row.algbw_bytes_per_second = algbw;
    const double busbw = to_real(words.busbw).value_or(0) * kGiga;
    if (busbw > 0) row.busbw_bytes_per_second = busbw;
    if (printed > kGiga) test().factors = busbw / printed;
    read_check(check, row);
    test().rows[side].push_back(row);
  }

  void add(NcclTest& each) {
    each.name_operation(file_.set);
    each.add_notes(content_.notes);
    each.check_ranks(file_);
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
      for (const std::string& host : each.hosts) record.each_rank->push_back({.host = host});
      record.provenance.hardware = join({each.gpus.begin(), each.gpus.end()}, ", ");
      record.provenance.backend_requested = "NCCL";
      record.provenance.libraries = library_;
      record.provenance.started_at = each.started_at;
      CollectiveFacts& facts = record.collective.emplace();
      facts.operation = each.operation;
      facts.rows = std::move(each.rows[side]);
      merge_repeated_sizes(facts.rows);
      const bool has_kinds = each.kinds.size() > 1;  // then each row has its own
      if (!has_kinds) facts.dtype = each.dtype;
      std::int64_t cycles = 1;
      for (CollectiveRow& row : facts.rows) {
        if (!has_kinds) row.label.clear();
        cycles = std::max(cycles, row.samples.value_or(1));
      }
      const bool is_plain = has_kinds || each.reduction.empty() || each.reduction == "sum" ||
                            each.reduction == "none";
      facts.placement = kSideNames[side];
      facts.note = fmt::format(
          "{}; {}mean of {} calls{}{}{}", facts.placement,
          cycles > 1 ? fmt::format("median of {} cycles, each the ", cycles) : "", each.iterations,
          is_plain ? "" : "; reduction " + each.reduction,
          each.cpu_line > 0 ? "; times from bandwidths, as those printed are of the CPU (-C 1)"
                            : "",
          each.has_end ? "" : "; the output has no end, so the test was cut");
      if (each.groups.size() > 1) {
        facts.note += fmt::format("; {} groups of {:g} ranks at the same time", each.groups.size(),
                                  each.group_size());
      }
      if (each.lacks_rows()) {
        facts.note += fmt::format("; {} of {} rows are there", each.sizes, each.expected_rows());
      }
      report_failed_checks(facts, each.verdict, content_.notes);
      const auto factor = each.bus_factor(each.operation);
      if (ranks > 0 && factor && *factor > 0) {
        for (CollectiveRow& row : facts.rows) {
          row.busbw_bytes_per_second = *row.algbw_bytes_per_second * *factor;
        }
      }
      keep_rows(facts, content_.notes);
    }
  }

  const ForeignFile& file_;
  std::vector<NcclTest> tests_;
  std::string version_, library_;     // "NCCL 2.19.3+cuda12.4"
  double last_digit_ = 0.01 * kGiga;  // of a bandwidth
  ImportContent content_;
};

}  // namespace

ImportFormat nccl_tests_format() {
  return {.name = "nccl-tests",
          .what = "output of nccl-tests or rccl-tests",
          .example = "all_reduce.txt --study links",
          .is_one =
              [](std::string_view text) {
                return is_json(text) || text.find("# Avg bus bandwidth") != text.npos ||
                       text.find("# nThread") != text.npos ||
                       (text.find("algbw") != text.npos && text.find("busbw") != text.npos);
              },
          .read =
              [](const ForeignFile& file) {
                NcclReader reader(file);
                return is_json(file.text) ? reader.read_json() : reader.read();
              }};
}

}  // namespace paceline
