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
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

using Json = nlohmann::ordered_json;

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

}  // namespace paceline
