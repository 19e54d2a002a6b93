// Gradients summed over two replicas by each backend, against the reference on the whole batch, in
// locked steps. `backends_test STACK`; under mpirun for mpi, while other ranks are started here.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/comm/backend.h"
#include "engine/comm/rendezvous/join.h"
#include "engine/comm/rendezvous/server.h"
#include "engine/core/backend_stack.h"
#include "engine/core/error.h"
#include "engine/failure/rank_status.h"
#include "engine/start/spawn.h"
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

bool is_built(const std::string& stack) {
  const std::string base = split_stack(stack).between;
  const auto& rows = backend_table();
  return std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return base == row.name; });
}

// Ranks of a backend that needs no mpirun, started around their bootstrap store.
int start_ranks(const char* program, const char* stack) {
  SpawnRequest request{{program, stack}, kRanks, environment_of_process()};
  const BootstrapAddress where = starter_bootstrap("127.0.0.1", request.environment);
  const StoreServer server(where, kRanks);
  request.environment[kStoreVariable] = server.address();
  request.environment[kTokenVariable] = where.token;
  const RunVerdict verdict = spawn_direct(request);
  if (!verdict.line.empty()) std::printf("%s\n", verdict.line.c_str());
  return verdict.exit_code;
}

int run(const char* stack, const ProcessRank& process) {
  const DatasetPair data = load_mnist(std::string(PACELINE_SOURCE_DIR) + "/data/mnist");
  const auto backend = make_backend(stack, backend_table(), wrapper_table());
  Membership membership;
  membership.process = process;
  membership.replicas_here = kRanks / membership.process.size;
  std::unique_ptr<StoreClient> store;
  if (std::getenv(kStoreVariable) != nullptr) {
    store = std::make_unique<StoreClient>(find_bootstrap(process, environment_of_process()),
                                          process.rank, membership.deadlines.abort_seconds);
    membership.store = store.get();
  }
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
  std::printf("%s: %d comparisons failed\n", stack, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  using namespace paceline;
  if (argc != 2) return 64;
  if (!is_built(argv[1])) {
    std::printf("SKIPPED: backend %s is not built here\n", argv[1]);
    return 77;
  }
  try {
    const Environment environment = environment_of_process();
    const ProcessRank process = find_process_rank(environment);
    const std::string stack = argv[1];
    const bool needs_ranks = stack.starts_with("gloo") || stack.starts_with("ring");
    if (!process.launched && needs_ranks) return start_ranks(argv[0], argv[1]);
    return run_rank(environment, process, [&] { return run(argv[1], process); });
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
