// Non-cryptographic 64-bit hashes (XXH3) as 16 hexadecimal digits, for identities and checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace paceline {

class Hash {
 public:
  Hash();
  ~Hash();
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;

  Hash& add(const void* data, std::size_t bytes);
  Hash& add(std::string_view text) { return add(text.data(), text.size()); }
  std::uint64_t value() const;
  std::string hex() const;

 private:
  void* state_;
};

std::uint64_t hash_value(std::string_view text);
std::string hash_hex(std::string_view text);
std::string to_hex(std::uint64_t value);

// Hash of a file's bytes. Throws input if the file cannot be read.
std::string hash_of_file(const std::filesystem::path& file);

}  // namespace paceline
