#include "engine/input/loading/input_bench.h"

#include <algorithm>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/input/loading/feeder.h"

namespace paceline {

namespace {

void measure_stages(const ImageStore& store, const InputCounts& counts, InputBench& bench) {
  bench.read_seconds = counts.read_seconds;
  bench.decode_seconds = counts.decode_seconds;
  bench.resize_seconds = counts.resize_seconds;
  bench.encoded_bytes = counts.read_bytes;
  bench.pixels = counts.source_pixels;
  bench.bad_samples = store.bad_samples();
}

}  // namespace

InputBench bench_input(const std::shared_ptr<const SampleSource>& source,
                       const InputBenchOptions& options) {
  InputBench bench;
  bench.samples =
      options.samples ? std::min(options.samples, source->samples()) : source->samples();
  if (bench.samples == 0)
    throw input_error("the split holds no samples", "", "choose another split");
  Dataset set{.name = "bench",
              .height = options.size.height,
              .width = options.size.width,
              .channels = options.size.channels,
              .samples = bench.samples,
              .image_type = options.input.type};
  const auto make_store = [&](CacheKind cache) {
    InputOptions input = options.input;
    input.cache = cache;
    auto store = std::make_shared<ImageStore>(source, options.size, input);
    store->limit(bench.samples);
    if (cache != CacheKind::off) {
      store->keep_in(
          std::make_shared<CacheRegion>(CacheRegion::Size{{bench.samples}, input.cache_bytes},
                                        CacheRegion::Reach::process, input.cache_folder),
          0);
    }
    return store;
  };

  const auto uncached = make_store(CacheKind::off);
  ImageStore::Worker worker;
  std::vector<std::uint8_t> out(uncached->image_bytes());
  for (std::size_t i = 0; i < bench.samples; ++i) uncached->fetch(i, out.data(), worker);
  measure_stages(*uncached, worker.counts, bench);

  set.store = make_store(options.input.cache);
  StreamSpec stream{
      .seed = 1, .samples = bench.samples, .global_batch = std::min(options.batch, bench.samples)};
  const std::size_t steps = SampleStream(stream).steps_per_epoch();
  Feeder::Setup setup;
  setup.batch = stream.global_batch;
  setup.threads = options.threads;
  setup.cpus = options.cpus;
  setup.augment = options.augment;
  setup.steps = steps;
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    setup.first_step = static_cast<std::size_t>(epoch) * steps;
    Feeder feeder(set, stream, setup);
    InputEpoch row;
    const double start = now_seconds();
    for (std::size_t step = 0; step < steps; ++step) feeder.next();
    row.seconds = now_seconds() - start;
    row.counts = feeder.counts();
    row.ready_batches = feeder.ready_batches() / static_cast<double>(steps);
    bench.epochs.push_back(row);
  }
  return bench;
}

}  // namespace paceline
