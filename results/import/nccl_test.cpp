#include "results/import/nccl_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/core/text.h"
#include "results/import/lines.h"

namespace paceline {

double NcclTest::group_size() const {
  return static_cast<double>(hosts.size() / std::max<std::size_t>(groups.size(), 1));
}

std::optional<double> NcclTest::bus_factor(const std::string& of_operation) const {
  const double n = group_size();
  if (of_operation == "all_reduce") return 2 * (n - 1) / n;
  for (const char* each : {"all_gather", "reduce_scatter", "alltoall", "gather", "scatter"}) {
    if (of_operation == each) return (n - 1) / n;
  }
  for (const char* each : {"broadcast", "reduce", "sendrecv"}) {
    if (of_operation == each) return 1;
  }
  return std::nullopt;
}

void NcclTest::name_operation(const std::vector<std::string>& set) {
  for (const std::string& fact : set) {
    if (operation.empty() && fact.starts_with("operation=")) operation = fact.substr(10);
  }
  if (!operation.empty() || reduction.empty() || reduction == "none" || group_size() < 3 ||
      factors == 0)
    return;
  for (const char* known : {"all_reduce", "reduce_scatter"}) {
    if (std::abs(*bus_factor(known) - factors) < 0.05) operation = known;
  }
}

void NcclTest::check_ranks(const ForeignFile& file) const {
  if (sizes == 0) return;
  const double n = group_size();
  const auto factor = bus_factor(operation);
  const bool lacks_ranks = last_rank >= static_cast<std::int64_t>(hosts.size());
  // Their last digits are rounded.
  const bool fits = n < 1 || factors == 0 || !factor || std::abs(*factor - factors) < 0.05;
  if (fits && !lacks_ranks) return;
  refuse_line(file, line,
              lacks_ranks ? fmt::format("the test lists a rank {}, but only {} ranks", last_rank,
                                        hosts.size())
                          : fmt::format("busbw is {:.2f} times algbw, but {:.2f} times it is {} on "
                                        "the {:g} ranks listed",
                                        factors, *factor, operation, n),
              "import the complete output, with the operation that it is of");
}

void NcclTest::add_notes(std::vector<std::string>& notes) const {
  const std::string last = text_behind.empty() ? "" : fmt::format(" (\"{}\")", text_behind);
  if (sizes == 0) {
    if (command.empty() && verdict.empty()) return;
    notes.push_back(
        fmt::format("warning: the test at line {} has no row of results{}", line, last));
    return;
  }
  if (!has_end) {
    notes.push_back(
        fmt::format("warning: the test at line {} has no end, so it failed or was cut{}; do not "
                    "rely on it",
                    line, last));
  }
  if (hosts.size() == 1) {
    notes.push_back(
        fmt::format("warning: the test at line {} is of 1 rank, which sends nothing; if there "
                    "were more, build nccl-tests with MPI=1",
                    line));
  }
  if (lacks_rows()) {
    notes.push_back(
        fmt::format("warning: the test at line {} has {} of {} rows; others are missing, or stand "
                    "behind other text of their line",
                    line, sizes, expected_rows()));
  }
  if (coarse_rates > 0) {
    notes.push_back(
        fmt::format("the test at line {} printed CPU times (-C 1): it is imported without {}, "
                    "whose bandwidth has too few digits to compute the time of a call",
                    line, counted(coarse_rates, "time")));
  }
  if (!behind.empty() && header.back() != "timestamp") {
    notes.push_back(
        fmt::format("the test at line {} has columns behind the last heading, which are left "
                    "out: {}",
                    line, printable(std::string_view(behind).substr(0, 60))));
  }
}

}  // namespace paceline
