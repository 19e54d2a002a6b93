// paceline bench allreduce
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "analysis/table/table.h"
#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/comm/allreduce_bench.h"
#include "engine/core/backend_stack.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/log.h"
#include "engine/core/memory.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/failure/rank_status.h"
#include "engine/launch/topology.h"
#include "engine/train/reducer.h"
#include "results/names.h"
#include "results/store.h"
#include "run/bench_backends.h"
#include "run/meter_record.h"
#include "run/resolve.h"
#include "run/training_run.h"
#include "run/world.h"

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

struct BenchArguments {
  std::string backends, cpus_per_task, gpus, nodes;
  std::string least = "4", most = "64M", sizes, like, dtype = "f32", record;
  double bucket_mb = 8, last_bucket_mb = 1, seconds = 0.25;
  std::int64_t step_factor = 4, iterations = 0, warmup = 3, rounds = 5;
  bool json = false, no_baselines = false, oversubscribe = false, quiet = false;
  DeadlineTexts deadlines;
};

constexpr std::size_t kMostBytes = std::size_t{1} << 50;  // more than a node has, far from overflow

std::size_t size_of_text(const std::string& text, const char* option) {
  std::string digits = text;
  std::size_t unit = 1;
  const std::string units = "KMG";
  const std::size_t at = text.empty() ? std::string::npos : units.find(text.back());
  if (at != std::string::npos) {
    unit = std::size_t{1} << (10 * (at + 1));
    digits.pop_back();
  }
  const auto value = to_integer(digits);
  if (!value || *value < 1) {
    throw Error(ErrorKind::usage, fmt::format("\"{}\" is not a size", text), option,
                "give bytes, for example 4096, 64K or 16M");
  }
  if (static_cast<std::size_t>(*value) > kMostBytes / unit) {
    throw Error(ErrorKind::usage, fmt::format("{} is more than any memory", text), option,
                "measure smaller sizes");
  }
  return static_cast<std::size_t>(*value) * unit;
}

DType parse_dtype(const std::string& name) {
  for (const DType type : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    if (name == to_string(type)) return type;
  }
  throw Error(ErrorKind::usage, fmt::format("\"{}\" cannot be summed", name), "--dtype",
              suggestion(name, {"f32", "f64", "bf16", "f16"}));
}

std::vector<BenchSize> sizes_like(const BenchArguments& arguments) {
  const Workload workload = make_workload(arguments.like);
  const auto plan =
      make_plan(workload.network, 1, DType::f32, [](const Operation&) { return Support::yes(); });
  std::vector<BenchSize> sizes;
  std::size_t total = 0;
  for (const Bucket& bucket : make_buckets(plan, arguments.bucket_mb, arguments.last_bucket_mb)) {
    sizes.push_back({bucket.end - bucket.begin, bucket.label});
    total += bucket.end - bucket.begin;
  }
  if (sizes.size() > 1) sizes.push_back({total, "all at once"});
  return sizes;
}

std::vector<BenchSize> list_sizes(const BenchArguments& arguments, DType type) {
  if (!arguments.like.empty()) return sizes_like(arguments);
  std::vector<BenchSize> sizes;
  const auto add = [&](std::size_t bytes) {
    sizes.push_back({std::max<std::size_t>(1, bytes / size_of(type)), ""});
  };
  if (!arguments.sizes.empty()) {
    for (const std::string& text : split(arguments.sizes, ',')) add(size_of_text(text, "--sizes"));
    return sizes;
  }
  const std::size_t least = size_of_text(arguments.least, "--min-bytes");
  const std::size_t most = size_of_text(arguments.most, "--max-bytes");
  if (least > most) {
    throw Error(
        ErrorKind::usage,
        fmt::format("--min-bytes {} is above --max-bytes {}", arguments.least, arguments.most), "",
        "give a larger --max-bytes");
  }
  const auto factor = static_cast<std::size_t>(arguments.step_factor);
  for (std::size_t bytes = least; bytes <= most; bytes *= factor) add(bytes);
  return sizes;
}

// Of every replica of a node.
void check_memory(const std::vector<BenchSize>& sizes, DType type, const Layout& layout) {
  std::size_t most = 0;
  for (const BenchSize& size : sizes) most = std::max(most, size.count * size_of(type));
  const double wanted = static_cast<double>(most) * layout.gpus / layout.nodes;
  const auto free = available_memory();
  if (!free || wanted <= static_cast<double>(*free)) return;
  throw Error(ErrorKind::usage,
              fmt::format("this needs {} of memory per node, but only {} are free",
                          format_bytes(wanted), format_bytes(static_cast<double>(*free))),
              "", "measure smaller sizes");
}

// `backend`: empty for the default.
Point resolve_place(const BenchArguments& arguments, const std::string& backend) {
  Point given;
  const auto set = [&](const char* name, const std::string& text) {
    if (!text.empty()) given.set(name, parsed_value(name, text, std::string("--") + name));
  };
  set("gpus", arguments.gpus);
  set("nodes", arguments.nodes);
  set("backend", backend);
  if (!arguments.cpus_per_task.empty()) {
    given.set("cpus_per_task",
              parsed_value("cpus_per_task", arguments.cpus_per_task, "--cpus-per-task"));
  }
  given.set("oversubscribe", arguments.oversubscribe);
  return resolve_place(given);
}

