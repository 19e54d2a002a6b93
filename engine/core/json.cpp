#include "engine/core/json.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

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

// Without nlohmann's destructor of an array or object, which allocates: where memory is short that
// would end the program. Deep it cannot be: see kMostJsonDepth.
void dismantle(Json& value) noexcept {
  if (value.is_array()) {
    auto& elements = value.get_ref<Json::array_t&>();
    for (Json& element : elements) dismantle(element);
    elements.clear();
  } else if (value.is_object()) {
    auto& members = value.get_ref<Json::object_t&>();
    for (auto& [key, member] : members) dismantle(member);
    members.clear();
  }
}

constexpr std::size_t kShownBytes = 40;

// A stretch of the text for a message: short, and in ASCII, since it may be no text at all.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kShownBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte >= 0x7f ? fmt::format("\\x{:02X}", byte) : std::string(1, c);
  }
  return text.size() > kShownBytes ? out + "..." : out;
}

// A key, which is UTF-8, cut between characters where it is long.
std::string shortened(const std::string& key) {
  if (key.size() <= kShownBytes) return key;
  std::size_t end = kShownBytes;
  while (end > 0 && (static_cast<unsigned char>(key[end]) & 0xc0U) == 0x80U) --end;
  return key.substr(0, end) + "...";
}

// The parser's words from "[json.exception.parse_error.101] parse error at line 1, column 5: syntax
// error while parsing value - unexpected ']'; expected ...; last read: '[]'", shorter.
std::string describe_cause(const nlohmann::detail::exception& error, std::string_view next) {
  constexpr int kOutOfRange = 406;
  if (error.id == kOutOfRange) return "a number is larger than any that is read";
  const std::string_view words = error.what();
  const auto says = [&](const char* what) { return words.find(what) != words.npos; };
  if (says("ill-formed UTF-8")) return "a text is not UTF-8";
  if (says("missing closing quote")) return "a text does not end; was the file cut short?";
  if (says("unexpected end of input") || next.empty()) return "it ends early; was it cut short?";
  if (says("control character")) return "a text has a control character; write \\n, \\t or \\u00XX";
  for (const char* about : {"invalid string: ", "invalid number; "}) {
    if (const auto at = words.find(about); at != words.npos) {
      return shown(words.substr(at, words.find(';', at + std::strlen(about)) - at));
    }
  }
  if (const auto expected = words.rfind("; expected"); expected != words.npos) {
    return fmt::format("{}, not '{}'", shown(words.substr(expected + 2)), shown(next.substr(0, 1)));
  }
  if (says("invalid literal")) {
    const auto end = next.find_first_of(" \t\r\n,:[]{}");
    return fmt::format("'{}' is not a value", shown(next.substr(0, end)));
  }
  return fmt::format("'{}' is not expected here", shown(next.substr(0, 1)));
}

// Builds the value and notes where every key and element began. Takes memory and time in proportion
// to the text: a node a key or element, whatever its path is like.
class PositionedBuilder : public nlohmann::json_sax<Json> {
 public:
  using Node = JsonDocument::Node;

  PositionedBuilder(const std::string& name, std::string_view text, const std::size_t& read,
                    std::vector<Node>& nodes)
      : name_(name), text_(text), read_(read), nodes_(nodes) {
    levels_.emplace_back();  // of the document itself, with one element
  }
  ~PositionedBuilder() override {
    for (Level& level : levels_) {
      for (Json& value : level.values) dismantle(value);
    }
  }

  // To be called once, after a parse without an error.
  Json take() {
    nodes_.push_back(levels_.front().nodes.front());
    return std::move(levels_.front().values.front());
  }

