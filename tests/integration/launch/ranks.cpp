// A rank under test: launch_ranks CASE [ARGUMENT]. Started by spawn_ranks() or mpirun.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/comm/backend.h"
#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/failure/rank_status.h"

namespace paceline {

std::unique_ptr<Backend> make_mpi_ring_backend();

namespace {

void require(bool condition, const std::string& what) {
  if (!condition) throw Error(ErrorKind::mismatch, what);
}

// A value that differs by rank and index, and whose sums round: the order of addition shows.
template <typename T>
T value(int rank, std::size_t i) {
  const auto mixed =
      static_cast<double>((i * 2654435761U + static_cast<std::size_t>(rank) * 97U) % 1000003U);
  return static_cast<T>(mixed / 1000003.0 - 0.5 + rank * 1e-3);
}

class Ranks {
 public:
  explicit Ranks(const ProcessRank& process, Deadlines deadlines = {})
      : process_(process), backend_(make_mpi_ring_backend()) {
    const Membership membership{process, 1, deadlines};
    if (const Support support = backend_->serves(membership); !support) {
      throw Error(ErrorKind::usage, support.because());
    }
    communicators_ = backend_->connect(membership);
  }

  Communicator& communicator() { return *communicators_[0]; }
  std::string description() const { return backend_->description(); }

  // All sizes, in the arena, across its end and outside it, on an inline lane and a thread.
  template <typename T>
  void all_reduces(DType type, bool one_node) {
    constexpr std::size_t kMost = 1000003;
    const std::size_t most = type == DType::f32 ? kMost : 200003;  // both exceed the scratch part
    if (!arena_.data()) arena_ = communicator().allocate(kMost * sizeof(double) + 4096);
    std::vector<T> outside(kMost + 3);
    InlineLane inline_lane;
    ThreadLane thread_lane;
    for (const std::size_t count : std::vector<std::size_t>{0, 1, 7, 63, 64, 65, 4097, most}) {
      auto* inside = reinterpret_cast<T*>(arena_.data());
      if (inside != nullptr) all_reduce(inside + 3, count, type, inline_lane, one_node);
      if (inside != nullptr) all_reduce(inside, count, type, thread_lane, one_node);
      all_reduce(outside.data() + 3, count, type, thread_lane, one_node);
    }
  }

  void control_plane() {
    Communicator& all = communicator();
    const auto size = static_cast<std::size_t>(all.size());
    for (const std::size_t count : {1U, 1000U, 700001U}) {
      for (int root = 0; root < all.size(); ++root) {
        std::vector<int> data(count, all.rank() == root ? 42 + root : -1);
        all.broadcast(data.data(), count * sizeof(int), root);
        require(data == std::vector<int>(count, 42 + root), "broadcast");
      }
      const std::vector<int> mine(count, all.rank());
      std::vector<int> every(count * size, -1);
      all.all_gather(mine.data(), count * sizeof(int), every.data());
      for (std::size_t i = 0; i < every.size(); ++i) {
        require(every[i] == static_cast<int>(i / count), "all-gather");
      }
    }
    std::vector<double> sums = {1.0, all.rank() * 0.1};
    sum_over_ranks(all, sums);
    double expected = 0;
    for (int r = 0; r < all.size(); ++r) expected += r * 0.1;
    require(sums[0] == all.size() && sums[1] == expected, "sum over ranks");
    all.barrier();
  }

 private:
  template <typename T>
  void all_reduce(T* data, std::size_t count, DType type, Lane& lane, bool one_node) {
    const std::string what = fmt::format("all-reduce of {} {}", count, to_string(type));
    std::vector<T> first;
    for (int time = 0; time < 2; ++time) {
      for (std::size_t i = 0; i < count; ++i) data[i] = value<T>(process_.rank, i);
      communicator().all_reduce(data, count, type, lane, "all-reduce");
      lane.drain();
      if (time == 0) first.assign(data, data + count);
    }
    check_sum(data, count, one_node, what);
    require(count == 0 || std::memcmp(first.data(), data, count * sizeof(T)) == 0,
            what + " does not repeat");
    check_same_bits(data, count * sizeof(T), what);
  }

