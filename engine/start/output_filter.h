// Separates a launcher's own messages from the ranks' standard error.
//
// mpirun mixes its messages with the output of ranks. Open MPI puts messages between two lines of
// dashes, or starts a line with "[host:pid]" or "[host][[job,rank],n]". MPICH starts lines with
// "[mpiexec@host]" or "[proxy:0:0@host]", and ends with a block between lines of equals signs (on
// standard output or here). Everything else belongs to the ranks and passes immediately, including
// incomplete lines (progress).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

class NoiseFilter {
 public:
  explicit NoiseFilter(std::function<void(std::string_view)> pass) : pass_(std::move(pass)) {}

  void feed(std::string_view text);
  void finish();  // passes undecided text; call at the end

  const std::string& noise() const { return noise_; }

 private:
  enum class Line { undecided, passing, noise, rule };
  void feed_line(std::string_view part, bool complete);
  Line classify(bool complete) const;
  void end_line();

  std::function<void(std::string_view)> pass_;
  std::string held_;   // part of an undecided line
  std::string noise_;  // removed text
  Line line_ = Line::undecided;
  char block_ = 0;  // the rule character of the block we are in
};

// Merges the standard error of several ranks without mixing their lines.

// Output of rank 0 passes immediately, including incomplete lines: its progress rewrites one. Lines
// of other ranks pass when complete or longer than 64 KB, and start on a line of their own.
class RankLines {
 public:
  RankLines(std::size_t ranks, std::function<void(std::string_view)> pass)
      : pass_(std::move(pass)), held_(ranks) {}

  void feed(std::size_t rank, std::string_view text);
  void finish();  // passes incomplete lines; call at the end

 private:
  void pass_lines(std::string_view lines);

  std::function<void(std::string_view)> pass_;
  std::vector<std::string> held_;
  bool line_is_open_ = false;  // rank 0 has an incomplete line
};

}  // namespace paceline