  bool null() override { return put(nullptr); }
  bool boolean(bool v) override { return put(v); }
  bool number_integer(number_integer_t v) override { return put(v); }
  bool number_unsigned(number_unsigned_t v) override { return put(v); }
  bool number_float(number_float_t v, const string_t&) override { return put(v); }
  bool string(string_t& v) override { return put(std::move(v)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    Level& level = levels_[depth_];
    if (level.has(key)) {
      throw input_error(fmt::format("key \"{}\" is given twice", shortened(key)),
                        fmt::format("{}:{}", name_, position().line), "keep one of them");
    }
    level.keys.push_back(std::move(key));
    level.nodes.push_back(node_here());
    return true;
  }

  bool parse_error(std::size_t offset, const std::string&,
                   const nlohmann::detail::exception& error) override {
    offset = std::min(offset > 0 ? offset - 1 : 0, text_.size());
    // The words of what is no literal begin before the letter that showed it.
    std::size_t word = offset;
    while (word > 0 && std::isalnum(static_cast<unsigned char>(text_[word - 1]))) --word;
    const bool literal = std::strstr(error.what(), "invalid literal") != nullptr;
    const std::string cause = describe_cause(error, text_.substr(literal ? word : offset));
    const JsonPosition at = find_position(offset);
    throw input_error("not JSON: " + cause, fmt::format("{}:{}:{}", name_, at.line, at.column),
                      "fix the text");
  }

 private:
  // An array or object that is open: its values so far, and of an object their keys.
  struct Level {
    bool object = false;
    std::vector<Json> values;
    std::vector<Node> nodes;
    std::vector<std::string> keys;
    std::set<std::string> known;  // the keys, once they are many

    // For the next one of this depth.
    void clear() {
      values.clear();
      nodes.clear();
      keys.clear();
      known.clear();
    }
    // Adds the key to what is known.
    bool has(const std::string& key) {
      constexpr std::size_t kMany = 32;
      if (keys.size() < kMany) return std::ranges::find(keys, key) != keys.end();
      if (known.empty()) known.insert(keys.begin(), keys.end());
      return !known.insert(key).second;
    }
  };

  JsonPosition position() const { return find_position(read_ > 0 ? read_ - 1 : 0); }
  Node node_here() const { return {static_cast<std::uint32_t>(position().line), 0}; }

  JsonPosition find_position(std::size_t offset) const {
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

  template <typename T>
  bool put(T&& value) {
    Level& level = levels_[depth_];
    if (!level.object) level.nodes.push_back(node_here());
    level.values.emplace_back(std::forward<T>(value));
    return true;
  }

  bool open(bool object) {
    if (depth_ == kMostJsonDepth) {
      throw input_error(fmt::format("nested deeper than {} levels", kMostJsonDepth), name_,
                        "flatten it");
    }
    if (!levels_[depth_].object) levels_[depth_].nodes.push_back(node_here());
    if (++depth_ == levels_.size()) levels_.emplace_back();
    levels_[depth_].object = object;
    return true;
  }

  // Moves each value once: a nlohmann object that grows would copy what it holds.
  bool close() {
    Level& level = levels_[depth_];
    Level& parent = levels_[depth_ - 1];
    parent.nodes.back().first_child = static_cast<std::uint32_t>(nodes_.size());
    nodes_.insert(nodes_.end(), level.nodes.begin(), level.nodes.end());
    Json& value = parent.values.emplace_back(level.object ? Json::object() : Json::array());
    if (level.object) {
      auto& members = value.get_ref<Json::object_t&>();
      members.reserve(level.values.size());
      for (std::size_t i = 0; i < level.values.size(); ++i) {
        members.emplace_back(std::move(level.keys[i]), std::move(level.values[i]));
      }
    } else {
      value.get_ref<Json::array_t&>().assign(std::make_move_iterator(level.values.begin()),
                                             std::make_move_iterator(level.values.end()));
    }
    level.clear();
    --depth_;
    return true;
  }

  const std::string& name_;
  std::string_view text_;
  const std::size_t& read_;
  std::vector<Node>& nodes_;
  mutable std::size_t counted_ = 0, line_ = 1, line_start_ = 0;
  std::vector<Level> levels_;  // up to depth_, and empty ones
  std::size_t depth_ = 0;
};

// The parts of a JSON pointer: "/a~1b/0" is "a/b" and "0".
std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '/') {
      parts.emplace_back();
    } else if (!parts.empty()) {
      const bool escape = path[i] == '~' && i + 1 < path.size();
      parts.back() += !escape ? path[i] : path[++i] == '1' ? '/' : '~';
    }
  }
  return parts;
}

// The place of a child within its parent.
std::optional<std::size_t> child_index(const Json& parent, const std::string& name) {
  if (parent.is_object()) {
    const auto found = parent.find(name);
    if (found == parent.end()) return std::nullopt;
    return static_cast<std::size_t>(std::distance(parent.begin(), found));
  }
  const auto index = to_integer(name);
  if (!parent.is_array() || !index || *index < 0) return std::nullopt;
  if (static_cast<std::size_t>(*index) >= parent.size()) return std::nullopt;
  return static_cast<std::size_t>(*index);
}

// A pipe or a device of that name would be waited for, maybe for ever: it is opened without.
class RegularFile {
 public:
  explicit RegularFile(const std::filesystem::path& path)
      : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (descriptor_ < 0) fail_reading();
    struct stat status {};
    const bool known = fstat(descriptor_, &status) == 0;
    if (known && S_ISREG(status.st_mode)) return;
    close(descriptor_);
    throw input_error(
        S_ISDIR(status.st_mode) ? "this is a folder, not a file" : "not a regular file",
        path.string(), "name a file");
  }
  ~RegularFile() { close(descriptor_); }
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  // 0: at the end.
  std::size_t read_some(char* buffer, std::size_t most) const {
    for (;;) {
      const ssize_t count = read(descriptor_, buffer, most);
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno != EINTR) fail_reading();
    }
  }

 private:
  [[noreturn]] void fail_reading() const {
    throw input_error(std::string("the file cannot be read: ") + std::strerror(errno),
                      path_.string(), "check the path and its permissions");
  }

  const std::filesystem::path& path_;
  int descriptor_;
};

}  // namespace

