#include <algorithm>

#include "engine/core/json.h"

namespace paceline {

namespace {

class Skimmer {
 public:
  explicit Skimmer(std::string_view text) : text_(text) {}

  // Each returns false where the text is not as it should be.
  bool document(const std::vector<FieldFilter>& wanted, std::string& out) {
    if (!object(wanted, out)) return false;
    skip_space();
    return at_ == text_.size();
  }

 private:
  bool object(const std::vector<FieldFilter>& wanted, std::string& out) {
    if (!take('{')) return false;
    out += '{';
    if (!take('}')) {
      bool is_first = true;
      do {
        if (!member(wanted, is_first, out)) return false;
      } while (take(','));
      if (!take('}')) return false;
    }
    out += '}';
    return true;
  }

  bool member(const std::vector<FieldFilter>& wanted, bool& is_first, std::string& out) {
    skip_space();
    const std::size_t key_at = at_;
    if (!string()) return false;
    const std::string_view quoted = text_.substr(key_at, at_ - key_at);
    if (!take(':')) return false;
    skip_space();
    const std::string_view key = quoted.substr(1, quoted.size() - 2);
    const auto found = std::ranges::find(wanted, key, &FieldFilter::key);
    if (found == wanted.end()) return value();
    if (!is_first) out += ',';
    is_first = false;
    out.append(quoted) += ':';
    const std::size_t value_at = at_;
    if (!found->members.empty() && at_ < text_.size() && text_[at_] == '{') {
      return object(found->members, out);
    }
    if (!value()) return false;
    out.append(text_.substr(value_at, at_ - value_at));
    return true;
  }

  // Past a value: to the end of its brackets, or before the comma or bracket that follows it.
  bool value() {
    std::size_t depth = 0;
    for (; at_ < text_.size(); ++at_) {
      switch (text_[at_]) {
        case '"':
          if (!string()) return false;
          if (depth == 0) return true;
          --at_;
          break;
        case '{':
        case '[':
          ++depth;
          break;
        case '}':
        case ']':
          if (depth == 0) return true;
          if (--depth > 0) break;
          ++at_;
          return true;
        case ',':
          if (depth == 0) return true;
          break;
        default:
          break;
      }
    }
    return false;
  }

  bool string() {
    if (at_ >= text_.size() || text_[at_] != '"') return false;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '"') {
        ++at_;
        return true;
      }
    }
    return false;
  }

  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string extract_fields(std::string_view text, const std::vector<FieldFilter>& wanted) {
  std::string out;
  return Skimmer(text).document(wanted, out) ? out : "";
}

}  // namespace paceline
