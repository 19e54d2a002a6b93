// paceline bench input

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/document/columns.h"
#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/memory.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/input/loading/dataset.h"
#include "engine/input/loading/input_bench.h"
#include "engine/launch/topology.h"
#include "run/plan_study.h"
#include "run/version.h"

namespace paceline {

// Prints the results of `paceline bench input`.

struct BenchedSet {
  std::string name, format, split, cache, data_hash, started_at;
  std::optional<double> resident_share;
  std::vector<std::string> bad_places;
  std::vector<LostRecords> lost;
};

namespace {

double rate(std::size_t samples, double seconds) {
  return seconds > 0 ? static_cast<double>(samples) / seconds : 0;
}

struct Stage {
  const char* name;
  double seconds;
};

std::vector<Stage> list_stages(const InputBench& bench) {
  return {{"read", bench.read_seconds},
          {"decode", bench.decode_seconds},
          {"resize", bench.resize_seconds},
          {"together", bench.read_seconds + bench.decode_seconds + bench.resize_seconds}};
}

// Of the threads that work: a feeder without threads works in the caller's.
double cores(const InputBenchOptions& options) {
  return std::max(1, options.threads);
}

double rounded(double value) {
  return to_real(fmt::format("{:.5g}", value)).value_or(value);
}

Section stages_section(const BenchedSet& set, const InputBenchOptions& options,
                       const InputBench& bench) {
  const auto samples = static_cast<double>(bench.samples);
  Section section{.title = "One thread"};
  section.headline = fmt::format(
      "{} images, {} each, {:.2f} megapixels, to {} x {}{}", bench.samples,
      format_bytes(static_cast<double>(bench.encoded_bytes) / samples),
      static_cast<double>(bench.pixels) / 1e6 / samples, options.size.height, options.size.width,
      !set.resident_share
          ? ""
          : fmt::format("; {:.0f} % in the page cache before", 100 * *set.resident_share));
  section.table =
      ColumnsOf<Stage>()
          .text("stage", "stage", &Stage::name)
          .real("images_per_second", "images/s",
                [&](const Stage& stage) { return number(rate(bench.samples, stage.seconds), 1); })
          .real("ms_per_image", "ms/image",
                [&](const Stage& stage) { return number(1e3 * stage.seconds / samples, 3); })
          .table(list_stages(bench));
  return section;
}

Section feeder_section(const BenchedSet& set, const InputBenchOptions& options,
                       const InputBench& bench) {
  Section section{.title = fmt::format(
                      "Feeder, {}, cache {}, augment {}",
                      options.threads ? counted(options.threads, "thread") : std::string("inline"),
                      set.cache, to_text(options.augment))};
  using Row = const InputEpoch&;
  const auto images = [&](Row epoch) { return rate(bench.samples, epoch.seconds); };
  section.table =
      ColumnsOf<InputEpoch>()
          .text("epoch", "epoch",
                [&](Row epoch) { return fmt::format("{}", &epoch - bench.epochs.data() + 1); })
          .real("images_per_second", "images/s",
                [&](Row epoch) { return number(images(epoch), 1); })
          .real("images_per_second_per_core", "a core",
                [&](Row epoch) { return number(images(epoch) / cores(options), 1); })
          .real("from_cache", "from cache",
                [](Row epoch) {
                  return percent(static_cast<double>(epoch.counts.from_cache) /
                                     static_cast<double>(epoch.counts.fetched),
                                 0);
                })
          .real("ready_batches", "queue level",
                [](Row epoch) { return number(epoch.ready_batches, 2); })
          .table(bench.epochs);
  if (!bench.bad_samples.empty()) {
    section.findings.emplace_back(fmt::format("{} bad samples, the first at {}",
                                              bench.bad_samples.size(), set.bad_places.front()));
  }
  for (const LostRecords& lost : set.lost) section.findings.emplace_back(lost.text());
  return section;
}

Json input_facts(const BenchedSet& set, const InputBenchOptions& options, const InputBench& bench) {
  Json stages = Json::object(), epochs = Json::array();
  for (const auto& [name, seconds] : list_stages(bench)) {
    stages[name] = {{"seconds", rounded(seconds)},
                    {"images_per_second", rounded(rate(bench.samples, seconds))}};
  }
  for (const InputEpoch& epoch : bench.epochs) {
    const double images = rate(bench.samples, epoch.seconds);
    epochs.push_back({{"seconds", rounded(epoch.seconds)},
                      {"images_per_second", rounded(images)},
                      {"images_per_second_per_core", rounded(images / cores(options))},
                      {"from_cache", epoch.counts.from_cache},
                      {"decoded", epoch.counts.decoded},
                      {"augmented", epoch.counts.augmented},
                      {"ready_batches", rounded(epoch.ready_batches)}});
  }
  Json json = {{"build", build_id()},
               {"started_at", set.started_at},
               {"data_set", set.name},
               {"format", set.format},
               {"split", set.split},
               {"data_hash", set.data_hash},
               {"samples", bench.samples},
               {"encoded_bytes", bench.encoded_bytes},
               {"pixels", bench.pixels},
               {"height", options.size.height},
               {"width", options.size.width},
               {"pixel_type", options.input.type == DType::f32 ? "fp32" : "uint8"},
               {"input_threads", options.threads},
               {"batch", options.batch},
               {"cache", set.cache},
               {"augment", to_text(options.augment)},
               {"one_thread", stages},
               {"epochs", epochs},
               {"bad_samples", bench.bad_samples.size()},
               {"bad_places", set.bad_places}};
  const LostSummary lost = summarize(set.lost);
  json["lost_records"] = lost.records;
  json["lost_places"] = lost.places;
  if (set.resident_share) json["resident_share"] = rounded(*set.resident_share);
  return json;
}

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
    print("{}\n", json_text(input_facts(benched, options, result), 2));
    return 0;
  }
  print_documents(
      {{.title = fmt::format("{} ({}), split {}", benched.name, benched.format, a.split),
        .sections = {stages_section(benched, options, result),
                     feeder_section(benched, options, result)}}},
      {});
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
