#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/comm/allreduce_bench.h"
#include "engine/core/backend_stack.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/log.h"
#include "engine/core/memory.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/failure/rank_status.h"
#include "engine/launch/topology.h"
#include "engine/train/reducer.h"
#include "results/names.h"
#include "results/store.h"
#include "run/bench.h"
#include "run/meter_record.h"
#include "run/outcome_record.h"
#include "run/resolve.h"
#include "run/training_run.h"
#include "run/world.h"

namespace paceline {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 50;  // more than a node has, far from overflow

std::size_t parse_size(const std::string& text, const char* option) {
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
    throw usage_error(fmt::format("\"{}\" is not a size", text), option,
                      "give bytes, for example 4096, 64K or 16M");
  }
  if (static_cast<std::size_t>(*value) > kMostBytes / unit) {
    throw usage_error(fmt::format("{} is more than any memory", text), option,
                      "measure smaller sizes");
  }
  return static_cast<std::size_t>(*value) * unit;
}

std::vector<BenchSize> sizes_like(const CollectiveBenchOptions& options) {
  const Workload workload = make_workload(options.like);
  const auto plan =
      make_plan(workload.network, 1, DType::f32, [](const Operation&) { return Support::yes(); });
  std::vector<BenchSize> sizes;
  std::size_t total = 0;
  for (const Bucket& bucket : make_buckets(plan, options.bucket_mb, options.last_bucket_mb)) {
    sizes.push_back({bucket.end - bucket.begin, bucket.label});
    total += bucket.end - bucket.begin;
  }
  if (sizes.size() > 1) sizes.push_back({total, "all at once"});
  return sizes;
}

// Of every replica of a node.
void check_memory(const std::vector<BenchSize>& sizes, DType type, const Layout& layout) {
  std::size_t most = 0;
  for (const BenchSize& size : sizes) most = std::max(most, size.count * size_of(type));
  const double wanted = static_cast<double>(most) * layout.gpus / layout.nodes;
  const auto free = available_memory();
  if (!free || wanted <= static_cast<double>(*free)) return;
  throw usage_error(fmt::format("this needs {} of memory per node, but only {} are free",
                                format_bytes(wanted), format_bytes(static_cast<double>(*free))),
                    "", "measure smaller sizes");
}

// `backend`: empty for the default.
Point make_place(const CollectiveBenchOptions& options, const std::string& backend) {
  Point given;
  for (const auto& [name, text] : {std::pair("gpus", options.gpus),
                                   {"nodes", options.nodes},
                                   {"backend", backend},
                                   {"cpus_per_task", options.cpus_per_task}}) {
    if (!text.empty()) given.set(name, parsed_value(name, text, option_name(name)));
  }
  given.set("oversubscribe", options.oversubscribe);
  return resolve_place(given);
}

void check_sums(const std::string& backend) {
  if (!find_name("backend", split_stack(backend).between).drifts) return;
  throw usage_error(
      fmt::format("backend {} does not reduce, so there is no all-reduce to measure", backend), "",
      "choose another (paceline list backends)");
}

void check_count(const char* option, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return;
  throw usage_error(value < least ? fmt::format("{} is less than {}", value, least)
                                  : fmt::format("{} is more than {}", value, most),
                    option, fmt::format("give {} to {}", least, most));
}

void check_counts(const CollectiveBenchOptions& options) {
  check_count("--step-factor", options.step_factor, 2, 1024);  // times kMostBytes fits 64 bits
  check_count("--rounds", options.rounds, 1, 1000);
  check_count("--iterations", options.iterations, 0, 100000);
  check_count("--warmup", options.warmup, 0, 100000);
}

bool is_wrong(const RunRecord& record) {
  const auto& rows = record.collective->rows;
  return std::ranges::any_of(rows, [](const auto& row) { return row.wrong.value_or(0) > 0; });
}

// One process's share of a bench of one backend.
class Bench {
 public:
  Bench(const CollectiveBenchOptions& options, const Point& parameters, const LaunchSpec& launch,
        const std::vector<BenchSize>& sizes, const std::vector<std::string>& command)
      : options_(options),
        launch_(launch),
        process_(find_process_rank(environment_of_process())),
        sizes_(sizes) {
    facts_.parameters = parameters;
    facts_.layout = launch_.layout;
    facts_.provenance = build_facts(command);
    facts_.provenance.started_at = utc_time_stamp();
    facts_.type = parse_dtype(options.dtype);
    facts_.rounds = static_cast<std::size_t>(options.rounds);
  }

