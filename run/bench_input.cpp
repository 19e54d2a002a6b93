#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "analysis/document/columns.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/memory.h"
#include "engine/core/text.h"
#include "engine/input/loading/dataset.h"
#include "engine/launch/topology.h"
#include "run/bench.h"
#include "run/plan_study.h"
#include "run/version.h"

namespace paceline {

namespace {

constexpr std::size_t kMostBadPlaces = 5;

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
Cell rate_cell(double images_per_second) {
  return number(images_per_second, decimals_for(images_per_second, 4));
}

double cores(const InputBenchOptions& options) {
  return std::max(1, options.threads);
}

double rounded(double value) {
  return to_real(fmt::format("{:.5g}", value)).value_or(value);
}

Section stages_section(const BenchedInput& set) {
  const InputBenchOptions& options = set.options;
  const InputBench& bench = set.result;
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
                [&](const Stage& stage) { return rate_cell(rate(bench.samples, stage.seconds)); })
          .real("ms_per_image", "ms/image",
                [&](const Stage& stage) { return number(1e3 * stage.seconds / samples, 3); })
          .table(list_stages(bench));
  return section;
}

Section feeder_section(const BenchedInput& set) {
  const InputBenchOptions& options = set.options;
  const InputBench& bench = set.result;
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
                [&](Row epoch) { return rate_cell(images(epoch)); })
          .real("images_per_second_per_core", "a core",
                [&](Row epoch) { return rate_cell(images(epoch) / cores(options)); })
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

ImageStore::Size parse_size(const std::string& text) {
  constexpr std::int64_t kMost = 16384;
  const auto parts = split(text, 'x');
  const auto height = to_integer(parts[0]);
  const auto width = parts.size() == 2 ? to_integer(parts[1]) : std::nullopt;
  if (!height || !width || *height < 1 || *width < 1 || *height > kMost || *width > kMost) {
    throw usage_error(fmt::format("\"{}\" is not a size", text), "--size",
                      "give height x width, for example 300x300");
  }
  return {static_cast<int>(*height), static_cast<int>(*width), 3};
}

// Threads that work must have CPUs to work on.
void check_threads(const BenchInputOptions& a, const CpuSet& cpus) {
  const auto usable = static_cast<std::int64_t>(cpus.size());
  if (a.input_threads > usable) {
    throw usage_error(fmt::format("{} input threads on {} usable CPUs", a.input_threads, usable),
                      "", "use fewer");
  }
  const std::int64_t most = std::max<std::int64_t>(1, a.input_threads);
  if (a.parallel_reads > most) {
    throw usage_error(
        fmt::format("{} parallel reads with {} input threads", a.parallel_reads, a.input_threads),
        "", fmt::format("read {} at once, or give more --input-threads", most));
  }
}

std::size_t cache_bytes(const BenchInputOptions& a) {
  const std::size_t available = available_memory().value_or(0);
  if (a.cache_mb == 0) return available / 2;
  const std::size_t bytes = static_cast<std::size_t>(a.cache_mb) << 20;
  if (available == 0 || bytes <= available) return bytes;
  throw usage_error(fmt::format("the cache of {} exceeds the free memory of {}",
                                format_bytes(static_cast<double>(bytes)),
                                format_bytes(static_cast<double>(available))),
                    "--cache-mb", "lower it");
}

InputBenchOptions make_options(const BenchInputOptions& a, const CpuSet& cpus) {
  InputBenchOptions options;
  options.size = parse_size(a.size);
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
  input.skip_bad = a.skip_bad;
  input.reading.skip_damaged = input.skip_bad;
  input.reading.buffer_bytes = static_cast<std::size_t>(a.read_buffer_kb) << 10;
  return options;
}

}  // namespace

BenchedInput bench_input(const BenchInputOptions& a) {
  const CpuSet cpus = usable_cpus();
  check_threads(a, cpus);
  BenchedInput benched;
  benched.options = make_options(a, cpus);
  benched.started_at = utc_time_stamp();
  benched.split = a.split;
  benched.cache = a.cache;
  if (std::filesystem::is_directory(a.data)) benched.resident_share = resident_share(a.data);
  const ImageSet set = open_image_set(a.data, benched.options.input.reading);
  benched.name = set.name;
  benched.format = set.format;
  const auto& source = set.split(a.split);
  benched.data_hash = source->hash();
  benched.lost = source->lost();
  benched.result = bench_input(source, benched.options);
  for (const std::size_t i : benched.result.bad_samples) {
    if (benched.bad_places.size() < kMostBadPlaces) benched.bad_places.push_back(source->where(i));
  }
  return benched;
}

Document to_document(const BenchedInput& benched) {
  return {.title = fmt::format("{} ({}), split {}", benched.name, benched.format, benched.split),
          .sections = {stages_section(benched), feeder_section(benched)}};
}

Json to_json(const BenchedInput& set) {
  const InputBenchOptions& options = set.options;
  const InputBench& bench = set.result;
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

}  // namespace paceline
