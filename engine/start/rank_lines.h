// Standard error of several ranks on one terminal: the line of one does not break into another's.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// Rank 0 passes at once, also an unfinished line: its progress moves on one. The others' lines pass
// when they are complete, or have grown to 64 KB; they begin on a line of their own.
class RankLines {
 public:
  RankLines(std::size_t ranks, std::function<void(std::string_view)> pass)
      : pass_(std::move(pass)), held_(ranks) {}

  void feed(std::size_t rank, std::string_view text);
  void finish();  // the end: what is unfinished is passed as lines

 private:
  void pass_lines(std::string_view lines);

  std::function<void(std::string_view)> pass_;
  std::vector<std::string> held_;
  bool line_is_open_ = false;  // of rank 0
};

}  // namespace paceline
