// Every operation of the MNIST workloads on one thread of the cpu device, forward and backward,
// fused as they are in training and, where that differs, each layer by itself. Products and
// convolutions stand beside fused multiply-adds, the rest beside a copy that moves as many bytes.
// The number in a name is the batch; items are samples.
#include <algorithm>
#include <string>

#include "engine/device/device.h"
#include "tests/bench/fma_bound.h"
#include "tests/bench/main.h"
#include "tests/bench/turns.h"
#include "tests/conformance/device/cases.h"
#include "workloads/workload.h"

namespace paceline::bench {

namespace {

enum class Direction { forward, backward };

// One operation of a workload's plan.
struct Subject {
  WorkloadFactory workload;
  bool fused;
  int operation;
  Direction direction;
};

conformance::Replica make_replica(const Subject& subject, int batch) {
  return {conformance::make_device("cpu"), subject.workload().network, batch, subject.fused};
}

double flops(const Operation& op, Direction direction) {
  return direction == Direction::forward ? forward_flops(op) : backward_flops(op);
}

// Of the tensors that the operation reads and writes; parameters are left out, since only
// operations without them are held against a copy.
std::size_t bytes_moved(const Plan& plan, const Operation& op, Direction direction) {
  const auto bytes = [&](int tensor) {
    return tensor == kNone ? 0 : plan.tensors[static_cast<std::size_t>(tensor)].bytes;
  };
  if (direction == Direction::backward) {
    return bytes(op.output_grad) + (op.keeps_output ? bytes(op.output) : 0) + bytes(op.saved) +
           bytes(op.input_grad);
  }
  const std::size_t staged = op.in.elements() * static_cast<std::size_t>(plan.batch);
  return (op.input == kNone ? staged : bytes(op.input)) + bytes(op.output) + bytes(op.saved);
}

// The step up to the operation is done, so that it finds the values that it would find in training.
void run(benchmark::State& state, const Subject& subject) {
  const auto batch = static_cast<int>(state.range(0));
  conformance::Replica replica = make_replica(subject, batch);
  const conformance::RandomBatch inputs(subject.workload().network, batch, batch, 1);
  const Plan& plan = replica.plan();
  Program& program = replica.program();
  const int index = subject.operation;
  const Operation& op = plan.operations[static_cast<std::size_t>(index)];
  program.forward(inputs.batch(), Mode::train);
  std::function<void()> work = [&] { program.repeat_forward(index, index); };
  if (subject.direction == Direction::forward) {
    program.repeat_forward(0, index);
  } else {
    program.backward(static_cast<int>(plan.operations.size()) - 1, index);
    work = [&] { program.backward(index, index); };
  }
  if (const double operations = batch * flops(op, subject.direction); operations > 0) {
    FmaBound fma;
    take_turns(state, work, operations, fma);
    state.counters["flops"] =
        benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate);
  } else {
    const std::size_t moved = bytes_moved(plan, op, subject.direction);
    CopyBound copy(moved);
    take_turns(state, work, static_cast<double>(moved), copy);
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(moved));
  }
  state.SetItemsProcessed(state.iterations() * batch);
}

std::string without_blanks(std::string text) {
  std::erase(text, ' ');
  return text;
}

void add(const std::string& prefix, const Operation& op, Subject subject) {
  const bool has_backward = op.input_grad != kNone || op.weight != kNone;
  for (const auto direction : {Direction::forward, Direction::backward}) {
    if (direction == Direction::backward && !has_backward) continue;
    subject.direction = direction;
    const std::string name = prefix + "/" + without_blanks(op.text()) +
                             (direction == Direction::forward ? "/forward" : "/backward");
    benchmark::RegisterBenchmark(name.c_str(), run, subject)->Arg(64)->Arg(128)->UseManualTime();
  }
}

}  // namespace

void register_benchmarks() {
  for (const auto& row : workload_table()) {
    std::vector<std::string> seen;
    for (const bool fused : {true, false}) {
      Subject subject{row.make, fused, 0, Direction::forward};
      const conformance::Replica replica = make_replica(subject, 1);
      for (const Operation& op : replica.plan().operations) {
        if (std::find(seen.begin(), seen.end(), op.text()) == seen.end()) {
          seen.push_back(op.text());
          add(row.name, op, subject);
        }
        ++subject.operation;
      }
    }
  }
}

}  // namespace paceline::bench