  template <typename T>
  void check_sum(const T* data, std::size_t count, bool one_node, const std::string& what) {
    for (std::size_t i = 0; i < count; ++i) {
      T sum = value<T>(0, i);
      for (int r = 1; r < process_.size; ++r) sum += value<T>(r, i);
      const double tolerance = one_node ? 0 : 1e-6;  // between nodes MPI chooses the order
      require(std::abs(static_cast<double>(data[i] - sum)) <= tolerance,
              fmt::format("{}: element {} is {}, not {}", what, i, data[i], sum));
    }
  }

  void check_same_bits(const void* data, std::size_t bytes, const std::string& what) {
    const std::uint64_t mine = Hash().add(data, bytes).value();
    std::vector<std::uint64_t> all(static_cast<std::size_t>(process_.size));
    communicator().all_gather(&mine, sizeof mine, all.data());
    for (const std::uint64_t other : all) require(other == mine, what + " differs between ranks");
  }

  ProcessRank process_;
  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  Memory arena_;
};

int collectives(const ProcessRank& process, const std::string& nodes) {
  Ranks ranks(process);
  ranks.all_reduces<float>(DType::f32, nodes == "1");
  ranks.all_reduces<double>(DType::f64, nodes == "1");
  ranks.control_plane();
  require(ranks.description().find(fmt::format("{} ranks on {} node", process.size, nodes)) !=
              std::string::npos,
          ranks.description());
  return 0;
}

// As the trainer does: what one rank throws releases the others.
int failing(const ProcessRank& process, const std::string& how) {
  Ranks ranks(process, {1.0, how == "stalls" ? 2.0 : 20.0});
  ranks.communicator().barrier();
  try {
    if (process.rank == 1 && how == "killed") raise(SIGKILL);
    if (process.rank == 1 && how == "throws")
      throw Error(ErrorKind::input, "a bad file", "rank1.gz");
    if (process.rank == 1 && (how == "stalls" || how == "waits")) sleep(60);
    ranks.communicator().barrier();
  } catch (const Error& error) {
    // First, as training does: others end when they hear of it, and the launcher then ends this.
    if (error.kind() != ErrorKind::peer_lost) {
      write_exit_status(environment_of_process(), process, error);
    }
    ranks.communicator().abort(error.what());
    throw;
  }
  return 0;
}

int share(const ProcessRank& process, const std::string& bytes) {
  Ranks ranks(process);
  const Memory memory = ranks.communicator().allocate(std::stoull(bytes));
  std::printf("shares %zu bytes\n", memory.bytes());
  return 0;
}

// One line of standard output a rank, and progress on standard error.
int talk(const ProcessRank& process, const std::string& code) {
  Ranks ranks(process);
  std::printf("rank %d of %d\n", process.rank, process.size);
  std::fprintf(stderr, "progress of rank %d\n", process.rank);
  std::fflush(stdout);
  ranks.communicator().barrier();  // a launcher stops the others once one has ended with a code
  return process.rank == 0 ? std::stoi(code) : 0;
}

int run(int argc, char** argv) {
  const std::map<std::string, int (*)(const ProcessRank&, const std::string&)> cases = {
      {"collectives", collectives}, {"failing", failing}, {"share", share}, {"talk", talk}};
  const auto found = cases.find(argc > 1 ? argv[1] : "");
  if (found == cases.end() || argc != 3)
    throw Error(ErrorKind::usage, "launch_ranks CASE ARGUMENT");
  const Environment environment = environment_of_process();
  const ProcessRank process = find_process_rank(environment);
  return run_rank(environment, process, [&] { return found->second(process, argv[2]); });
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  try {
    return paceline::run(argc, argv);
  } catch (const paceline::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return paceline::exit_code(error.kind());
  }
}