// One replica is measured only where somebody asked for one.
void check_replicas(const BenchArguments& arguments) {
  if (!arguments.gpus.empty()) return;
  throw Error(ErrorKind::usage, "an all-reduce needs more than one replica", "",
              "give --gpus 2 or more");
}

void check_sums(const std::string& backend) {
  if (!find_name("backend", split_stack(backend).between).drifts) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("backend {} does not reduce, so there is no all-reduce to measure", backend), "",
      "choose another (paceline list backends)");
}

void check_count(const char* option, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value < least) {
    throw Error(ErrorKind::usage, fmt::format("{} is less than {}", value, least), option,
                fmt::format("give {} to {}", least, most));
  }
  if (value > most) {
    throw Error(ErrorKind::usage, fmt::format("{} is more than {}", value, most), option,
                fmt::format("give {} to {}", least, most));
  }
}

void check_counts(const BenchArguments& arguments) {
  check_count("--step-factor", arguments.step_factor, 2, 1024);  // times kMostBytes fits 64 bits
  check_count("--rounds", arguments.rounds, 1, 1000);
  check_count("--iterations", arguments.iterations, 0, 100000);
  check_count("--warmup", arguments.warmup, 0, 100000);
}

class Bench {
 public:
  Bench(const BenchArguments& arguments, const Point& parameters, const LaunchSpec& launch,
        const std::vector<BenchSize>& sizes, const std::vector<std::string>& command)
      : arguments_(arguments),
        launch_(launch),
        process_(find_process_rank(environment_of_process())),
        sizes_(sizes) {
    facts_.parameters = parameters;
    facts_.layout = launch_.layout;
    facts_.command = command;
    facts_.started_at = utc_time_stamp();
    facts_.type = parse_dtype(arguments.dtype);
    facts_.rounds = static_cast<std::size_t>(arguments.rounds);
  }

  int go() {
    log::Setup logging;
    logging.to_stderr = process_.rank == 0;
    if (arguments_.quiet) logging.level = log::Level::warning;
    log::set_up(logging);
    check_tasks(launch_, process_);
    const CpuAssignment assignment = assign_cpus(launch_, process_);
    facts_.cpu_model = assignment.cpu_model;
    World world(launch_, process_, assignment);
    try {
      measure_in(world, assignment);
    } catch (const std::exception& error) {
      world.abort(error.what());
      throw;
    }
    return process_.rank == 0 ? finish() : 0;
  }

 private:
  void measure_in(World& world, const CpuAssignment& assignment) {
    const auto cards =
        exchange_rank_cards(world.communicators(), assignment.replicas, common_rows());
    facts_.oversubscribed = check_rank_cards(cards, launch_.oversubscribe);
    for (const RankCard& card : cards) {
      facts_.hosts.push_back(card.host);
      facts_.affinity.push_back(card.cpus);
    }
    if (process_.local_rank == 0) warn_of_busy_cpus(cards, process_.local_size);
    const LoadReport load(assignment.replicas);
    on_every_replica(world.communicators(), [&](Communicator& communicator, std::size_t i) {
      bind_this_thread(assignment.replicas[i]);
      measure(communicator, i == 0 && process_.rank == 0);
    });
    facts_.backend_used = world.description();  // NCCL connects ranks when they first sum
    facts_.machine_load = load.collect(world, facts_.oversubscribed);
    if (process_.rank == 0) warn_of_busy_machine(facts_.machine_load);
  }

  // All that decides which calls a rank makes: ranks that differ in it would wait in vain.
  std::vector<ConfigRow> common_rows() const {
    std::vector<std::string> counts;
    for (const BenchSize& size : sizes_) counts.push_back(std::to_string(size.count));
    std::vector<ConfigRow> rows = rows_of_build();
    const std::vector<ConfigRow> parameters = make_rows(facts_.parameters);
    rows.insert(rows.end(), parameters.begin(), parameters.end());
    rows.push_back({"dtype", arguments_.dtype});
    rows.push_back({"rounds", std::to_string(arguments_.rounds)});
    rows.push_back({"iterations", std::to_string(arguments_.iterations)});
    rows.push_back({"warmup", std::to_string(arguments_.warmup)});
    rows.push_back({"seconds", std::to_string(arguments_.seconds)});
    rows.push_back({"baselines", arguments_.no_baselines ? "no" : "yes"});
    rows.push_back({"elements", join(counts, ",")});
    return rows;
  }

