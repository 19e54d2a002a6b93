// "mpi+flat": MPI_Allreduce over all ranks, in place. Everything else is as in "mpi".
#pragma once

#include <functional>
#include <memory>

#include "engine/comm/backends/mpi/mpi_communicator.h"
#include "engine/comm/checks/call_timeout.h"
#include "engine/core/error.h"

namespace paceline::mpi {

// MPI operations that sum 16-bit floats, which MPI lacks: added in fp32, rounded to nearest even.
class HalfSums {
 public:
  HalfSums();
  ~HalfSums();
  HalfSums(const HalfSums&) = delete;
  HalfSums& operator=(const HalfSums&) = delete;
  MPI_Op bf16 = MPI_OP_NULL, f16 = MPI_OP_NULL;
};

class FlatCommunicator final : public MpiCommunicator {
 public:
  // A blocking call cannot be polled. Past the deadline, the call timeout passes the error to
  // `last_words` and ends the job with MPI_Abort.
  FlatCommunicator(World& world, const Deadlines& deadlines,
                   std::function<void(const Error&)> last_words);

  Memory allocate(std::size_t) override { return {}; }
  void all_reduce(void* data, std::size_t count, DType type, Lane& lane,
                  std::string_view label) override;

 private:
  void reduce_all(std::byte* data, std::size_t count, DType type, std::string_view label);

  HalfSums half_sums_;
  CallTimeout call_timeout_;
};

}  // namespace paceline::mpi
