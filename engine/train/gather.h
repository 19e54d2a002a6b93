// Brings together what each rank has, of whatever kind it is.
#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/facts/fact.h"

namespace paceline {

// Values as bytes, and back, between ranks of one build: structs of facts, texts, lists, optional
// values, and what memory alone can copy.
struct PackedValues {
  std::string bytes;
  bool unpacks = false;
  std::size_t at = 0;  // of the next value that is unpacked

  template <typename T>
  void pass(T& value) {
    if constexpr (HasFacts<T>) {
      visit_facts(value, [this](const FactInfo&, auto& member) { this->pass(member); });
    } else if constexpr (requires { value.has_value(); }) {
      bool is_there = value.has_value();
      pass(is_there);
      if (is_there) pass(unpacks ? value.emplace() : *value);
    } else if constexpr (requires { value.resize(0); }) {
      std::size_t size = value.size();
      pass(size);
      value.resize(size);
      for (auto& each : value) pass(each);
    } else if (unpacks) {
      std::memcpy(&value, bytes.data() + std::exchange(at, at + sizeof value), sizeof value);
    } else {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
};

// In rank order, on every rank. Collective.
template <typename T>
std::vector<T> gather(Communicator& communicator, T mine) {
  std::vector<T> all;
  if constexpr (std::is_trivially_copyable_v<T>) {  // all have the same size
    all.resize(static_cast<std::size_t>(communicator.size()));
    communicator.all_gather(&mine, sizeof mine, all.data());
  } else {
    PackedValues packed;
    packed.pass(mine);
    for (const std::string& bytes : gather_texts(communicator, packed.bytes)) {
      PackedValues{bytes, true}.pass(all.emplace_back());
    }
  }
  return all;
}

}  // namespace paceline
