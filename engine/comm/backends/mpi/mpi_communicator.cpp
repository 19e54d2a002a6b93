#include "engine/comm/backends/mpi/mpi_communicator.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <climits>
#include <utility>

#include "engine/comm/algorithms/sum.h"
#include "engine/core/environment.h"
#include "engine/core/error.h"

namespace paceline::mpi {

namespace {

constexpr std::size_t kMostElements = std::size_t{1} << 28;  // MPI counts with an int

template <DType type>
void add_halves(void* from, void* to, int* count, MPI_Datatype*) {
  add_to(static_cast<std::byte*>(to), static_cast<const std::byte*>(from),
         static_cast<std::size_t>(*count), type);
}

// For Open MPI 4, whose components are files: "tuned" of ".../mca_coll_tuned.so".
std::string component_of_file(std::string_view file) {
  constexpr std::string_view kPrefix = "mca_coll_";
  const std::size_t at = file.rfind(kPrefix);
  if (at == std::string_view::npos) return "";
  file.remove_prefix(at + kPrefix.size());
  return std::string(file.substr(0, file.find('.')));
}

// For Open MPI 5, whose components are in libmpi: "tuned" of
// "ompi_coll_tuned_allreduce_intra_dec_fixed". What all of them share is in "base".
std::string component_of_function(std::string_view name) {
  for (const std::string_view prefix : {"mca_coll_", "ompi_coll_"}) {
    if (!name.starts_with(prefix)) continue;
    name.remove_prefix(prefix.size());
    const std::string component(name.substr(0, name.find('_')));
    return component == "base" ? "" : component;
  }
  return "";
}

// The outermost component on the stack of the calling thread is the one that MPI_Allreduce called;
// it may call others.
std::string outermost_component() {
  std::array<void*, 64> frames;
  const int depth = backtrace(frames.data(), static_cast<int>(frames.size()));
  std::string component;
  for (int i = 0; i < depth; ++i) {
    Dl_info info{};
    if (dladdr(frames[static_cast<std::size_t>(i)], &info) == 0) continue;
    std::string found = info.dli_fname == nullptr ? "" : component_of_file(info.dli_fname);
    if (found.empty() && info.dli_sname != nullptr) found = component_of_function(info.dli_sname);
    if (!found.empty()) component = found;
  }
  return component;
}

thread_local std::string* seen_component = nullptr;

void add_and_look(void* from, void* to, int* count, MPI_Datatype*) {
  if (seen_component != nullptr) *seen_component = outermost_component();
  const auto* added = static_cast<const float*>(from);
  auto* sums = static_cast<float*>(to);
  for (int i = 0; i < *count; ++i) sums[i] += added[i];
}

}  // namespace

MpiCommunicator::MpiCommunicator(World& world, MPI_Comm ranks, const Deadlines& deadlines,
                                 OnTimeout on_timeout, std::function<void()> select_gpu)
    : world_(world),
      ranks_(ranks),
      deadline_{deadlines, world.spin_seconds(), {}},
      all_reduce_(ranks, deadlines, std::move(on_timeout)),
      select_gpu_(std::move(select_gpu)) {
  check(MPI_Comm_rank(ranks_, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(ranks_, &size_), "MPI_Comm_size");
}

void MpiCommunicator::all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                                 std::string_view label) {
  if (size_ == 1) return;
  lane.submit([this, data, count, type, label] {
    if (select_gpu_) select_gpu_();
    all_reduce_.sum(static_cast<std::byte*>(data), count, type, label);
  });
}

void MpiCommunicator::broadcast(void* data, std::size_t bytes, int root) {
  auto* to = static_cast<std::byte*>(data);
  for (std::size_t at = 0; at < bytes; at += kMostElements) {
    const auto n = static_cast<int>(std::min(kMostElements, bytes - at));
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibcast(to + at, n, MPI_BYTE, root, ranks_, &request), "MPI_Ibcast");
    wait_for(request, deadline_, "broadcast");
  }
}

void MpiCommunicator::all_gather(const void* mine, std::size_t bytes, void* all) {
  if (bytes > INT_MAX) throw internal_error("more than 2 GB to gather from a rank");
  const auto n = static_cast<int>(bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(mine, n, MPI_BYTE, all, n, MPI_BYTE, ranks_, &request), "MPI_Iallgather");
  wait_for(request, deadline_, "all-gather");
}

void MpiCommunicator::barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(ranks_, &request), "MPI_Ibarrier");
  wait_for(request, deadline_, "barrier");
}

AllReduce::AllReduce(MPI_Comm ranks, const Deadlines& deadlines, OnTimeout on_timeout)
    : ranks_(ranks), timeout_(deadlines, std::move(on_timeout)) {
  check(MPI_Op_create(add_halves<DType::bf16>, 1, &sum_bf16_), "MPI_Op_create");
  check(MPI_Op_create(add_halves<DType::f16>, 1, &sum_f16_), "MPI_Op_create");
}

AllReduce::~AllReduce() {
  MPI_Op_free(&sum_bf16_);
  MPI_Op_free(&sum_f16_);
}

void AllReduce::sum(std::byte* data, std::size_t count, DType type, std::string_view label) {
  check_summable(type);
  MPI_Datatype element = MPI_UINT16_T;
  MPI_Op add = type == DType::bf16 ? sum_bf16_ : sum_f16_;
  if (type == DType::f32) element = MPI_FLOAT, add = MPI_SUM;
  if (type == DType::f64) element = MPI_DOUBLE, add = MPI_SUM;
  const CallTimeout::Call watched(timeout_, label);
  for (std::size_t at = 0; at < count; at += kMostElements) {
    const std::size_t n = std::min(kMostElements, count - at);
    check(MPI_Allreduce(MPI_IN_PLACE, data + at * size_of(type), static_cast<int>(n), element, add,
                        ranks_),
          "MPI_Allreduce");
  }
}

bool takes_gpu_memory(MPI_Comm ranks) {
  void* const query = dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");
  int takes = query == nullptr ? 0 : reinterpret_cast<int (*)()>(query)();
  if (environment_value(environment_of_process(), "PACELINE_MPI_GPU_MEMORY") == "off") takes = 0;
  check(MPI_Allreduce(MPI_IN_PLACE, &takes, 1, MPI_INT, MPI_MIN, ranks), "MPI_Allreduce");
  return takes != 0;
}

std::string all_reduce_component(MPI_Comm ranks) {
  std::string component;
  seen_component = &component;
  MPI_Op add = MPI_OP_NULL;
  check(MPI_Op_create(add_and_look, 1, &add), "MPI_Op_create");
  std::array<float, 256> data{};
  const int code = MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(data.size()),
                                 MPI_FLOAT, add, ranks);
  seen_component = nullptr;
  MPI_Op_free(&add);
  check(code, "MPI_Allreduce");
  return component;
}

}  // namespace paceline::mpi
