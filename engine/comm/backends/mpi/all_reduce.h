// MPI_Allreduce in place, of every type that gradients have, under a timeout.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/comm/backends/mpi/world.h"
#include "engine/comm/checks/call_timeout.h"
#include "engine/core/dtype.h"

namespace paceline::mpi {

// What happens when MPI_Allreduce does not return: called with the sum's label. It must end the
// process, as the call cannot be interrupted.
using OnTimeout = std::function<void(const std::string& label)>;

class AllReduce {
 public:
  // Over the members of `ranks`.
  AllReduce(MPI_Comm ranks, const Deadlines& deadlines, OnTimeout on_timeout);
  ~AllReduce();
  AllReduce(const AllReduce&) = delete;
  AllReduce& operator=(const AllReduce&) = delete;

  // The blocking call: MPI_Iallreduce could be polled, but it is another algorithm, 1.2 to 2.1
  // times as slow from 4 B to 8 MB (README.md).
  void sum(std::byte* data, std::size_t count, DType type, std::string_view label);

 private:
  MPI_Comm ranks_;
  CallTimeout timeout_;
  // Sums of 16-bit floats, which MPI lacks: added in fp32, rounded to nearest even.
  MPI_Op sum_bf16_ = MPI_OP_NULL, sum_f16_ = MPI_OP_NULL;
};

// The component of the MPI library whose all-reduce serves `ranks`: "tuned", "han". It is read off
// the call stack of a reduction. Empty: this MPI has no components, or they have no files of their
// own. Collective over `ranks`.
std::string all_reduce_component(MPI_Comm ranks);

}  // namespace paceline::mpi
