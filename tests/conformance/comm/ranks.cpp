// A task of a stack under test: comm_ranks STACK REPLICAS WHAT MEMORY, where WHAT is the largest
// size in elements, or a way to fail, and MEMORY is "host", or "gpus" for gradients on GPUs
// emulated by the host (fake_nccl). Started by stacks_test.cpp through the launcher of the stack.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/comm/algorithms/sum.h"
#include "engine/comm/backend.h"
#include "engine/comm/rendezvous/join.h"
#include "engine/comm/rendezvous/liveness.h"
#include "engine/comm/wrappers/staged/staged_communicator.h"
#include "engine/core/backend_stack.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/failure/rank_status.h"
#include "tests/support/fake_stream.h"

namespace paceline {
namespace {

// Staged through the host, gradients have addresses that fault where somebody uses them as they
// are.
constexpr std::uintptr_t kOnDevice = std::uintptr_t{1} << 60;

std::byte* on_device(const void* host) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(host) + kOnDevice);
}

std::byte* on_host(const void* device) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(device) - kOnDevice);
}

DeviceCopies emulated_copies() {
  return {
      [](void* host, const void* device, std::size_t n) { std::memcpy(host, on_host(device), n); },
      [](void* device, const void* host, std::size_t n) { std::memcpy(on_host(device), host, n); },
      [](std::size_t bytes) { return host_memory(bytes); }};
}

ReplicaGpus emulated_gpus(const ProcessRank& process, int replicas) {
  ReplicaGpus gpus;
  for (int i = 0; i < replicas; ++i) {
    gpus.gpus.push_back({i, fmt::format("0000:{:02x}:00.0", process.rank * replicas + i), "", ""});
  }
  gpus.select = [](int) {};
  gpus.clear = [](void* data, std::size_t bytes) { std::memset(data, 0, bytes); };
  return gpus;
}

struct Lanes {
  Lane &one, &other;
};

constexpr std::size_t kGuard = 3;  // elements before and after that nobody may touch

void require(bool condition, const std::string& what) {
  if (!condition) throw Error(ErrorKind::mismatch, what);
}

// One replica's share of the cases.
class Replica {
 public:
  Replica(Communicator& communicator, std::size_t largest, bool casts, Lanes lanes, bool biased)
      : all_(communicator), largest_(largest), casts_(casts), lanes_(lanes), biased_(biased) {
    arena_ = all_.allocate((largest_ + 2 * kGuard) * sizeof(double));
    if (arena_.bytes() == 0) arena_ = host_memory((largest_ + 2 * kGuard) * sizeof(double));
  }

  void run() {
    for (const DType type : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
      for (const std::size_t count : sizes()) {
        if (type != DType::f32 && type != DType::bf16 && count > (1U << 20)) continue;
        reduce(arena_.data(), count, type, lanes_.one);
        if (count > (1U << 22)) continue;
        reduce(arena_.data(), count, type, lanes_.other);
        std::vector<std::byte> outside((count + 2 * kGuard) * size_of(type));
        reduce(outside.data(), count, type, lanes_.other);
      }
    }
    rounding_repeats();
    control_plane();
  }

