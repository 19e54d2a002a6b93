#include "engine/comm/backends/mpi/flat_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "engine/comm/algorithms/sum.h"
#include "engine/core/error.h"

namespace paceline::mpi {

namespace {

constexpr std::size_t kMostElements = std::size_t{1} << 28;  // MPI counts with an int

template <DType type>
void add_halves(void* from, void* to, int* count, MPI_Datatype*) {
  add_to(static_cast<std::byte*>(to), static_cast<const std::byte*>(from),
         static_cast<std::size_t>(*count), type);
}

struct Kind {
  MPI_Datatype type;
  MPI_Op sum;
};

Kind kind_of(DType type, const HalfSums& half_sums) {
  check_summable(type);
  if (type == DType::f32) return {MPI_FLOAT, MPI_SUM};
  if (type == DType::f64) return {MPI_DOUBLE, MPI_SUM};
  return {MPI_UINT16_T, type == DType::bf16 ? half_sums.bf16 : half_sums.f16};
}

[[noreturn]] void end_job(const World& world, const Deadlines& deadlines, const std::string& label,
                          const std::function<void(const Error&)>& last_words) {
  Error error(ErrorKind::stall,
              fmt::format("MPI_Allreduce did not return within {:g} s", deadlines.limit_seconds()),
              label, "see what the other ranks were doing; without +flat the missing one is named");
  error.on_rank(world.name());
  if (last_words) last_words(error);
  MPI_Abort(MPI_COMM_WORLD, exit_code(error.kind()));
  std::abort();
}

}  // namespace

HalfSums::HalfSums() {
  check(MPI_Op_create(add_halves<DType::bf16>, 1, &bf16), "MPI_Op_create");
  check(MPI_Op_create(add_halves<DType::f16>, 1, &f16), "MPI_Op_create");
}

HalfSums::~HalfSums() {
  MPI_Op_free(&bf16);
  MPI_Op_free(&f16);
}

FlatCommunicator::FlatCommunicator(World& world, const Deadlines& deadlines,
                                   std::function<void(const Error&)> last_words)
    : MpiCommunicator(world, deadlines),
      call_timeout_(deadlines, [&world, deadlines, last_words](const std::string& label) {
        end_job(world, deadlines, label, last_words);
      }) {}

void FlatCommunicator::all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                                  std::string_view label) {
  if (size() == 1) return;
  lane.submit([this, data, count, type, label] {
    reduce_all(static_cast<std::byte*>(data), count, type, label);
  });
}

void FlatCommunicator::reduce_all(std::byte* data, std::size_t count, DType type,
                                  std::string_view label) {
  const Kind kind = kind_of(type, half_sums_);
  const CallTimeout::Call watched(call_timeout_, label);
  for (std::size_t at = 0; at < count; at += kMostElements) {
    const std::size_t n = std::min(kMostElements, count - at);
    check(MPI_Allreduce(MPI_IN_PLACE, data + at * size_of(type), static_cast<int>(n), kind.type,
                        kind.sum, world().all()),
          "MPI_Allreduce");
  }
}

}  // namespace paceline::mpi
