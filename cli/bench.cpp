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
"memcpy" is the bound inside a node: every rank copies half of its data over the other half and
back, all at once. Sizes take K, M and G (powers of 1024).)";

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
    DocumentArguments output;
    output.json = arguments.json;
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
  verb->add_option("--gpus", a->gpus, "number of replicas")->type_name("N");
  verb->add_option("--nodes", a->nodes, "nodes that the replicas are spread over")->type_name("N");
  verb->add_option("--backends", a->backends,
                   "communication stacks (paceline list backends) [default: all that serve here]")
      ->type_name("NAME,...")
      ->take_last();
  verb->add_option("--cpus-per-task", a->cpus_per_task, "CPUs of one task")->type_name("N");
  verb->add_flag("--oversubscribe", a->oversubscribe, "allow replicas to share CPUs");
  auto* least = verb->add_option("--min-bytes", a->least, "smallest size")
                    ->type_name("BYTES")
                    ->capture_default_str();
  auto* most = verb->add_option("--max-bytes", a->most, "largest size")
                   ->type_name("BYTES")
                   ->capture_default_str();
  auto* factor = verb->add_option("--step-factor", a->step_factor, "message size multiplier")
                     ->capture_default_str();
  auto* sizes = verb->add_option("--sizes", a->sizes, "measure these sizes instead (4K,1M,16M)")
                    ->type_name("BYTES,...")
                    ->excludes(least)
                    ->excludes(most)
                    ->excludes(factor);
  auto* like =
      verb->add_option("--like", a->like, "measure the buckets of this workload's training")
          ->type_name("WORKLOAD")
          ->excludes(sizes)
          ->excludes(least)
          ->excludes(most)
          ->excludes(factor);
  verb->add_option("--bucket-mb", a->bucket_mb, "with --like, bucket cap in MiB")
      ->type_name("MIB")
      ->needs(like)
      ->check(CLI::PositiveNumber);
  verb->add_option("--last-bucket-mb", a->last_bucket_mb,
                   "with --like, cap of the last bucket in MiB")
      ->type_name("MIB")
      ->needs(like)
      ->check(CLI::PositiveNumber);
  verb->add_option("--dtype", a->dtype, "element type")
      ->type_name("{f32,f64,bf16,f16}")
      ->capture_default_str();
  verb->add_option("--iterations", a->iterations,
                   "calls per round [default: as many as --seconds has time for]");
  verb->add_option("--seconds", a->seconds, "time for each size, over all rounds")
      ->type_name("S")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->take_last();
  verb->add_option("--warmup", a->warmup, "calls before the first round")->capture_default_str();
  verb->add_option("--rounds", a->rounds,
                   "rounds; backends, and all-reduce and memcpy, take turns in each")
      ->capture_default_str()
      ->take_last();
  verb->add_flag("--no-baselines", a->no_baselines, "do not measure memcpy and reused buffers");
  verb->add_flag("--json", a->json, "print the record to standard output");
  verb->add_option("--record", a->record,
                   "write the record to this new file; of several backends, into this folder")
      ->type_name("FILE")
      ->take_last();
  verb->add_flag("--quiet", a->quiet, "no progress");
  add_deadlines(*verb, a->deadline_texts, false);
  verb->footer(kBenchFooter);
  verb->callback(
      [a, &action] { action = [a, command = action.command] { return bench(*a, command); }; });
}

}  // namespace paceline
