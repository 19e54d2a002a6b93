// See README.md.
#include <fcntl.h>
#include <nccl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/comm/algorithms/sum.h"
#include "tests/support/fake_stream.h"

namespace {

constexpr int kRanks = 8;
constexpr std::size_t kSlotBytes = 1 << 18;
constexpr auto kGraphsLive = std::chrono::seconds(20);  // after an abort, at most
constexpr int kPolls = 3;  // a call stays in progress for so many questions

struct Shared {  // the file; zero bytes are its start
  std::atomic<int> joined;
  std::atomic<int> left;
  std::array<std::atomic<std::uint32_t>, kRanks> epoch;
  std::array<std::atomic<std::uint32_t>, kRanks> capture;  // of the sum at hand
  std::array<std::array<std::byte, kSlotBytes>, kRanks> slots;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string folder() {
  const std::string named = variable("FAKE_NCCL_FOLDER");
  return named.empty() ? std::filesystem::temp_directory_path().string() : named;
}

// By default newer than whatever versions get wrong.
int version() {
  const std::string named = variable("FAKE_NCCL_VERSION");
  return named.empty() ? NCCL_VERSION(2, 32, 0) : std::stoi(named);
}

std::mutex registry_mutex;  // of what is registered or allocated, too
std::mutex misuse_mutex;

void misuse(const std::string& what) {
  const std::lock_guard lock(misuse_mutex);
  std::ofstream(folder() + "/misuse", std::ios::app) << what << '\n';
}

// Whether this call is the one of FAKE_NCCL_FAIL_CALL, counted since that was set.
bool call_fails(const std::string& kind) {
  static std::mutex mutex;
  static std::string counted;
  static int count = 0;
  const std::lock_guard lock(mutex);
  const std::string wanted = variable("FAKE_NCCL_FAIL_CALL");
  if (std::exchange(counted, wanted) != wanted) count = 0;
  const std::size_t colon = wanted.find(':');
  if (wanted.substr(0, colon) != kind) return false;
  return std::to_string(++count) == wanted.substr(colon + 1);
}

paceline::DType type_at(ncclDataType_t type) {
  switch (type) {
    case ncclFloat16:
      return paceline::DType::f16;
    case ncclBfloat16:
      return paceline::DType::bf16;
    case ncclFloat32:
      return paceline::DType::f32;
    default:
      return paceline::DType::f64;
  }
}

}  // namespace

struct Work {
  ncclComm* comm;
  std::byte* data;
  std::size_t count;
  paceline::DType type;
  std::uint32_t capture;  // its number among the captured sums; 0: it is not captured
};

struct ncclComm {
  int rank = 0, size = 1, sums = 0;
  Shared* shared = nullptr;
  std::string id;  // of its world
  std::uint32_t epoch = 0;
  std::atomic<bool> aborted{false}, joined{false}, finalized{false}, gone{false};
  std::atomic<int> polls{0};  // that are left of the call in progress
  std::atomic<int> error{ncclSuccess};
  bool blocking = false;
  std::set<void*> handles;
  std::ofstream log;
  std::deque<Work> works;  // kept: a captured sum is replayed
  std::uint32_t captures = 0;
  std::atomic<int> graphs{0};  // captured sums whose graphs are alive

