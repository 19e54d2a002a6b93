#include "engine/core/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

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

}  // namespace paceline
