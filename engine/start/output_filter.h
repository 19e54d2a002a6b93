// Takes a launcher's own talk out of the ranks' standard error.
//
// mpirun mixes its help texts with what the ranks print. Open MPI sets them between two lines of
// dashes, or begins a line with "[host:pid]"; MPICH begins one with "[mpiexec@host]" or
// "[proxy:0:0@host]", and ends with a block between lines of equals signs (on standard output, or
// here). Everything else is the ranks' and passes at once, also an unfinished line (progress).
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace paceline {

class NoiseFilter {
 public:
  explicit NoiseFilter(std::function<void(std::string_view)> pass) : pass_(std::move(pass)) {}

  void feed(std::string_view text);
  void finish();  // the end: what is held as undecided is passed

  const std::string& noise() const { return noise_; }

 private:
  enum class Line { undecided, passing, noise, rule };
  void feed_line(std::string_view part, bool complete);
  Line classify(bool complete) const;
  void end_line();

  std::function<void(std::string_view)> pass_;
  std::string held_;   // of an undecided line
  std::string noise_;  // what was taken out
  Line line_ = Line::undecided;
  char block_ = 0;  // the character whose rule opened the block we are in
};

}  // namespace paceline
