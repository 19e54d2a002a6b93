// Gradients summed over two replicas by each backend, against the reference on the whole batch, in
// locked steps. `backends_test BACKEND`; for a backend between processes, under mpirun.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "engine/comm/table.h"
#include "engine/core/error.h"
#include "tests/integration/parity/locked.h"

namespace paceline {
namespace {

constexpr int kRanks = 2;

// Returns the number of failed comparisons.
int check_rank(const char* workload, const DatasetPair& data, Communicator& communicator) {
  using parity::Locked;
  Locked reference(workload, "reference", data, 64);
  Locked cpu(workload, "cpu", data, 64 / kRanks, communicator.rank(), communicator.size());
  int failures = 0;
  std::size_t step = 0;
  for (const std::size_t stop : {0, 10, 50, 100}) {
    while (step < stop) reference.step(step++);
    cpu.copy_weights(reference);
    const double expected = reference.gradient_step(step);
    double loss = cpu.gradient_step(step, &communicator);
    sum_over_ranks(communicator, std::span(&loss, 1));
    failures += !(std::abs(loss - expected) <= 1e-5 * expected);
    for (const ParameterInfo& info : reference.plan().parameters) {
      const double error = parity::gradient_error(cpu, reference, info.name);
      if (error < 1e-4) continue;
      std::printf("%s rank %d step %zu: %s is off by %g\n", workload, communicator.rank(), step,
                  info.name.c_str(), error);
      ++failures;
    }
  }
  return failures;
}

int run(const char* name) {
  const DatasetPair data = load_mnist(std::string(PACELINE_SOURCE_DIR) + "/data/mnist");
  std::unique_ptr<Backend> backend;
  for (const auto& row : backend_table()) {
    if (std::strcmp(row.name, name) == 0) backend = row.make();
  }
  if (!backend) {
    std::printf("SKIPPED: backend %s is not built here\n", name);
    return 77;
  }
  Membership membership;
  membership.place = find_place(environment_of_process());
  membership.replicas_here = kRanks / membership.place.size;
  const auto communicators = backend->connect(membership);
  int failures = 0;
  for (const char* workload : {"mnist-mlp", "mnist-cnn"}) {
    std::vector<int> failed(communicators.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < communicators.size(); ++i) {
      threads.emplace_back([&, i] { failed[i] = check_rank(workload, data, *communicators[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const int count : failed) failures += count;
  }
  std::printf("%s: %d comparisons failed\n", name, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  try {
    return argc == 2 ? paceline::run(argv[1]) : 64;
  } catch (const paceline::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