  // Of rank 0, the record.
  std::vector<RunRecord> go() {
    log::Setup logging;
    logging.to_stderr = process_.rank == 0;
    if (options_.quiet) logging.level = log::Level::warning;
    log::set_up(logging);
    check_tasks(launch_, process_);
    const CpuAssignment assignment = assign_cpus(launch_, process_);
    facts_.provenance.cpu_model = assignment.cpu_model;
    facts_.provenance.machine = assignment.machine;
    World world(launch_, process_, assignment);
    try {
      measure_in(world, assignment);
    } catch (const std::exception& error) {
      world.abort(error.what());
      throw;
    }
    if (process_.rank != 0) return {};
    return {bench_record(facts_, sizes_, rows_)};
  }

 private:
  void measure_in(World& world, const CpuAssignment& assignment) {
    const auto cards =
        exchange_rank_cards(world.communicators(), assignment.replicas, common_rows());
    facts_.oversubscribed = check_rank_cards(cards, launch_.oversubscribe);
    for (const RankCard& card : cards) {
      facts_.each_rank.push_back({.host = card.host, .affinity = card.cpus});
    }
    if (process_.local_rank == 0) warn_of_busy_cpus(cards, process_.local_size);
    const LoadReport load(assignment.replicas);
    on_every_replica(world.communicators(), [&](Communicator& communicator, std::size_t i) {
      bind_this_thread(assignment.replicas[i]);
      measure(communicator, i == 0 && process_.rank == 0);
    });
    facts_.provenance.backend_used =
        world.description();  // NCCL connects ranks when they first sum
    facts_.provenance.machine_load = load.collect(world, facts_.oversubscribed);
    if (process_.rank == 0) warn_of_busy_machine(facts_.provenance.machine_load);
  }

  // All that decides which calls a rank makes: ranks that differ in it would wait in vain.
  std::vector<ConfigRow> common_rows() const {
    std::vector<std::string> counts;
    for (const BenchSize& size : sizes_) counts.push_back(std::to_string(size.count));
    std::vector<ConfigRow> rows = rows_of_build();
    const std::vector<ConfigRow> parameters = make_rows(facts_.parameters);
    rows.insert(rows.end(), parameters.begin(), parameters.end());
    rows.push_back({"dtype", options_.dtype});
    rows.push_back({"rounds", std::to_string(options_.rounds)});
    rows.push_back({"iterations", std::to_string(options_.iterations)});
    rows.push_back({"warmup", std::to_string(options_.warmup)});
    rows.push_back({"seconds", std::to_string(options_.seconds)});
    rows.push_back({"baselines", options_.no_baselines ? "no" : "yes"});
    rows.push_back({"elements", join(counts, ",")});
    return rows;
  }

