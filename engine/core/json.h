// JSON with positions: errors in files that people write name file, line and key.
//
// nlohmann/json does the parsing; this adds duplicate-key detection and line numbers. Headers
// include only this file (forward declarations); include <nlohmann/json.hpp> in few sources.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace paceline {

using Json = nlohmann::ordered_json;

struct JsonPosition {
  std::size_t line = 0, column = 0;  // from 1; 0 where unknown
};

// A parsed text that remembers where each key and element began. Paths are JSON pointers
// ("/axes/gpus/0").
class JsonDocument {
 public:
  JsonDocument(std::string name, std::string_view text);  // throws input: "not JSON (file:3:14)"
  ~JsonDocument();
  JsonDocument(JsonDocument&&) noexcept;

  const Json& value() const { return *value_; }
  const std::string& name() const { return name_; }
  // "file.json:7" for the key or element at `path`, or its nearest known parent.
  std::string where(const std::string& path) const;

 private:
  std::string name_;
  Json* value_;
  std::map<std::string, JsonPosition> positions_;
};

// Whole file as text; throws input with the cause. `limit` guards against absurd sizes.
std::string read_text(const std::filesystem::path& file, std::size_t limit = std::size_t{64} << 20);
JsonDocument read_json(const std::filesystem::path& file);

}  // namespace paceline