JsonDocument::JsonDocument(std::string name, std::string_view text)
    : name_(std::move(name)), value_(std::make_unique<Json>()) {
  refuse_utf16(text, name_);
  try {
    std::size_t read = 0;
    PositionedBuilder builder(name_, text, read, nodes_);
    Json::sax_parse(CountingIterator(text.data(), &read),
                    CountingIterator(text.data() + text.size(), &read), &builder);
    *value_ = builder.take();
  } catch (const std::bad_alloc&) {
    throw input_error(fmt::format("too little memory to parse {} of JSON",
                                  format_bytes(static_cast<double>(text.size()))),
                      name_, "check that it is the right file");
  }
}

JsonDocument::~JsonDocument() {
  if (value_) dismantle(*value_);
}

JsonDocument::JsonDocument(JsonDocument&& other) noexcept = default;

std::string JsonDocument::where(const std::string& path) const {
  if (nodes_.empty()) return name_;
  const Json* value = value_.get();
  Node node = nodes_.back();  // of the whole
  for (const std::string& part : split_path(path)) {
    const auto index = child_index(*value, part);
    if (!index) break;
    node = nodes_[node.first_child + *index];
    value = value->is_object() ? &(value->get_ref<const Json::object_t&>().begin() +
                                   static_cast<std::ptrdiff_t>(*index))
                                      ->second
                               : &(*value)[*index];
  }
  return fmt::format("{}:{}", name_, node.line);
}

std::string without_comments(std::string_view text) {
  std::string plain(text);
  constexpr std::size_t kNone = std::string_view::npos;
  std::size_t comma = kNone;  // behind a value, and nothing since but spaces and comments
  bool after_value = false;
  const auto ahead = [&](std::size_t i, std::string_view what) {
    return text.substr(i, what.size()) == what;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool line = ahead(i, "//");
    if (line || ahead(i, "/*")) {
      const std::size_t end = line ? text.find('\n', i) : text.find("*/", i + 2);
      if (end == text.npos && !line) return plain;  // which is no JSON then
      const std::size_t stop = std::min(line ? end : end + 2, text.size());
      for (; i < stop; ++i) {
        if (text[i] != '\n') plain[i] = ' ';
      }
      --i;
    } else if (text[i] == '"') {
      comma = kNone;
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
      }
      after_value = true;
    } else if (text[i] == ',') {
      comma = after_value ? i : kNone;
      after_value = false;
    } else if (std::isspace(static_cast<unsigned char>(text[i])) == 0) {
      const bool closes = text[i] == ']' || text[i] == '}';
      if (closes && comma != kNone) plain[comma] = ' ';
      comma = kNone;
      after_value = closes || (text[i] != '[' && text[i] != '{' && text[i] != ':');
    }
  }
  return plain;
}

std::string read_text(const std::filesystem::path& file, std::size_t limit) {
  const RegularFile opened(file);
  std::string text;
  char buffer[1 << 16];
  while (const std::size_t count = opened.read_some(buffer, sizeof buffer)) {
    text.append(buffer, count);
    if (text.size() > limit) {
      throw input_error("the file is larger than " + format_bytes(static_cast<double>(limit)),
                        file.string(), "check that it is the right file");
    }
  }
  return text;
}

Json parse_json(std::string_view text) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
      }
    } else if (c == '[' || c == '{') {
      if (++depth > kMostJsonDepth) return Json(Json::value_t::discarded);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return Json::parse(text, nullptr, false);
}

JsonDocument read_json(const std::filesystem::path& file) {
  return JsonDocument(file.string(), read_text(file));
}

std::string json_text(const Json& json, int indent) {
  const std::string dumped = json.dump(indent, ' ', false, Json::error_handler_t::replace);
  std::string text;
  text.reserve(dumped.size());
  for (std::size_t at = 0; at < dumped.size();) {
    const Character character = character_at(dumped, at);
    // What is left of them stands within strings; line breaks are the indentation's.
    if (is_control(character.code) && dumped[at] != '\n') {
      text += fmt::format("\\u{:04x}", static_cast<unsigned>(character.code));
    } else {
      text.append(dumped, at, character.bytes);
    }
    at += character.bytes;
  }
  return text;
}

Json number_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace paceline
