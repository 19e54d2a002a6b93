#include "cli/bench_input_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/core/text.h"
#include "run/lost_records.h"
#include "run/version.h"

namespace paceline {

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

}  // namespace

std::string input_table(const BenchedSet& set, const InputBenchOptions& options,
                        const InputBench& bench) {
  std::string text = fmt::format(
      "{} ({}), split {}: {} images, {} each, {:.2f} megapixels, to {} x {}{}\n\n", set.name,
      set.format, set.split, bench.samples,
      format_bytes(static_cast<double>(bench.encoded_bytes) / static_cast<double>(bench.samples)),
      static_cast<double>(bench.pixels) / 1e6 / static_cast<double>(bench.samples),
      options.size.height, options.size.width,
      !set.resident_share
          ? ""
          : fmt::format("; {:.0f} % in the page cache before", 100 * *set.resident_share));
  text += "one thread          images/s   ms/image\n";
  for (const auto& [name, seconds] : list_stages(bench)) {
    text += fmt::format("  {:<16} {:>9.1f} {:>10.3f}\n", name, rate(bench.samples, seconds),
                        1e3 * seconds / static_cast<double>(bench.samples));
  }
  text += fmt::format("\nfeeder, {}, cache {}, augment {}\n",
                      options.threads ? counted(options.threads, "thread") : std::string("inline"),
                      set.cache, to_text(options.augment));
  text += "                    images/s  a core   from cache  queue level\n";
  for (std::size_t e = 0; e < bench.epochs.size(); ++e) {
    const InputEpoch& epoch = bench.epochs[e];
    const double images = rate(bench.samples, epoch.seconds);
    text += fmt::format("  epoch {:<10} {:>9.1f} {:>7.1f} {:>10.0f} % {:>12.2f}\n", e + 1, images,
                        images / cores(options),
                        100.0 * static_cast<double>(epoch.counts.from_cache) /
                            static_cast<double>(epoch.counts.fetched),
                        epoch.ready_batches);
  }
  if (!bench.bad_samples.empty()) {
    text += fmt::format("\n{} bad samples, the first at {}\n", bench.bad_samples.size(),
                        set.bad_places.front());
  }
  for (const LostRecords& lost : set.lost) text += fmt::format("\n{}\n", lost.text());
  return text;
}

Json input_bench_json(const BenchedSet& set, const InputBenchOptions& options,
                      const InputBench& bench) {
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