 private:
  std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> sizes = {0, 1, 2, 3, 15, 17, 63, 65, 1023, 1025, 65537, 1000003};
    for (std::size_t size = 1U << 20; size <= largest_; size <<= 2) sizes.push_back(size);
    return sizes;
  }

  void reduce(std::byte* memory, std::size_t count, DType type, Lane& lane) {
    const std::size_t element = size_of(type), guard = kGuard * element;
    std::byte* data = memory + guard;
    std::memset(memory, 0x5a, guard);
    std::memset(data + count * element, 0x5a, guard);
    fill_for_check(data, count, type, all_.rank());
    all_.all_reduce(address(data), count, type, lane, "all-reduce");
    lane.drain();
    const SumCheck check = check_sum(data, count, type, all_.size());
    require(check.wrong == 0, describe(check, count, type, all_.rank()));
    const auto untouched = [](std::byte b) { return b == std::byte{0x5a}; };
    require(std::all_of(memory, data, untouched) &&
                std::all_of(data + count * element, data + count * element + guard, untouched),
            fmt::format("{} {}: bytes beside the data changed", count, to_string(type)));
  }

  // Sums that round: the same bits on every rank, and every time.
  void rounding_repeats() {
    constexpr std::size_t kCount = 300007;
    std::vector<float> data(kCount), first;
    for (int time = 0; time < 2; ++time) {
      for (std::size_t i = 0; i < kCount; ++i) {
        data[i] = 1.0F / static_cast<float>(3 + 7 * all_.rank() + static_cast<int>(i % 1013));
      }
      all_.all_reduce(address(data.data()), kCount, DType::f32, lanes_.other, "rounding");
      lanes_.other.drain();
      if (time == 0) first = data;
    }
    require(first == data, "a sum does not repeat");
    double sum = 0;
    for (int r = 0; r < all_.size(); ++r) sum += 1.0 / (3 + 7 * r + 12);
    require(std::abs(data[12] - sum) <= sum * (casts_ ? 0.02 : 1e-6),
            fmt::format("the sum is {}, not {}", data[12], sum));
    const std::uint64_t mine = Hash().add(data.data(), kCount * sizeof(float)).value();
    std::vector<std::uint64_t> every(static_cast<std::size_t>(all_.size()));
    all_.all_gather(&mine, sizeof mine, every.data());
    for (const std::uint64_t other : every) require(other == mine, "ranks hold different bits");
  }

  void control_plane() {
    for (const std::size_t count : {1U, 1000U, 700001U}) {
      for (int root = 0; root < all_.size(); ++root) {
        std::vector<int> data(count, all_.rank() == root ? 42 + root : -1);
        all_.broadcast(data.data(), count * sizeof(int), root);
        require(data == std::vector<int>(count, 42 + root), fmt::format("broadcast of {}", root));
      }
      const std::vector<int> mine(count, all_.rank());
      std::vector<int> every(count * static_cast<std::size_t>(all_.size()), -1);
      all_.all_gather(mine.data(), count * sizeof(int), every.data());
      for (std::size_t i = 0; i < every.size(); ++i) {
        require(every[i] == static_cast<int>(i / count), "all-gather");
      }
    }
    all_.barrier();
  }

  void* address(void* data) const { return biased_ ? on_device(data) : data; }

  Communicator& all_;
  std::size_t largest_;
  bool casts_;
  Memory arena_;
  Lanes lanes_;
  bool biased_;
};

// All meet once; then the last rank does not come to the all-reduce that the others are in. `data`
// outlives the communicator, whose copies may go on after a failure.
void fail(Communicator& all, const std::string& how, Lane& lane, bool staged,
          std::vector<float>& data) {
  data.assign(1 << 20, 1.0F);
  const auto reduce = [&](std::string_view label) {
    void* const gradients = staged ? static_cast<void*>(on_device(data.data())) : data.data();
    all.all_reduce(gradients, data.size(), DType::f32, lane, label);
    {
      const StreamWait wait(all, label);
      lane.drain();
    }
    all.supervision().throw_if_ended();
  };
  reduce("bucket 1");
  if (all.rank() == all.size() - 1) {
    if (how == "killed") raise(SIGKILL);
    if (how == "throws") throw Error(ErrorKind::input, "a bad file", "shard-7");
    sleep(6);  // longer than any wait for it, and ended with its process where that is killed
  }
  reduce("bucket 2");
}

// One replica, from its lanes to its cases.
void run_replica(Communicator& base, bool gpus, const std::string& what, bool casts) {
  InlineLane inline_lane;
  ThreadLane thread_lane;
  StreamLane stream, other_stream;
  const bool staged = gpus && !base.reduces(MemoryKind::device);
  const bool streams = gpus && !staged;
  std::vector<float> data;
  StagedCommunicator around(base, emulated_copies());
  Communicator& all = staged ? around : base;
  Lanes lanes{streams ? stream : static_cast<Lane&>(inline_lane),
              streams ? other_stream : static_cast<Lane&>(thread_lane)};
  const auto largest = to_integer(what);
  if (!largest) return fail(all, what, lanes.one, staged, data);
  Replica(all, static_cast<std::size_t>(*largest), casts, lanes, staged).run();
}