  void measure(Communicator& communicator, bool keeps) {
    BenchOptions options{.type = facts_.type,
                         .rounds = facts_.rounds,
                         .iterations = static_cast<std::size_t>(options_.iterations),
                         .warmup = static_cast<std::size_t>(options_.warmup),
                         .seconds_per_size = options_.seconds,
                         .baselines = !options_.no_baselines};
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

  const CollectiveBenchOptions& options_;
  const LaunchSpec& launch_;
  ProcessRank process_;
  const std::vector<BenchSize>& sizes_;
  BenchFacts facts_;
  std::vector<BenchRow> rows_;
};

CollectiveBench bench_one(const CollectiveBenchOptions& options, const std::string& backend,
                          const std::vector<BenchSize>& sizes,
                          const std::vector<std::string>& command) {
  const Point parameters = make_place(options, backend);
  check_sums(Settings(parameters).text("backend"));
  LaunchSpec launch = make_launch_spec(make_place_config(parameters));
  launch.deadlines = options.deadlines;
  check_memory(sizes, parse_dtype(options.dtype), launch.layout);
  if (options.gpus.empty()) {  // one replica is measured only where somebody asked for one
    throw usage_error("an all-reduce needs more than one replica", "", "give --gpus 2 or more");
  }
  const ProcessRank process = find_process_rank(environment_of_process());
  if (process.rank == 0 && !options.record.empty()) check_new_record(options.record);
  CollectiveBench result;
  result.exit_code = run_ranks(launch, process, command, [&] {
    result.records = Bench(options, parameters, launch, sizes, command).go();
    if (result.records.empty()) return 0;
    if (!options.record.empty()) {
      write_record_file(options.record, to_json(result.records.front()), "");
      log::info("record: {}", options.record);
    }
    return is_wrong(result.records.front()) ? 1 : 0;
  });
  return result;
}

// Writes each record into the study folder `record`.
CollectiveBench bench_several(const CollectiveBenchOptions& options,
                              const std::vector<std::string>& backends,
                              const std::vector<std::string>& command) {
  log::Setup logging;
  if (options.quiet) logging.level = log::Level::warning;
  log::set_up(logging);
  if (!options.record.empty()) make_folder(options.record);  // fails before anything is measured
  BackendsOutcome outcome = bench_backends({backends, options.backends.empty(), command,
                                            static_cast<int>(options.rounds), options.seconds});
  if (outcome.stopped_by != 0) {
    print_note("paceline: stopped by {}; nothing is recorded\n", strsignal(outcome.stopped_by));
    return {{}, true, 128 + outcome.stopped_by};
  }
  for (const RunRecord& record : outcome.records) {
    if (options.record.empty()) break;
    Point point;
    point.set("backend", record.provenance.backend_requested);
    const auto file = Store(options.record).write(point.folder(), 1, to_json(record), "");
    log::info("record: {}", file.string());
  }
  const bool wrong = std::any_of(outcome.records.begin(), outcome.records.end(), is_wrong);
  return {std::move(outcome.records), true, wrong ? 1 : 0};
}

}  // namespace

DType parse_dtype(const std::string& name) {
  for (const DType type : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    if (name == to_string(type)) return type;
  }
  throw usage_error(fmt::format("\"{}\" cannot be summed", name), "--dtype",
                    suggestion(name, {"f32", "f64", "bf16", "f16"}));
}

std::vector<BenchSize> list_sizes(const CollectiveBenchOptions& options) {
  const DType type = parse_dtype(options.dtype);
  if (!options.like.empty()) return sizes_like(options);
  std::vector<BenchSize> sizes;
  const auto add = [&](std::size_t bytes) {
    sizes.push_back({std::max<std::size_t>(1, bytes / size_of(type)), ""});
  };
  if (!options.sizes.empty()) {
    for (const std::string& text : split(options.sizes, ',')) add(parse_size(text, "--sizes"));
    return sizes;
  }
  const std::size_t least = parse_size(options.least, "--min-bytes");
  const std::size_t most = parse_size(options.most, "--max-bytes");
  if (least > most) {
    throw usage_error(
        fmt::format("--min-bytes {} is above --max-bytes {}", options.least, options.most), "",
        "give a larger --max-bytes");
  }
  const auto factor = static_cast<std::size_t>(options.step_factor);
  for (std::size_t bytes = least; bytes <= most; bytes *= factor) add(bytes);
  return sizes;
}

CollectiveBench bench_collective(const CollectiveBenchOptions& options,
                                 const std::vector<std::string>& command) {
  check_counts(options);
  std::vector<std::string> backends;
  if (!options.backends.empty()) backends = split(options.backends, ',');
  for (const std::string& backend : backends) check_sums(backend);
  const std::vector<BenchSize> sizes = list_sizes(options);
  const bool is_launched = find_process_rank(environment_of_process()).launched;
  if (is_launched && backends.size() > 1) {
    throw usage_error("ranks that a launcher started measure one backend a call", "--backends",
                      "call it once for each, and give the records to paceline report");
  }
  const bool is_alone = options.gpus.empty() || options.gpus == "1";
  if (is_launched || is_alone || backends.size() == 1) {
    return bench_one(options, backends.empty() ? "" : backends.front(), sizes, command);
  }
  return bench_several(options, backends.empty() ? backends_to_compare() : backends, command);
}

}  // namespace paceline
