#include "engine/comm/backends/mpi/world.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <exception>
#include <string>
#include <thread>

#include "engine/comm/algorithms/node_communicator.h"
#include "engine/comm/communicator.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/core/text.h"
#include "engine/launch/process_rank.h"
#include "engine/launch/topology.h"

namespace paceline::mpi {

namespace {

// The communication lane's thread calls MPI while the main thread only waits.
void initialise() {
  int done = 0, provided = 0;
  check(MPI_Initialized(&done), "MPI_Initialized");
  if (done != 0) {
    throw internal_error("MPI can be started only once in a process", "MPI_Init_thread",
                         "keep the backend until the end");
  }
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  if (provided >= MPI_THREAD_SERIALIZED) return;
  throw usage_error("this MPI does not let several threads call it in turn", library_version(),
                    "use one built with thread support");
}

// MPI knows no code for a lost peer (before MPI 5); these are what broken connections become.
bool may_be_lost_peer(int error_class) {
  return error_class == MPI_ERR_OTHER || error_class == MPI_ERR_UNKNOWN ||
         error_class == MPI_ERR_INTERN;
}

constexpr double kSecondsToBlame = 2;

std::string describe(const Awaited& who) {
  return who.rank < 0 ? "another rank" : fmt::format("rank {}", who.rank);
}

[[noreturn]] void throw_stall(double seconds, std::string_view label, const Awaited& who) {
  const std::string what =
      who.came ? fmt::format("{} came but did not continue within {:g} s", describe(who), seconds)
               : fmt::format("{} did not come within {:g} s", describe(who), seconds);
  throw Error(ErrorKind::stall, what, std::string(label),
              who.came ? "see which rank it waited for" : "see what it was doing");
}

}  // namespace

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  check(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  std::string version(text.data(), static_cast<std::size_t>(length));
  version = version.substr(0, version.find_first_of(",\n"));
  for (char& c : version) {
    if (c == '\t') c = ' ';
  }
  return std::string(trim(version));
}

World::World(const ProcessRank& process, int ranks_a_task)
    : ranks_a_task_(ranks_a_task), exceptions_at_start_(std::uncaught_exceptions()) {
  initialise();
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  check_against_mpi(process, rank_, size_);
  check(MPI_Comm_dup(MPI_COMM_WORLD, &all_), "MPI_Comm_dup");
  split_nodes();
  count_cpus();
}

void World::split_nodes() {
  if (const auto ranks = test_ranks_per_node()) {
    check(MPI_Comm_split(all_, rank_ / *ranks, rank_, &node_), "MPI_Comm_split");
  } else {
    check(MPI_Comm_split_type(all_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node_),
          "MPI_Comm_split_type");
  }
  int node_size = 1;
  check(MPI_Comm_rank(node_, &node_rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(node_, &node_size), "MPI_Comm_size");
  const int mine = name();
  node_ranks_.resize(static_cast<std::size_t>(node_size));
  check(MPI_Allgather(&mine, 1, MPI_INT, node_ranks_.data(), 1, MPI_INT, node_), "MPI_Allgather");
  const int leads = node_rank_ == 0 ? 1 : 0;
  check(MPI_Comm_split(all_, leads != 0 ? 0 : MPI_UNDEFINED, rank_, &leaders_), "MPI_Comm_split");
  check(MPI_Allreduce(&leads, &nodes_, 1, MPI_INT, MPI_SUM, all_), "MPI_Allreduce");
  if (leads == 0) return;
  leader_ranks_.resize(static_cast<std::size_t>(nodes_));
  check(MPI_Allgather(&mine, 1, MPI_INT, leader_ranks_.data(), 1, MPI_INT, leaders_),
        "MPI_Allgather");
}

void World::count_cpus() {
  constexpr std::size_t kMostCpus = 4096;
  std::array<unsigned char, kMostCpus> may_use{};
  for (const int cpu : usable_cpus()) may_use[static_cast<std::size_t>(cpu) % kMostCpus] = 1;
  check(MPI_Allreduce(MPI_IN_PLACE, may_use.data(), static_cast<int>(kMostCpus), MPI_UNSIGNED_CHAR,
                      MPI_MAX, node_),
        "MPI_Allreduce");
  node_cpus_ = 0;
  for (const unsigned char use : may_use) node_cpus_ += use;
}

std::vector<int> World::names() const {
  return RankGroup::numbered(rank_, size_, ranks_a_task_).names;
}

MPI_Comm World::split(std::optional<int> group) {
  MPI_Comm members = MPI_COMM_NULL;
  check(MPI_Comm_split(all_, group.value_or(MPI_UNDEFINED), rank_, &members), "MPI_Comm_split");
  if (members != MPI_COMM_NULL) splits_.push_back(members);
  return members;
}

double World::spin_seconds() const {
  return node_size() <= node_cpus_ ? kSpinMicroseconds * 1e-6 : 0;
}

bool World::failing() const noexcept {
  return failed_ || std::uncaught_exceptions() > exceptions_at_start_;
}

World::~World() {
  if (failing()) return;
  for (MPI_Comm& split : splits_) MPI_Comm_free(&split);
  if (leaders_ != MPI_COMM_NULL) MPI_Comm_free(&leaders_);
  MPI_Comm_free(&node_);
  MPI_Comm_free(&all_);
  MPI_Finalize();
}

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  int error_class = MPI_ERR_UNKNOWN, length = 0;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  MPI_Error_class(code, &error_class);
  MPI_Error_string(code, text.data(), &length);
  const bool lost = may_be_lost_peer(error_class);
  throw Error(lost ? ErrorKind::peer_lost : ErrorKind::internal,
              std::string(text.data(), static_cast<std::size_t>(length)), call,
              lost ? "see the other ranks' errors" : "please report it with the command");
}

void wait_for(MPI_Request& request, const WaitDeadline& deadline, std::string_view label,
              Awaited who) {
  const double start = now_seconds();
  bool warned = false;
  while (true) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return;
    const double waited = now_seconds() - start;
    if (waited < deadline.spin_seconds) continue;
    if (deadline.interrupt) deadline.interrupt();
    const double limit = deadline.deadlines.limit_seconds() + (who.came ? kSecondsToBlame : 0);
    if (waited > limit) throw_stall(limit, label, who);
    if (waited > deadline.deadlines.warn_seconds && !warned) {
      log::warning("waited {} for {} at {}", format_seconds(waited), describe(who), label);
      warned = true;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(waited < 0.1 ? 20 : 500));
  }
}

}  // namespace paceline::mpi
