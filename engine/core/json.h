// JSON with positions, so that errors in user-written files name file, line and key.
//
// nlohmann/json does the parsing; this adds duplicate-key detection and line numbers. Headers
// include only this file (forward declarations); include <nlohmann/json.hpp> in few sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

using Json = nlohmann::ordered_json;

// Deeper JSON would take memory out of proportion to its text.
inline constexpr std::size_t kMostJsonDepth = 100;

// Returns a discarded value (is_discarded()) if the text is not JSON, or is too deep.
Json parse_json(std::string_view text);

struct JsonPosition {
  std::size_t line = 0, column = 0;  // from 1
};

// A parsed text with the position of each key and element. Paths are JSON pointers
// ("/axes/gpus/0").
class JsonDocument {
 public:
  // Time and memory are linear in the text. Throws input: "file:3:7: not JSON: ...".
  JsonDocument(std::string name, std::string_view text);
  ~JsonDocument();
  JsonDocument(JsonDocument&&) noexcept;

  const Json& value() const { return *value_; }
  const std::string& name() const { return name_; }
  // The position of a key or element. Children of a node are adjacent, in document order. The last
  // node is the whole document.
  struct Node {
    std::uint32_t line = 0, first_child = 0;
  };

  // "file.json:7" for the key or element at `path`, or for its nearest known parent.
  std::string where(const std::string& path) const;

 private:
  std::string name_;
  std::unique_ptr<Json> value_;
  std::vector<Node> nodes_;
};

// Replaces comments (// and /* */) and trailing commas by spaces, which keeps positions. For
// user-written files (JSONC).
std::string without_comments(std::string_view text);

// Reads a regular file. Throws input if that fails or if it is larger than `limit`.
std::string read_text(const std::filesystem::path& file, std::size_t limit = std::size_t{64} << 20);
JsonDocument read_json(const std::filesystem::path& file);

// Serializes JSON safely, whatever the strings contain.

// Replaces bytes that are not UTF-8 with U+FFFD. Escapes all control characters, including those
// that JSON permits (DEL, C1, text direction), so the text is safe for terminals. `indent` as for
// nlohmann's dump: negative for one line.
std::string json_text(const Json& json, int indent = -1);

Json number_or_null(const std::optional<double>& value);

// Extracts some members of a JSON object without parsing the others.

struct FieldFilter {
  std::string_view key;
  std::vector<FieldFilter> members = {};  // if the value is an object; empty: the whole value
};

// The text of the object with only these members. Does not validate the others. Empty if `text` is
// not an object or is cut short; parse the whole text for the reason.
std::string extract_fields(std::string_view text, const std::vector<FieldFilter>& wanted);

}  // namespace paceline
