#include "engine/start/rank_lines.h"

namespace paceline {

namespace {

constexpr std::size_t kMostHeld = 64 << 10;

}  // namespace

void RankLines::feed(std::size_t rank, std::string_view text) {
  if (text.empty()) return;
  if (rank == 0) {
    pass_(text);
    line_is_open_ = text.back() != '\n';
    return;
  }
  std::string& held = held_[rank];
  held += text;
  if (const std::size_t end = held.rfind('\n'); end != std::string::npos) {
    pass_lines(std::string_view(held).substr(0, end + 1));
    held.erase(0, end + 1);
  }
  if (held.size() >= kMostHeld) {
    pass_lines(held + "\n");
    held.clear();
  }
}

void RankLines::pass_lines(std::string_view lines) {
  if (line_is_open_) pass_("\n");
  line_is_open_ = false;
  pass_(lines);
}

void RankLines::finish() {
  for (std::string& held : held_) {
    if (!held.empty()) pass_lines(held + "\n");
    held.clear();
  }
}

}  // namespace paceline
