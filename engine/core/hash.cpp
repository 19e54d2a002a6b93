#include "engine/core/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <vector>

#include "engine/core/error.h"

namespace paceline {

Hash::Hash() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_));
}

Hash::~Hash() {
  XXH3_freeState(static_cast<XXH3_state_t*>(state_));
}

Hash& Hash::add(const void* data, std::size_t bytes) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state_), data, bytes);
  return *this;
}

std::uint64_t Hash::value() const {
  return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_));
}

std::string Hash::hex() const {
  return to_hex(value());
}

std::uint64_t hash_value(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}
std::string hash_hex(std::string_view text) {
  return to_hex(hash_value(text));
}
std::string to_hex(std::uint64_t value) {
  return fmt::format("{:016x}", value);
}

std::string hash_of_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> part(1U << 20);
  Hash hash;
  while (stream) {
    stream.read(part.data(), static_cast<std::streamsize>(part.size()));
    hash.add(part.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (!stream.eof()) {
    throw input_error(std::string("the file cannot be read: ") + std::strerror(errno),
                      file.string(), "check its permissions");
  }
  return hash.hex();
}

}  // namespace paceline
