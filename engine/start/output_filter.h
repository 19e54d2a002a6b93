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

}  // namespace paceline
