// From files to staged batches, on MNIST's own files: IDX with and without gzip, the order of an
// epoch, a rank's samples of each step, and the feeder inline and with an input thread; then JPEGs,
// decoded and resized beside libjpeg-turbo alone.
#include <zlib.h>

#include <cmath>
#include <string>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/random.h"
#include "engine/input/decode/image.h"
#include "engine/input/decode/resize.h"
#include "engine/input/formats/formats.h"
#include "engine/input/loading/feeder.h"
#include "tests/bench/jpeg_bound.h"
#include "tests/bench/main.h"
#include "tests/bench/turns.h"

namespace paceline::bench {

namespace {

std::filesystem::path test_images() {
  return find_data_folder("mnist", "") / "t10k-images-idx3-ubyte.gz";
}

// zlib alone, from memory into memory of the right size.
class InflateBound final : public Bound {
 public:
  InflateBound(std::string packed, std::size_t bytes)
      : packed_(std::move(packed)), out_(bytes, 0) {}

  double run() override {
    z_stream stream{};
    constexpr int kGzipWindow = 15 + 16;
    stream.next_in = reinterpret_cast<Bytef*>(packed_.data());
    stream.avail_in = static_cast<uInt>(packed_.size());
    stream.next_out = reinterpret_cast<Bytef*>(out_.data());
    stream.avail_out = static_cast<uInt>(out_.size());
    const bool fine =
        inflateInit2(&stream, kGzipWindow) == Z_OK && inflate(&stream, Z_FINISH) == Z_STREAM_END;
    inflateEnd(&stream);
    if (!fine) throw Error(ErrorKind::internal, "zlib could not inflate what was read before");
    return static_cast<double>(out_.size());
  }

 private:
  std::string packed_, out_;
};

std::string inflated(const std::string& packed) {
  return gunzip(packed, "test images", std::size_t{1} << 30);
}

void set_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}
void set_items(benchmark::State& state, std::size_t items) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(items));
}

void idx_gzip(benchmark::State& state) {
  const std::string packed = read_text(test_images());
  const std::size_t bytes = inflated(packed).size();
  InflateBound inflate(packed, bytes);
  take_turns(
      state, [] { benchmark::DoNotOptimize(read_idx(test_images())); }, static_cast<double>(bytes),
      inflate);
  set_bytes(state, bytes);
}

void idx_parse(benchmark::State& state) {
  const std::string bytes = inflated(read_text(test_images()));
  CopyBound copy(2 * bytes.size());
  take_turns(
      state, [&] { benchmark::DoNotOptimize(parse_idx(bytes, "test images")); },
      2 * static_cast<double>(bytes.size()), copy);
  set_bytes(state, bytes.size());
}

constexpr std::size_t kSamples = 60000;  // of MNIST

// The argument is the shuffle buffer, 0 for a shuffle of the whole set.
void order(benchmark::State& state) {
  std::uint32_t epoch = 0;
  take_turns(state, [&] {
    benchmark::DoNotOptimize(
        epoch_order(1, epoch++, kSamples, static_cast<std::size_t>(state.range(0))));
  });
  set_items(state, kSamples);
}

// The new order of each pass included.
void stream(benchmark::State& state) {
  const auto batch = static_cast<std::size_t>(state.range(0));
  SampleStream stream({.seed = 1, .samples = kSamples, .global_batch = batch});
  std::vector<Drawn> drawn;
  std::size_t step = 0;
  take_turns(state, [&] { stream.draw(step++, 0, 1, drawn); });
  set_items(state, batch);
}

// Arguments: batch, input threads. Beside a copy of as many samples that lie one behind the other.
void feeder(benchmark::State& state) {
  const auto batch = static_cast<std::size_t>(state.range(0));
  Dataset set = synthetic_images(28, 28, 1, 10, kSamples, 1, 1).train;
  set.synthetic = false;  // or the feeder would stage it once
  Feeder::Setup setup;
  setup.batch = batch;
  setup.steps = ~std::size_t{0} / 2;
  setup.threads = static_cast<int>(state.range(1));
  Feeder feeder(set, {.seed = 1, .samples = kSamples, .global_batch = batch, .drop_last = true},
                setup);
  const std::size_t moved = 2 * batch * set.sample_bytes();
  CopyBound copy(moved);
  take_turns(
      state, [&] { benchmark::DoNotOptimize(&feeder.next()); }, static_cast<double>(moved), copy);
  set_bytes(state, moved);
  set_items(state, batch);
}

// A photograph's worth of detail, side x side.
std::string photograph(int side) {
  std::vector<std::uint8_t> pixels;
  RandomSequence random(1, Stream::synthetic, 0);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      for (int c = 0; c < 3; ++c) {
        const double wave = std::sin(0.05 * x * (c + 1)) * std::cos(0.04 * y);
        pixels.push_back(static_cast<std::uint8_t>(120 + 90 * wave + random.below(30)));
      }
    }
  }
  return encoded_jpeg(pixels, side, side);
}

// The argument is the side. Beside libjpeg-turbo alone, which keeps its object as we do.
void decode(benchmark::State& state) {
  const std::string jpeg = photograph(static_cast<int>(state.range(0)));
  JpegBound bound(jpeg);
  ImageDecoder decoder;
  Image image;
  take_turns(
      state, [&] { decoder.decode(jpeg, 3, image, [] { return "photograph"; }); }, 1, bound);
  set_items(state, 1);
}

// To 300 x 300, as one thread of input does with every image: decode, resize, round.
void decode_and_resize(benchmark::State& state) {
  constexpr int kSide = 300;
  const std::string jpeg = photograph(static_cast<int>(state.range(0)));
  JpegBound bound(jpeg);
  ImageDecoder decoder;
  Resizer resizer;
  Image image;
  std::vector<std::uint8_t> out(std::size_t{3} * kSide * kSide);
  take_turns(
      state,
      [&] {
        decoder.decode(jpeg, 3, image, [] { return "photograph"; });
        resizer.resize(image, kSide, kSide, out.data());
      },
      1, bound);
  set_items(state, 1);
}

}  // namespace

void register_benchmarks() {
  benchmark::RegisterBenchmark("decode", decode)->Arg(300)->Arg(500)->Arg(800)->UseManualTime();
  benchmark::RegisterBenchmark("decode_and_resize", decode_and_resize)
      ->Arg(300)
      ->Arg(500)
      ->Arg(800)
      ->UseManualTime();
  benchmark::RegisterBenchmark("idx_gzip", idx_gzip)->UseManualTime();
  benchmark::RegisterBenchmark("idx_parse", idx_parse)->UseManualTime();
  benchmark::RegisterBenchmark("order", order)->Arg(0)->Arg(10000)->UseManualTime();
  benchmark::RegisterBenchmark("stream", stream)->Arg(64)->Arg(128)->UseManualTime();
  benchmark::RegisterBenchmark("feeder", feeder)
      ->ArgsProduct({{64, 128}, {0, 1}})
      ->ArgNames({"", "threads"})
      ->UseManualTime();
}

}  // namespace paceline::bench
