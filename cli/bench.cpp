// paceline bench allreduce
#include "run/bench.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "analysis/table/table.h"
#include "cli/run_options.h"
#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/environment.h"
#include "engine/core/json.h"
#include "engine/core/output.h"

namespace paceline {

namespace {

constexpr char kVerbFooter[] = R"(Examples:
  paceline bench allreduce --gpus 2
  paceline bench input --data cassava)";

constexpr char kBenchFooter[] = R"(Examples:
  paceline bench allreduce --gpus 2
  paceline bench allreduce --gpus 2 --backends ring,mpi,gloo --sizes 4K,1M,16M --record out
  paceline bench allreduce --gpus 2 --backends ring --like mnist-cnn
  srun --mpi=pmix -n 8 paceline bench allreduce --gpus 8 --nodes 4 --backends mpi --json

Backends stand side by side, one column each; each round starts each of them anew. One backend
alone gets the columns of nccl-tests: algbw = size / time, busbw = algbw * 2 (n-1)/n. Each call sums
a buffer that its rank has written just before; "reused" calls sum one buffer that nobody writes.
"memcpy" is for comparison, and no bound: every rank copies half of its data over the other half
and back, all at once. Sizes take K, M and G (powers of 1024).)";

struct BenchArguments : CollectiveBenchOptions {
  DeadlineTexts deadline_texts;
  bool json = false;
};

int bench(BenchArguments& arguments, const std::vector<std::string>& command) {
  arguments.deadlines = parse_deadlines(arguments.deadline_texts, environment_of_process());
  const CollectiveBench bench = bench_collective(arguments, command);
  std::vector<Record> records;
  for (const RunRecord& record : bench.records) records.emplace_back(to_json(record), "this run");
  if (arguments.json && !bench.is_comparison && !records.empty()) {
    print("{}\n", json_text(to_json(bench.records.front()), 2));
  } else if (!records.empty()) {
    DocumentArguments output{.json = arguments.json};
    print_documents({collectives_document(records)}, output);
  }
  return bench.exit_code;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  CLI::App* bench_verb = app.add_subcommand("bench", "Benchmark all-reduce or the input pipeline");
  bench_verb->require_subcommand(1);
  bench_verb->footer(kVerbFooter);
  add_bench_input(*bench_verb, action);
  CLI::App* verb = bench_verb->add_subcommand(
      "allreduce", "Benchmark the all-reduces of several backends beside memcpy");
  auto a = std::make_shared<BenchArguments>();
  add_value(*verb, "--gpus N", a->gpus, "number of replicas");
  add_value(*verb, "--nodes N", a->nodes, "nodes that the replicas are spread over");
  add_value(*verb, "--backends NAME,...", a->backends,
            "communication stacks (paceline list backends) [default: all that serve here]")
      ->take_last();
  add_value(*verb, "--cpus-per-task N", a->cpus_per_task, "CPUs of one task");
  verb->add_flag("--oversubscribe", a->oversubscribe, "allow replicas to share CPUs");
  auto* least = add_setting(*verb, "--min-bytes BYTES", a->least, "smallest size");
  auto* most = add_setting(*verb, "--max-bytes BYTES", a->most, "largest size");
  auto* factor = add_setting(*verb, "--step-factor", a->step_factor, "message size multiplier");
  auto* sizes =
      add_value(*verb, "--sizes BYTES,...", a->sizes, "measure these sizes instead (4K,1M,16M)")
          ->excludes(least)
          ->excludes(most)
          ->excludes(factor);
  auto* like = add_value(*verb, "--like WORKLOAD", a->like,
                         "measure the buckets of this workload's training")
                   ->excludes(sizes)
                   ->excludes(least)
                   ->excludes(most)
                   ->excludes(factor);
  add_value(*verb, "--bucket-mb MIB", a->bucket_mb, "with --like, bucket cap in MiB")
      ->needs(like)
      ->check(CLI::PositiveNumber);
  add_value(*verb, "--last-bucket-mb MIB", a->last_bucket_mb,
            "with --like, cap of the last bucket in MiB")
      ->needs(like)
      ->check(CLI::PositiveNumber);
  add_setting(*verb, "--dtype {f32,f64,bf16,f16}", a->dtype, "element type");
  verb->add_option("--iterations", a->iterations,
                   "calls per round [default: as many as --seconds has time for]");
  add_setting(*verb, "--seconds S", a->seconds, "time for each size, over all rounds")
      ->check(CLI::PositiveNumber)
      ->take_last();
  add_setting(*verb, "--warmup", a->warmup, "calls before the first round");
  add_setting(*verb, "--rounds", a->rounds,
              "rounds; backends, and all-reduce and memcpy, take turns in each")
      ->take_last();
  verb->add_flag("--no-baselines", a->no_baselines, "do not measure memcpy and reused buffers");
  verb->add_flag("--json", a->json, "print the record to standard output");
  add_value(*verb, "--record FILE", a->record,
            "write the record to this new file; of several backends, into this folder")
      ->take_last();
  verb->add_flag("--quiet", a->quiet, "no progress");
  add_deadlines(*verb, a->deadline_texts, false);
  verb->footer(kBenchFooter);
  verb->callback(
      [a, &action] { action = [a, command = action.command] { return bench(*a, command); }; });
}

}  // namespace paceline
