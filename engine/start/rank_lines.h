// Merges the standard error of several ranks without mixing their lines.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

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
