// paceline bench input
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/bench_input_report.h"
#include "cli/verb.h"
#include "engine/core/available_memory.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/json_text.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/input/loading/page_cache.h"
#include "engine/launch/topology.h"

namespace paceline {

namespace {

constexpr char kBenchInputFooter[] = R"(Examples:
  paceline bench input --data cassava
  paceline bench input --data cassava --input-threads 4 --cache raw --json
  paceline bench input --data photographs --size 224x224 --samples 500
  paceline bench input --data cassava --augment hflip+crop16

First one thread reads, decodes and resizes every image, each stage timed by itself; then batches
are fed for --epochs epochs, the first of which fills the cache. Nothing computes meanwhile, so a
rate here is the most that training can get.)";

constexpr std::size_t kMostBadPlaces = 5;

struct InputArguments {
  std::string data, split = "train", size = "300x300", cache = "decoded", cache_type = "uint8";
  std::string cache_folder, on_bad_sample = "fail", augment = "none";
  std::int64_t samples = 0, batch = 32, input_threads = 0, epochs = 3, cache_mb = 0;
  std::int64_t parallel_reads = 0, read_buffer_kb = 0;
  bool json = false;
};

ImageStore::Size size_of_text(const std::string& text) {
  constexpr std::int64_t kMost = 16384;
  const auto parts = split(text, 'x');
  const auto height = to_integer(parts[0]);
  const auto width = parts.size() == 2 ? to_integer(parts[1]) : std::nullopt;
  if (!height || !width || *height < 1 || *width < 1 || *height > kMost || *width > kMost) {
    throw Error(ErrorKind::usage, fmt::format("\"{}\" is not a size", text), "--size",
                "give height x width, for example 300x300");
  }
  return {static_cast<int>(*height), static_cast<int>(*width), 3};
}

// Threads that work must have CPUs to work on.
void check_threads(const InputArguments& a, const CpuSet& cpus) {
  const auto usable = static_cast<std::int64_t>(cpus.size());
  if (a.input_threads > usable) {
    throw Error(ErrorKind::usage,
                fmt::format("{} input threads on {} usable CPUs", a.input_threads, usable), "",
                "use fewer");
  }
  const std::int64_t most = std::max<std::int64_t>(1, a.input_threads);
  if (a.parallel_reads > most) {
    throw Error(
        ErrorKind::usage,
        fmt::format("{} parallel reads with {} input threads", a.parallel_reads, a.input_threads),
        "", fmt::format("read {} at once, or give more --input-threads", most));
  }
}

std::size_t cache_bytes(const InputArguments& a) {
  const std::size_t available = available_memory().value_or(0);
  if (a.cache_mb == 0) return available / 2;
  const std::size_t bytes = static_cast<std::size_t>(a.cache_mb) << 20;
  if (available == 0 || bytes <= available) return bytes;
  throw Error(ErrorKind::usage,
              fmt::format("the cache of {} exceeds the free memory of {}",
                          format_bytes(static_cast<double>(bytes)),
                          format_bytes(static_cast<double>(available))),
              "--cache-mb", "lower it");
}

InputBenchOptions make_options(const InputArguments& a, const CpuSet& cpus) {
  InputBenchOptions options;
  options.size = size_of_text(a.size);
  options.samples = static_cast<std::size_t>(a.samples);
  options.batch = static_cast<std::size_t>(a.batch);
  options.threads = static_cast<int>(a.input_threads);
  options.cpus = {cpus.begin(), cpus.begin() + options.threads};
  options.epochs = static_cast<int>(a.epochs);
  options.augment = parse_augmentation(a.augment);
  check_augmentation(options.augment, options.size.height, options.size.width);
  InputOptions& input = options.input;
  input.cache = a.cache == "off"   ? CacheKind::off
                : a.cache == "raw" ? CacheKind::raw
                                   : CacheKind::decoded;
  input.type = a.cache_type == "fp32" ? DType::f32 : DType::u8;
  input.cache_bytes = input.cache == CacheKind::off ? 0 : cache_bytes(a);
  input.cache_folder = a.cache_folder;
  input.parallel_reads = static_cast<int>(
      a.parallel_reads ? a.parallel_reads : std::max<std::int64_t>(1, a.input_threads));
  input.skip_bad = a.on_bad_sample == "skip";
  input.reading.skip_damaged = input.skip_bad;
  input.reading.buffer_bytes = static_cast<std::size_t>(a.read_buffer_kb) << 10;
  return options;
}

int bench(const InputArguments& a) {
  const CpuSet cpus = usable_cpus();
  check_threads(a, cpus);
  const InputBenchOptions options = make_options(a, cpus);
  BenchedSet benched;
  benched.started_at = utc_time_stamp();
  benched.split = a.split;
  benched.cache = a.cache;
  if (std::filesystem::is_directory(a.data)) benched.resident_share = resident_share(a.data);
  const ImageSet set = open_image_set(a.data, options.input.reading);
  benched.name = set.name;
  benched.format = set.format;
  const auto& source = set.split(a.split);
  benched.data_hash = source->hash();
  benched.lost = source->lost();
  const InputBench result = bench_input(source, options);
  for (const std::size_t i : result.bad_samples) {
    if (benched.bad_places.size() < kMostBadPlaces) benched.bad_places.push_back(source->where(i));
  }
  if (a.json) {
    print("{}\n", json_text(input_bench_json(benched, options, result), 2));
  } else {
    print("{}", input_table(benched, options, result));
  }
  return 0;
}

}  // namespace

