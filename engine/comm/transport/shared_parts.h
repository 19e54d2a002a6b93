// Memory of a machine that all its ranks see, a part each: a file in /dev/shm that has no name once
// all ranks have it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine/comm/communicator.h"

namespace paceline {

// Between the parts of two ranks, in whatever memory they share. Parts that lie a power of two
// apart, or nearly, may keep each other out of caches that choose a place by a hash of the address:
// on a Zen, 256 MB apart, a sum of 1 MB took 180 us instead of 14. Nine pages were good at all
// powers up to 256 MB; none, one and three were not.
constexpr std::size_t kBetweenParts = std::size_t{9} * 4096;

class SharedParts {
 public:
  // Collective over `ranks`, which are all of one machine: parts of `bytes`, zeroed, each touched
  // by its rank (so near it) and beginning on a page. Null on all ranks where one of them cannot
  // have it, as where /dev/shm is full or not shared by containers.
  static std::unique_ptr<SharedParts> make(Communicator& ranks, std::size_t bytes);
  ~SharedParts();
  SharedParts(const SharedParts&) = delete;
  SharedParts& operator=(const SharedParts&) = delete;

  std::span<std::byte* const> parts() const { return parts_; }
  std::byte* mine() const { return parts_[rank_]; }
  bool holds(const void* data, std::size_t bytes) const;  // within this rank's part

 private:
  SharedParts(std::byte* all, std::size_t part_bytes, int rank, int size);

  std::size_t part_bytes_, rank_;
  std::vector<std::byte*> parts_;
};

}  // namespace paceline
