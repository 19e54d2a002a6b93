#include "engine/core/json.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMaxDepth = 100;

// Hands characters to the parser and remembers how far it has read.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* read) : at_(at), read_(read) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*read_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) { return !(a == b); }

 private:
  const char* at_;
  std::size_t* read_;
};

std::string escaped(std::string key) {
  std::string out;
  for (const char c : key) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

// Builds the value and notes where every key and element began.
class PositionedBuilder : public nlohmann::json_sax<Json> {
 public:
  PositionedBuilder(const std::string& name, std::string_view text, const std::size_t& read,
                    std::map<std::string, JsonPosition>& positions)
      : name_(name), text_(text), read_(read), positions_(positions) {}

  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool v) override { return put(v); }
  bool number_integer(number_integer_t v) override { return put(v); }
  bool number_unsigned(number_unsigned_t v) override { return put(v); }
  bool number_float(number_float_t v, const string_t&) override { return put(v); }
  bool string(string_t& v) override { return put(std::move(v)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    Level& level = levels_.back();
    if (!level.keys.insert(key).second) {
      throw Error(ErrorKind::input, fmt::format("key \"{}\" is given twice", key),
                  fmt::format("{}:{}", name_, position().line), "keep one of them");
    }
    level.key = key;
    positions_[level.path + '/' + escaped(key)] = position();
    return true;
  }

  bool parse_error(std::size_t offset, const std::string&,
                   const nlohmann::detail::exception& error) override {
    std::string cause = error.what();
    const auto says = [&cause](const char* what) { return cause.find(what) != std::string::npos; };
    if (says("ill-formed UTF-8")) {
      cause = "a text is not UTF-8";
    } else if (says("missing closing quote")) {
      cause = "a text does not end; was the file cut short?";
    } else if (const auto colon = cause.rfind("; expected"); colon != std::string::npos) {
      cause = cause.substr(colon + 2);
    } else if (const auto last = cause.rfind(": "); last != std::string::npos) {
      cause = cause.substr(last + 2);
    }
    const JsonPosition at = position_of(offset > 0 ? offset - 1 : 0);
    throw Error(ErrorKind::input, "not JSON: " + cause,
                fmt::format("{}, line {}, column {}", name_, at.line, at.column), "mend the text");
  }

 private:
  struct Level {
    Json value;
    std::string path, key;
    std::set<std::string> keys;
  };

  JsonPosition position() const { return position_of(read_ > 0 ? read_ - 1 : 0); }

  JsonPosition position_of(std::size_t offset) const {
    offset = std::min(offset, text_.size());
    while (counted_ < offset) {
      if (text_[counted_++] == '\n') {
        ++line_;
        line_start_ = counted_;
      }
    }
    if (counted_ > offset && line_start_ > offset) return {line_, 1};
    return {line_, offset - line_start_ + 1};
  }

  std::string next_path() const {
    if (levels_.empty()) return "";
    const Level& level = levels_.back();
    return level.path + '/' +
           (level.value.is_array() ? std::to_string(level.value.size()) : escaped(level.key));
  }

  bool put(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Level& level = levels_.back();
    if (level.value.is_array()) {
      positions_.emplace(next_path(), position());
      level.value.push_back(std::move(value));
    } else {
      level.value[level.key] = std::move(value);
    }
    return true;
  }

  bool open(Json empty) {
    if (levels_.size() >= kMaxDepth) {
      throw Error(ErrorKind::input, fmt::format("nested deeper than {} levels", kMaxDepth), name_,
                  "flatten it");
    }
    const std::string path = next_path();
    positions_.emplace(path, position());
    levels_.push_back({std::move(empty), path, "", {}});
    return true;
  }

  bool close() {
    Json value = std::move(levels_.back().value);
    levels_.pop_back();
    return put(std::move(value));
  }

  const std::string& name_;
  std::string_view text_;
  const std::size_t& read_;
  std::map<std::string, JsonPosition>& positions_;
  mutable std::size_t counted_ = 0, line_ = 1, line_start_ = 0;
  std::vector<Level> levels_;
  Json root_;
};

}  // namespace

JsonDocument::JsonDocument(std::string name, std::string_view text)
    : name_(std::move(name)), value_(nullptr) {
  std::size_t read = 0;
  PositionedBuilder builder(name_, text, read, positions_);
  Json::sax_parse(CountingIterator(text.data(), &read),
                  CountingIterator(text.data() + text.size(), &read), &builder);
  value_ = new Json(builder.take());
}

JsonDocument::~JsonDocument() {
  delete value_;
}

JsonDocument::JsonDocument(JsonDocument&& other) noexcept
    : name_(std::move(other.name_)),
      value_(std::exchange(other.value_, nullptr)),
      positions_(std::move(other.positions_)) {}

std::string JsonDocument::where(const std::string& path) const {
  for (std::string at = path;; at = at.substr(0, at.rfind('/'))) {
    if (const auto found = positions_.find(at); found != positions_.end()) {
      return fmt::format("{}:{}", name_, found->second.line);
    }
    if (at.empty()) return name_;
  }
}

std::string read_text(const std::filesystem::path& file, std::size_t limit) {
  std::error_code code;
  if (std::filesystem::is_directory(file, code)) {
    throw Error(ErrorKind::input, "is a folder, not a file", file.string(), "name a file");
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    throw Error(ErrorKind::input, std::string("cannot be read: ") + std::strerror(errno),
                file.string(), "check the path and its permissions");
  }
  std::string text;
  char buffer[1 << 16];
  while (stream.read(buffer, sizeof buffer) || stream.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > limit) {
      throw Error(ErrorKind::input, "is larger than " + format_bytes(static_cast<double>(limit)),
                  file.string(), "is it the right file?");
    }
  }
  return text;
}

JsonDocument read_json(const std::filesystem::path& file) {
  return JsonDocument(file.string(), read_text(file));
}

}  // namespace paceline
