#include "engine/start/output_filter.h"

#include <algorithm>
#include <cctype>

namespace paceline {

namespace {

constexpr std::size_t kRuleLength = 60;  // Open MPI's rules have 74 characters, MPICH's 83

// Whether `text` may be the beginning of a tag: "[host:1234]", or MPICH's "[proxy:0:0@host]".
bool may_be_tag(std::string_view text) {
  return std::all_of(text.begin() + 1, text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view(".-_:,@").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

bool is_hydra_tag(std::string_view text) {
  const std::size_t close = text.find(']');
  return (text.starts_with("[mpiexec@") || text.starts_with("[proxy:")) &&
         close != std::string_view::npos && may_be_tag(text.substr(0, close));
}

// The host, job and rank with which Open MPI's transports begin a line:
// "[host][[64131,1],0][btl_tcp_proc.c:266:...]".
struct ProcessTag {
  bool is_one = false, may_become_one = false;
};

ProcessTag process_tag(std::string_view text) {
  constexpr std::string_view kOpening = "[[";
  const std::size_t close = text.find(']');
  if (close == std::string_view::npos) return {false, may_be_tag(text)};
  if (!may_be_tag(text.substr(0, close))) return {};
  const std::string_view rest = text.substr(close + 1);
  if (rest.size() < kOpening.size()) return {false, kOpening.starts_with(rest)};
  if (!rest.starts_with(kOpening)) return {};
  const std::size_t end = rest.find_first_not_of("0123456789,]", kOpening.size());
  if (end == std::string_view::npos) return {false, true};
  return {rest[end] == '[' && rest[end - 1] == ']', false};
}

bool is_tag(std::string_view text) {
  if (is_hydra_tag(text) || process_tag(text).is_one) return true;
  const std::size_t close = text.find(']'), colon = text.rfind(':', close);
  return close != std::string_view::npos && colon != std::string_view::npos && colon + 1 < close &&
         may_be_tag(text.substr(0, close)) &&
         std::all_of(text.begin() + static_cast<std::ptrdiff_t>(colon) + 1,
                     text.begin() + static_cast<std::ptrdiff_t>(close),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

constexpr std::size_t kMostHeld = 64 << 10;  // of an incomplete line

}  // namespace

void NoiseFilter::feed(std::string_view text) {
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    const bool complete = newline != std::string_view::npos;
    const std::size_t length = complete ? newline + 1 : text.size();
    feed_line(text.substr(0, length), complete);
    text.remove_prefix(length);
  }
}

void NoiseFilter::feed_line(std::string_view part, bool complete) {
  if (line_ == Line::passing) {
    pass_(part);
  } else {
    held_ += part;
    if (line_ == Line::undecided) line_ = classify(complete);
    if (line_ == Line::passing) {
      pass_(held_);
      held_.clear();
    }
  }
  if (complete) end_line();
}

NoiseFilter::Line NoiseFilter::classify(bool complete) const {
  const char first = held_[0];
  if (first == '-' || first == '=') {
    const std::size_t same = std::min(held_.find_first_not_of(first), held_.size());
    if (same >= kRuleLength) return Line::rule;
    if (same == held_.size()) return Line::undecided;
  }
  if (block_ != 0) return complete ? Line::noise : Line::undecided;
  if (first == '[') {
    if (is_tag(held_)) return Line::noise;
    if (!complete && (may_be_tag(held_) || process_tag(held_).may_become_one)) {
      return Line::undecided;
    }
  }
  return Line::passing;
}

void NoiseFilter::end_line() {
  if (line_ == Line::rule) {
    // A block of '=' never ends: it is MPICH's, and no rank prints after it.
    if (block_ == 0) {
      block_ = held_[0];
    } else if (block_ == '-' && held_[0] == '-') {
      block_ = 0;
    }
  }
  noise_ += held_;
  held_.clear();
  line_ = Line::undecided;
}

void NoiseFilter::finish() {
  if (line_ == Line::undecided && block_ == 0) {
    if (!held_.empty()) pass_(held_);
  } else {
    noise_ += held_;
  }
  held_.clear();
}

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