void add_bench_input(CLI::App& bench_verb, Action& action) {
  CLI::App* verb =
      bench_verb.add_subcommand("input", "Benchmark reading, decoding and resizing images");
  auto a = std::make_shared<InputArguments>();
  verb->add_option("--data", a->data, "folder of an image set")->type_name("FOLDER")->required();
  verb->add_option("--split", a->split, "split of the set")
      ->type_name("NAME")
      ->capture_default_str();
  verb->add_option("--size", a->size, "image size after the resize")
      ->type_name("HxW")
      ->capture_default_str();
  verb->add_option("--samples", a->samples, "use only the first N samples [default: all]")
      ->check(CLI::Range(0, 1 << 30));
  verb->add_option("--batch", a->batch, "samples per batch")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  verb->add_option("--input-threads", a->input_threads,
                   "threads that prepare batches; 0 prepares them inline")
      ->capture_default_str()
      ->check(CLI::Range(0, 4096));
  verb->add_option("--parallel-reads", a->parallel_reads,
                   "samples read at once [default: one per thread]")
      ->check(CLI::Range(0, 4096));
  verb->add_option("--read-buffer-kb", a->read_buffer_kb,
                   "largest read call in KiB [default: a whole sample]")
      ->check(CLI::Range(0, 1 << 20));
  verb->add_option("--epochs", a->epochs, "epochs")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  verb->add_option("--cache", a->cache, "what the cache keeps")
      ->capture_default_str()
      ->check(CLI::IsMember({"off", "raw", "decoded"}));
  verb->add_option("--cache-type", a->cache_type, "element type of decoded samples in the cache")
      ->capture_default_str()
      ->check(CLI::IsMember({"uint8", "fp32"}));
  verb->add_option("--cache-mb", a->cache_mb,
                   "cache size in MiB [default: half of the free memory]")
      ->check(CLI::Range(0, 1 << 30));
  verb->add_option("--cache-dir", a->cache_folder, "cache overflow folder")->type_name("FOLDER");
  verb->add_option("--on-bad-sample", a->on_bad_sample,
                   "what to do with a sample that cannot be decoded")
      ->capture_default_str()
      ->check(CLI::IsMember({"fail", "skip"}));
  verb->add_option("--augment", a->augment, "hflip, vflip, transpose, cropN, joined by +; or none")
      ->type_name("NAMES")
      ->capture_default_str();
  verb->add_flag("--json", a->json, "print JSON");
  verb->footer(kBenchInputFooter);
  verb->callback([a, &action] { action = [a] { return bench(*a); }; });
}

}  // namespace paceline