  void measure(Communicator& communicator, bool keeps) {
    BenchOptions options;
    options.type = facts_.type;
    options.rounds = facts_.rounds;
    options.iterations = static_cast<std::size_t>(arguments_.iterations);
    options.seconds_per_size = arguments_.seconds;
    options.warmup = static_cast<std::size_t>(arguments_.warmup);
    options.baselines = !arguments_.no_baselines;
    std::size_t most = 0;
    for (const BenchSize& size : sizes_) most = std::max(most, size.count);
    AllReduceBench bench(communicator, most, options);
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const BenchRow row = bench.measure(sizes_[i].count);
      if (!keeps) continue;
      rows_.push_back(row);
      const auto bytes = static_cast<double>(row.count * size_of(facts_.type));
      log::info("{} of {}: {} in {}", i + 1, sizes_.size(), format_bytes(bytes),
                format_seconds(row.all_reduce.median));
    }
  }

  int finish() {
    const Json json = to_json(bench_record(facts_, sizes_, rows_));
    if (!arguments_.record.empty()) {
      write_record_file(arguments_.record, json, "");
      log::info("record: {}", arguments_.record);
    }
    const std::vector<Record> records = {Record(json, "this run")};
    if (arguments_.json) {
      print("{}\n", json_text(json, 2));
    } else {
      print_documents({collectives_document(records)}, {});
    }
    const bool wrong =
        std::any_of(rows_.begin(), rows_.end(), [](const BenchRow& row) { return row.wrong > 0; });
    return wrong ? 1 : 0;
  }

  const BenchArguments& arguments_;
  const LaunchSpec& launch_;
  ProcessRank process_;
  const std::vector<BenchSize>& sizes_;
  BenchFacts facts_;
  std::vector<BenchRow> rows_;
};

int bench_one(const BenchArguments& arguments, const std::string& backend,
              const std::vector<BenchSize>& sizes, const std::vector<std::string>& command) {
  const Point parameters = resolve_place(arguments, backend);
  check_sums(Settings(parameters).text("backend"));
  LaunchSpec launch = make_launch_spec(make_place_config(parameters));
  launch.deadlines = parse_deadlines(arguments.deadlines, environment_of_process());
  check_memory(sizes, parse_dtype(arguments.dtype), launch.layout);
  check_replicas(arguments);
  const Environment environment = environment_of_process();
  const ProcessRank process = find_process_rank(environment);
  if (process.rank == 0 && !arguments.record.empty()) check_new_record(arguments.record);
  if (must_spawn(launch, process)) {
    const RunVerdict verdict = spawn(launch, command);
    if (!verdict.line.empty()) print_note("paceline: {}\n", verdict.line);
    return verdict.exit_code;
  }
  return run_rank(environment, process,
                  [&] { return Bench(arguments, parameters, launch, sizes, command).go(); });
}

// Writes each record into the study folder `--record`, and prints them side by side.
int bench_several(const BenchArguments& arguments, const std::vector<std::string>& backends,
                  const std::vector<std::string>& command) {
  log::Setup logging;
  if (arguments.quiet) logging.level = log::Level::warning;
  log::set_up(logging);
  if (!arguments.record.empty())
    make_folder(arguments.record);  // fails before anything is measured
  const BackendsOutcome outcome =
      bench_backends({backends, arguments.backends.empty(), command,
                      static_cast<int>(arguments.rounds), arguments.seconds});
  if (outcome.stopped_by != 0) {
    print_note("paceline: stopped by {}; nothing is recorded\n", strsignal(outcome.stopped_by));
    return 128 + outcome.stopped_by;
  }
  std::vector<Record> records;
  bool wrong = false;
  for (const RunRecord& record : outcome.records) {
    const Json json = to_json(record);
    if (!arguments.record.empty()) {
      Point point;
      point.set("backend", record.provenance.backend_requested);
      const auto file = Store(arguments.record).write(point.folder(), 1, json, "");
      log::info("record: {}", file.string());
    }
    records.emplace_back(json, "this run");
    for (const CollectiveRow& row : record.collective->rows) wrong |= row.wrong.value_or(0) > 0;
  }
  print_documents({collectives_document(records)}, {.json = arguments.json});
  return wrong ? 1 : 0;
}

int bench(const BenchArguments& arguments, const std::vector<std::string>& command) {
  check_counts(arguments);
  std::vector<std::string> backends;
  if (!arguments.backends.empty()) backends = split(arguments.backends, ',');
  for (const std::string& backend : backends) check_sums(backend);
  const std::vector<BenchSize> sizes = list_sizes(arguments, parse_dtype(arguments.dtype));
  const bool is_launched = find_process_rank(environment_of_process()).launched;
  if (is_launched && backends.size() > 1) {
    throw Error(ErrorKind::usage, "ranks that a launcher started measure one backend a call",
                "--backends", "call it once for each, and give the records to paceline report");
  }
  const bool is_alone = arguments.gpus.empty() || arguments.gpus == "1";
  if (is_launched || is_alone || backends.size() == 1) {
    return bench_one(arguments, backends.empty() ? "" : backends.front(), sizes, command);
  }
  return bench_several(arguments, backends.empty() ? backends_to_compare() : backends, command);
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
  verb->add_option("--backends,--backend", a->backends,
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
  add_deadlines(*verb, a->deadlines, false);
  verb->footer(kBenchFooter);
  verb->callback(
      [a, &action] { action = [a, command = action.command] { return bench(*a, command); }; });
}

}  // namespace paceline
