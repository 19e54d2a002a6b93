// JSON with positions: errors in files that people write name file, line and key.
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

// A parsed text that remembers where each key and element began. Paths are JSON pointers
// ("/axes/gpus/0").
class JsonDocument {
 public:
  // Memory and time are in proportion to the text. Throws input: "file:3:7: not JSON: ...".
  JsonDocument(std::string name, std::string_view text);
  ~JsonDocument();
  JsonDocument(JsonDocument&&) noexcept;

  const Json& value() const { return *value_; }
  const std::string& name() const { return name_; }
  // Where a key or element began. The children of one node stand one after the other, in the order
  // of the document; the whole document's node is the last.
  struct Node {
    std::uint32_t line = 0, first_child = 0;
  };

  // "file.json:7" for the key or element at `path`, or its nearest known parent.
  std::string where(const std::string& path) const;

 private:
  std::string name_;
  std::unique_ptr<Json> value_;
  std::vector<Node> nodes_;
};

// The text with spaces for comments (// and /* */) and for commas before a closing bracket, so that
// positions stay: for what people write, as JSONC.
std::string without_comments(std::string_view text);

// Whole regular file as text; throws input with the cause. `limit` guards against absurd sizes.
std::string read_text(const std::filesystem::path& file, std::size_t limit = std::size_t{64} << 20);
JsonDocument read_json(const std::filesystem::path& file);

}  // namespace paceline