// MPI counts in int. What it cannot count is refused before anything is read or sent.
void refuse_more_than_mpi_counts(Communicator& all) {
  constexpr std::size_t kTooMany = std::size_t{1} << 31;
  try {
    all.all_gather(nullptr, kTooMany, nullptr);
  } catch (const Error& error) {
    require(std::string_view(error.what()).find("2 GB") != std::string_view::npos, error.what());
    return;
  }
  require(false, "2 GB were gathered from a rank");
}

// The other ranks hear of this one's end, and this one of theirs, as in the program itself.
class Hearing {
 public:
  Hearing(const BootstrapAddress& where, int rank, double seconds)
      : control_(where, rank, seconds, [this](int, const std::string& why) { lose(why); }) {}

  LivenessConnection& control() { return control_; }
  void notify(std::vector<std::unique_ptr<Communicator>>* communicators) {
    const std::lock_guard lock(mutex_);
    communicators_ = communicators;
  }

 private:
  void lose(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (communicators_ == nullptr) return;
    for (auto& communicator : *communicators_) communicator->abort(why);
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Communicator>>* communicators_ = nullptr;
  LivenessConnection control_;
};

int run(const std::string& text, int replicas, const std::string& what, bool gpus) {
  const ProcessRank process = find_process_rank(environment_of_process());
  const auto backend = make_backend(text, backend_table(), wrapper_table(),
                                    gpus ? MemoryKind::device : MemoryKind::host);
  const ReplicaGpus emulated = emulated_gpus(process, replicas);
  Membership membership;
  membership.process = process;
  membership.replicas_here = replicas;
  if (gpus) membership.gpus = &emulated;
  const auto largest = to_integer(what);
  membership.deadlines = largest ? Deadlines{20, 60} : Deadlines{1, 2};
  membership.on_fatal_error = [process](const Error& error) {
    write_fatal_status(environment_of_process(), process, error);
  };
  std::unique_ptr<StoreClient> store;
  std::unique_ptr<Hearing> hearing;
  if (std::getenv(kStoreVariable) != nullptr) {
    const BootstrapAddress where = find_bootstrap(process, environment_of_process());
    store = std::make_unique<StoreClient>(where, process.rank, membership.deadlines.abort_seconds);
    membership.store = store.get();
    if (gpus) {  // other backends hear of a loss by their own connections
      hearing = std::make_unique<Hearing>(where, process.rank, membership.deadlines.abort_seconds);
      membership.control = &hearing->control();
    }
  }
  const Support support = backend->serves(membership);
  if (!support) throw Error(ErrorKind::usage, support.because());
  auto communicators = backend->connect(membership);
  if (hearing) hearing->notify(&communicators);
  const BackendStack stack = split_stack(text);
  const bool casts = !stack.wrappers.empty();
  std::exception_ptr first;
  bool only_consequence = true;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (auto& communicator : communicators) {
    threads.emplace_back([&] {
      try {
        require(communicator->size() == process.size * replicas, "size of the world");
        if (text == "mpi" && !gpus) refuse_more_than_mpi_counts(*communicator);
        run_replica(*communicator, gpus, what, casts);
      } catch (const Error& error) {
        const bool consequence = error.kind() == ErrorKind::peer_lost;
        if (!consequence) write_exit_status(environment_of_process(), process, error);
        if (hearing) hearing->control().abort(error.what());
        communicator->abort(error.what());
        std::lock_guard lock(mutex);
        if (!first || (only_consequence && !consequence)) first = std::current_exception();
        only_consequence = only_consequence && consequence;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  hearing.reset();  // before what it may abort
  if (first) std::rethrow_exception(first);
  return 0;
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  using namespace paceline;
  try {
    if (argc != 5) throw Error(ErrorKind::usage, "comm_ranks STACK REPLICAS WHAT MEMORY");
    const Environment environment = environment_of_process();
    return run_rank(environment, find_process_rank(environment), [&] {
      return run(argv[1], std::stoi(argv[2]), argv[3], std::string(argv[4]) == "gpus");
    });
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return exit_code(error.kind());
  }
}
