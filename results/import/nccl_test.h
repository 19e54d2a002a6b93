// A test in an output of nccl-tests: what is read of it, and what follows from that.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "results/import/formats.h"

namespace paceline {

inline constexpr std::size_t kSides = 2;
inline constexpr const char* kSideNames[kSides] = {"out of place", "in place"};

// One call of a test: a file may have several, as a job's log has.
struct NcclTest {
  std::size_t line = 1;
  std::string operation, iterations, started_at;
  std::vector<std::string> hosts;           // one per rank
  std::set<std::string> processes, groups;  // groups: of ranks, which NCCL_TESTS_SPLIT makes
  std::int64_t last_rank = -1;              // its number
  std::set<std::string> gpus;
  std::vector<std::string> header;
  std::size_t width = 0;       // of the rows, which may have columns behind those of the header
  std::string behind;          // the values of these in the first row
  std::size_t first_side = 0;  // 1: there are only times in place
  std::size_t cpu_line = 0;    // the header's, if it says that times are of the CPU; else 0
  std::size_t coarse_rates = 0;
  bool has_end = false;
  std::set<std::string> ranks;
  std::string command;                        // the line of its options
  std::string verdict;                        // "4 FAILED", "Test NCCL failure": that it failed
  std::string text_behind;                    // other text behind the last row
  std::size_t sizes = 0, expected_sizes = 0;  // rows that were read, and as the options ask
  std::map<std::int64_t, std::size_t> rows_of_size;
  std::size_t most_rows = 0;     // of a size: cycles, types and reductions
  double factors = 0;            // busbw / algbw of the largest size
  std::string dtype, reduction;  // "sum", "none"; "" of versions that do not name it
  std::set<std::string> kinds;   // "float sum", of -d all and -o all several
  std::vector<CollectiveRow> rows[kSides];

  // Ranks that take part in a call.
  double group_size() const;
  // What busbw is of algbw on them (nccl-tests, PERFORMANCE.md); empty: not known.
  std::optional<double> bus_factor(const std::string& of_operation) const;
  // Versions before 2.14 do not name it: --set does, or of reductions on ranks that all have the
  // result, the ratio of bandwidths tells all_reduce from reduce_scatter.
  void name_operation(const std::vector<std::string>& set);
  // A cycle (-N), type and reduction has a row for each size.
  std::size_t expected_rows() const { return expected_sizes * most_rows; }
  bool lacks_rows() const { return sizes < expected_rows(); }
  // Throws input: the ranks listed are not all, or not those of the bandwidths.
  void check_ranks(const ForeignFile& file) const;
  void add_notes(std::vector<std::string>& notes) const;
};

}  // namespace paceline
