// Communicators for tests to derive from.
#pragma once

#include <cstring>
#include <functional>

#include "engine/comm/algorithms/hierarchical.h"
#include "tests/support/on_threads.h"

namespace paceline {

// A rank of a world that does nothing. Gathers its own part of each rank.
class IdleCommunicator : public Communicator {
 public:
  explicit IdleCommunicator(int size, int rank = 0) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Memory allocate(std::size_t) override { return {}; }
  void all_reduce(void*, std::size_t, DType, Lane&, std::string_view) override {}
  void broadcast(void*, std::size_t, int) override {}
  void all_gather(const void* mine, std::size_t bytes, void* all) override {
    for (int r = 0; r < size_; ++r) {
      std::memcpy(static_cast<char*>(all) + static_cast<std::size_t>(r) * bytes, mine, bytes);
    }
  }
  void barrier() override {}
  void abort(std::string_view) noexcept override {}

 private:
  int rank_, size_;
};

// Leaves everything to another one.
class ForwardingCommunicator : public Communicator {
 public:
  explicit ForwardingCommunicator(Communicator& inner) : inner_(inner) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Memory allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override {
    inner_.all_reduce(data, count, type, lane, label);
  }
  void broadcast(void* data, std::size_t bytes, int root) override {
    inner_.broadcast(data, bytes, root);
  }
  void all_gather(const void* mine, std::size_t bytes, void* all) override {
    inner_.all_gather(mine, bytes, all);
  }
  void barrier() override { inner_.barrier(); }
  void abort(std::string_view why) noexcept override { inner_.abort(why); }

 private:
  Communicator& inner_;
};

// `body` as each of `count` replicas of this process.
inline void on_replicas(int count, const std::function<void(Communicator&)>& body) {
  Membership membership;
  membership.replicas_here = count;
  const auto communicators = connect_threads<ThreadCommunicator>(membership);
  on_threads(communicators.size(), [&](std::size_t i) { body(*communicators[i]); });
}

}  // namespace paceline