  bool barrier() {
    shared->epoch[static_cast<std::size_t>(rank)] = ++epoch;
    for (int r = 0; r < size; ++r) {
      while (shared->epoch[static_cast<std::size_t>(r)] < epoch) {
        if (aborted) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
    return true;
  }

  // Whether a sum is captured is NCCL's collective property: all ranks queue it plainly, or launch
  // graphs of the same capture.
  void check_capture(std::uint32_t number) {
    for (int r = 0; r < size; ++r) {
      if (shared->capture[static_cast<std::size_t>(r)] == number) continue;
      misuse("a sum is captured on one rank and not, or in another capture, on another");
    }
  }

  void sum(std::byte* data, std::size_t count, paceline::DType type, std::uint32_t capture) {
    if (aborted) return;
    shared->capture[static_cast<std::size_t>(rank)] = capture;
    const std::size_t element = size_of(type), most = kSlotBytes / element;
    for (std::size_t at = 0; at < count; at += most) {
      const std::size_t n = std::min(most, count - at);
      std::byte* part = data + at * element;
      std::memcpy(shared->slots[static_cast<std::size_t>(rank)].data(), part, n * element);
      if (!barrier()) return;
      check_capture(capture);
      std::vector<std::byte> total(shared->slots[0].begin(),
                                   shared->slots[0].begin() + static_cast<long>(n * element));
      for (int r = 1; r < size; ++r) {
        paceline::add_to(total.data(), shared->slots[static_cast<std::size_t>(r)].data(), n, type);
      }
      std::memcpy(part, total.data(), n * element);
      if (!barrier()) return;
    }
  }

  bool fails_now() {
    const std::string when = variable("FAKE_NCCL_FAIL");
    return when == std::to_string(rank) + ":" + std::to_string(sums);
  }

  // What NCCL logs when it connects ranks: at the first sum.
  void connect() {
    log << "fake:1:1 [0] NCCL INFO Channel 00/0 : " << rank << "[0] -> " << (rank + 1) % size
        << "[0] via SHM/direct/direct" << std::endl;
  }

  void check_ready(const char* call) {
    if (polls > 0 || !joined) misuse(std::string(call) + " while another call is in progress");
  }
};

namespace {

std::vector<std::unique_ptr<ncclComm>> registry;  // never freed: streams may still refer to them
std::set<void*> allocated;
thread_local int group_depth = 0;
thread_local std::vector<ncclComm*> group;         // that joins or leaves with the group's end
thread_local std::string last_id, graph_register;  // NCCL_GRAPH_REGISTER when the id was made

// What versions get wrong. `registry` does not have the communicator yet.
void check_version(const std::string& id, bool blocking) {
  if (blocking) return;
  if (version() >= NCCL_VERSION(2, 26, 0) && version() < NCCL_VERSION(2, 27, 0)) {
    misuse("init: a non-blocking communicator of 2.26 hangs");
  }
  for (const auto& other : registry) {
    if (version() >= NCCL_VERSION(2, 27, 3) || other->id != id || other->blocking) continue;
    misuse("init: several non-blocking communicators of a process race before 2.27.3");
  }
}

void let_go(void* comm) {
  --static_cast<ncclComm*>(comm)->graphs;
}

void run(void* argument) {
  const Work* work = static_cast<Work*>(argument);
  ncclComm& comm = *work->comm;
  if (comm.sums++ == 0) comm.connect();
  if (!comm.fails_now()) return comm.sum(work->data, work->count, work->type, work->capture);
  comm.error = ncclRemoteError;
  while (!comm.aborted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

extern "C" {

#define EXPORT __attribute__((visibility("default")))

EXPORT ncclResult_t ncclGetVersion(int* here) {
  *here = version();
  return ncclSuccess;
}

EXPORT const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "unhandled error";
}

EXPORT const char* ncclGetLastError(ncclComm_t) {
  return "socketProgress: Connection closed\nby remote peer";
}

EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (call_fails("id")) return ncclSystemError;
  std::string path = folder() + "/world-XXXXXX";
  if (path.size() >= sizeof id->internal) return ncclInvalidArgument;
  const int file = mkstemp(path.data());
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) return ncclSystemError;
  close(file);
  std::strcpy(id->internal, path.c_str());
  last_id = path;
  graph_register = variable("NCCL_GRAPH_REGISTER");
  return ncclSuccess;
}

EXPORT ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}

EXPORT ncclResult_t ncclGroupEnd() {
  if (--group_depth > 0) return ncclSuccess;
  ncclResult_t result = ncclSuccess;
  for (ncclComm* comm : std::exchange(group, {})) {
    ncclResult_t state = ncclInProgress;
    while (comm->blocking && state == ncclInProgress) ncclCommGetAsyncError(comm, &state);
    if (!comm->blocking) result = ncclInProgress;
  }
  return result;
}

EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                           ncclConfig_t* config) {
  if (config->magic != 0xcafebeef) misuse("init: not a config");
  if (group_depth == 0) misuse("init outside of a group");
  while (std::filesystem::exists(folder() + "/block")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  *comm = nullptr;
  if (call_fails("init")) return ncclSystemError;
  const int file = open(id.internal, O_RDWR | O_CLOEXEC);
  if (file < 0) return ncclSystemError;
  void* shared = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (last_id == id.internal && graph_register != variable("NCCL_GRAPH_REGISTER")) {
    misuse("init: NCCL_GRAPH_REGISTER was set after NCCL had read it");
  }
  const std::lock_guard lock(registry_mutex);
  check_version(id.internal, config->blocking == 1);
  registry.push_back(std::make_unique<ncclComm>());
  *comm = registry.back().get();
  (*comm)->rank = rank;
  (*comm)->size = size;
  (*comm)->shared = static_cast<Shared*>(shared);
  (*comm)->id = id.internal;
  (*comm)->blocking = config->blocking == 1;
  (*comm)->log.open(variable("NCCL_DEBUG_FILE"), std::ios::app);
  (*comm)->polls = kPolls;
  group.push_back(*comm);
  ++(*comm)->shared->joined;
  return ncclInProgress;
}

EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  if (!variable("FAKE_NCCL_INVALID").empty()) return ncclInvalidArgument;
  *state = static_cast<ncclResult_t>(comm->error.load());
  if (*state != ncclSuccess) return ncclSuccess;
  *state = ncclInProgress;
  if (!variable("FAKE_NCCL_STALL").empty()) return ncclSuccess;
  if (comm->polls > 0 && --comm->polls > 0) return ncclSuccess;
  if (comm->shared->joined < comm->size) return ncclSuccess;
  if (comm->finalized && comm->shared->left < comm->size) return ncclSuccess;
  comm->joined = true;
  *state = ncclSuccess;
  return ncclSuccess;
}

// The last of a process' communicators waits until no graph has sums of them.
EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm) {
  std::vector<ncclComm*> here;
  {
    const std::lock_guard lock(registry_mutex);
    comm->aborted = true;
    if (!comm->gone.exchange(true)) ++comm->shared->left;
    for (const auto& other : registry) {
      if (other->id != comm->id) continue;
      if (!other->aborted) return ncclSuccess;
      here.push_back(other.get());
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  for (ncclComm* other : here) {
    while (other->graphs > 0) {
      if (std::chrono::steady_clock::now() - begin > kGraphsLive) {
        misuse("abort: graphs with its sums are not let go");
        return ncclSystemError;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return ncclSuccess;
}

EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  comm->check_ready("finalize");
  if (comm->graphs > 0) misuse("finalize while graphs have its sums");
  if (group_depth == 0) misuse("finalize outside of a group");
  if (call_fails("finalize")) {
    comm->error = ncclRemoteError;
    return ncclRemoteError;
  }
  comm->finalized = true;
  comm->polls = kPolls;
  group.push_back(comm);
  if (!comm->gone.exchange(true)) ++comm->shared->left;
  return ncclInProgress;
}

EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  comm->check_ready("destroy");
  if (!comm->finalized) misuse("destroy before finalize");
  if (!comm->handles.empty()) misuse("destroy with registered memory");
  return ncclSuccess;
}

EXPORT ncclResult_t ncclMemAlloc(void** data, size_t bytes) {
  if (call_fails("allocate")) return ncclUnhandledCudaError;
  *data = std::malloc(bytes);
  std::memset(*data, 0x5a, bytes);
  const std::lock_guard lock(registry_mutex);
  allocated.insert(*data);
  return ncclSuccess;
}

EXPORT ncclResult_t ncclMemFree(void* data) {
  const std::lock_guard lock(registry_mutex);
  if (allocated.erase(data) == 0) return ncclInvalidArgument;
  for (const auto& comm : registry) {
    if (comm->handles.count(data) != 0 && !comm->aborted) misuse("freed while registered");
  }
  std::free(data);
  return ncclSuccess;
}

EXPORT ncclResult_t ncclCommRegister(ncclComm_t comm, void* data, size_t, void** handle) {
  comm->check_ready("register");
  if (version() < NCCL_VERSION(2, 24, 3)) misuse("register crashes with graphs before 2.24.3");
  if (call_fails("register")) return ncclUnhandledCudaError;
  const std::lock_guard lock(registry_mutex);
  comm->handles.insert(data);
  *handle = data;
  return ncclSuccess;
}

EXPORT ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle) {
  comm->check_ready("deregister");
  const std::lock_guard lock(registry_mutex);
  if (comm->handles.erase(handle) == 0) misuse("deregister of what is not registered");
  return ncclSuccess;
}

EXPORT ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                                  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  comm->check_ready("all-reduce");
  if (from != to || op != ncclSum) misuse("all-reduce: not a sum in place");
  auto* queue = reinterpret_cast<paceline::FakeStream*>(stream);
  const bool captured = queue->captures != nullptr && queue->captures(queue);
  if (captured && version() < NCCL_VERSION(2, 27, 3)) {
    misuse("all-reduce: captured and plain sums race before 2.27.3");
  }
  if (call_fails(captured ? "captured-sum" : "sum")) return ncclUnhandledCudaError;
  comm->works.push_back(
      {comm, static_cast<std::byte*>(to), count, type_at(type), captured ? ++comm->captures : 0});
  try {
    queue->enqueue(queue, &run, &comm->works.back());
  } catch (const std::exception&) {
    return ncclUnhandledCudaError;
  }
  if (captured) {
    ++comm->graphs;
    queue->retain(queue, &let_go, comm);
  }
  if (!comm->blocking) comm->polls = kPolls;
  return comm->blocking ? ncclSuccess : ncclInProgress;
}

}  // extern "C"
