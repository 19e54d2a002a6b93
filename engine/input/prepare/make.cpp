#include "engine/input/prepare/make.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdlib>
#include <numbers>
#include <numeric>
#include <string>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "engine/input/decode/resize.h"
#include "engine/input/formats/source.h"
#include "engine/input/prepare/staged_folder.h"
#include "engine/input/prepare/tfds_writer.h"

// jpeglib.h needs what stands above it.
#include <jpeglib.h>

namespace paceline {

// Octaves of smooth noise, the largest in the hue of the class, the smallest as a sensor's.
Image make_noise(int label, int classes, int width, int height, RandomSequence& random) {
  struct Octave {
    int cell;  // pixels between random values
    float weight;
  };
  const Octave octaves[] = {{std::max(width / 5, 2), 0.4F},
                            {std::max(width / 24, 2), 0.2F},
                            {7, 0.14F},
                            {3, 0.18F},
                            {1, 0.12F}};
  const auto pixels = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  std::vector<float> sum(3 * pixels, static_cast<float>(20 * random.uniform())), layer(pixels);
  Resizer resizer;
  for (const Octave& octave : octaves) {
    Image values;
    values.resize(height / octave.cell + 1, width / octave.cell + 1, 1);
    for (std::uint8_t& value : values.pixels)
      value = static_cast<std::uint8_t>(random.next() >> 24);
    resizer.resize(values, height, width, layer.data());
    for (std::size_t c = 0; c < 3; ++c) {
      const double turn = static_cast<double>(label) / classes + static_cast<double>(c) / 3;
      const bool coloured = &octave == octaves;
      const auto tint =
          static_cast<float>(coloured ? 0.6 + 0.4 * std::cos(2 * std::numbers::pi * turn) : 1.0);
      for (std::size_t i = 0; i < pixels; ++i) sum[3 * i + c] += octave.weight * tint * layer[i];
    }
  }
  Image image;
  image.resize(height, width, 3);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    image.pixels[i] = static_cast<std::uint8_t>(std::min(sum[i], 255.0F));
  }
  return image;
}

namespace {

struct Encoder {
  jpeg_error_mgr errors{};
  jpeg_compress_struct jpeg{};
  std::jmp_buf leave{};
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  char message[JMSG_LENGTH_MAX] = "";

  ~Encoder() {
    jpeg_destroy_compress(&jpeg);
    std::free(bytes);
  }
};

// libjpeg's callback must not return; only frames without destructors are left.
[[noreturn]] void leave(j_common_ptr common) {
  auto* encoder = static_cast<Encoder*>(common->client_data);
  common->err->format_message(common, encoder->message);
  std::longjmp(encoder->leave, 1);
}

bool run(Encoder& encoder, const Image& image, int quality) {
  jpeg_compress_struct& jpeg = encoder.jpeg;
  jpeg.err = jpeg_std_error(&encoder.errors);
  encoder.errors.error_exit = leave;
  if (setjmp(encoder.leave) != 0) return false;
  jpeg_create_compress(&jpeg);
  jpeg.client_data = &encoder;
  jpeg_mem_dest(&jpeg, &encoder.bytes, &encoder.size);
  jpeg.image_width = static_cast<JDIMENSION>(image.width);
  jpeg.image_height = static_cast<JDIMENSION>(image.height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    // libjpeg reads rows through pointers that are not const.
    auto* row = const_cast<JSAMPLE*>(image.pixels.data() + jpeg.next_scanline * image.row_bytes());
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  return true;
}

constexpr int kQuality = 87;
constexpr double kBytesPerPixel = 0.35;  // about, for the free space
// Training images of each class in iCassava 2019 (Mwebaze et al., arXiv:1908.02900).
constexpr std::array<std::size_t, 5> kRealCounts = {466, 1443, 773, 2658, 316};
constexpr std::size_t kRealImages = 5656;

// The label of every image: the real shares by largest remainder, in random order.
std::vector<int> make_labels(std::size_t images, std::uint64_t seed, std::uint32_t split) {
  constexpr std::size_t kClasses = kRealCounts.size();
  std::array<std::size_t, kClasses> counts{};
  for (std::size_t c = 0; c < kClasses; ++c) counts[c] = images * kRealCounts[c] / kRealImages;
  std::array<std::size_t, kClasses> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return images * kRealCounts[a] % kRealImages > images * kRealCounts[b] % kRealImages;
  });
  std::size_t given = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  for (std::size_t i = 0; given < images; ++i, ++given) ++counts[order[i]];
  for (std::size_t c = 0; c < kClasses && images >= kClasses; ++c) {
    if (counts[c] > 0) continue;
    ++counts[c];
    --*std::max_element(counts.begin(), counts.end());
  }
  std::vector<int> labels;
  for (std::size_t c = 0; c < kClasses; ++c)
    labels.insert(labels.end(), counts[c], static_cast<int>(c));
  RandomSequence random(seed, Stream::order, split);
  for (std::size_t i = labels.size(); i > 1; --i) {
    std::swap(labels[i - 1], labels[random.below(static_cast<std::uint32_t>(i))]);
  }
  return labels;
}

// "train-cmd-12.jpg": counted in each class, as in the real set.
std::vector<std::string> make_names(const std::string& split, const std::vector<int>& labels) {
  std::array<std::size_t, kCassavaClasses.size()> counted{};
  std::vector<std::string> names;
  for (const int label : labels) {
    const auto c = static_cast<std::size_t>(label);
    names.push_back(fmt::format("{}-{}-{}.jpg", split, kCassavaClasses[c], counted[c]++));
  }
  return names;
}

void check(const MakeOptions& o) {
  const auto refuse = [](const std::string& what, const char* option, const char* fix) {
    throw usage_error(what, option, fix);
  };
  if (o.images < 1) refuse("there is nothing to make", "--images", "ask for 1 image at least");
  if (o.images > 10'000'000) refuse("is too many", "--images", "ask for 10 million at most");
  if (o.size_min < 16 || o.size_max > 4096 || o.size_min > o.size_max) {
    refuse(fmt::format("sides from {} to {} pixels", o.size_min, o.size_max),
           "--size-min, --size-max", "choose from 16 to 4096, the smaller one first");
  }
  if (o.shards && (*o.shards < 1 || *o.shards > o.images)) {
    refuse(fmt::format("{} shards for {} images", *o.shards, o.images), "--shards",
           "choose from 1 to the number of images");
  }
}

constexpr std::size_t kPlane = 32 * 32, kRecord = 1 + 3 * kPlane, kBatches = 5;
constexpr int kClasses = 10;
constexpr std::size_t kMostImages = 1'000'000;
constexpr char kNames[] =
    "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";

// A label byte, then planes of red, green and blue.
void put_record(char* record, std::uint64_t seed, std::uint32_t split, std::size_t i) {
  RandomSequence random(seed, Stream::synthetic, static_cast<std::uint32_t>(i), split);
  const int label = static_cast<int>(random.below(kClasses));
  const Image image = make_noise(label, kClasses, 32, 32, random);
  record[0] = static_cast<char>(label);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t p = 0; p < kPlane; ++p) {
      record[1 + c * kPlane + p] = static_cast<char>(image.pixels[3 * p + c]);
    }
  }
}

void check(const MakeOptions& options, std::size_t test) {
  if (options.images < kBatches || options.images > kMostImages || test < 1 || test > kMostImages) {
    throw usage_error(fmt::format("{} training and {} test images", options.images, test),
                      "--images, --test",
                      fmt::format("ask for {} and 1 at least, a million at most", kBatches));
  }
}

}  // namespace

std::string encode_jpeg(const Image& image, int quality) {
  Encoder encoder;
  encoder.jpeg.client_data = &encoder;
  if (!run(encoder, image, quality)) {
    throw internal_error(std::string("libjpeg: ") + encoder.message);
  }
  return {reinterpret_cast<const char*>(encoder.bytes), encoder.size};
}

Made make_cassava(const MakeOptions& options) {
  check(options);
  const std::size_t test = options.test.value_or((options.images + 2) / 3);
  const std::size_t shards = options.shards.value_or(8);
  const std::size_t images = options.images + 2 * test;
  const double side = (options.size_min + options.size_max) / 2.0;
  check_space(options.out, static_cast<std::uint64_t>(static_cast<double>(images) * side * side *
                                                      kBytesPerPixel));
  StagedFolder folder(options.out);
  TfdsWriter writer(folder.path(), "cassava", {kCassavaClasses.begin(), kCassavaClasses.end()});
  PrepareProgress progress("cassava", static_cast<double>(images), PrepareProgress::Unit::images,
                           options.quiet);
  std::uint32_t split_index = 0;
  const auto write = [&](const std::string& split, std::size_t count, std::size_t split_shards) {
    const std::uint32_t index = split_index++;
    const std::vector<int> labels = make_labels(count, options.seed, index);
    const std::vector<std::string> names = make_names(split, labels);
    const auto range = static_cast<std::uint32_t>(options.size_max - options.size_min + 1);
    writer.write_split(split, count, split_shards, options.threads, [&](std::size_t i) {
      RandomSequence random(options.seed, Stream::synthetic, static_cast<std::uint32_t>(i), index);
      const int width = options.size_min + static_cast<int>(random.below(range));
      const int height = options.size_min + static_cast<int>(random.below(range));
      WrittenSample sample{
          encode_jpeg(make_noise(labels[i], kCassavaClasses.size(), width, height, random),
                      kQuality),
          names[i], labels[i]};
      progress.add(1);
      return sample;
    });
  };
  write("train", options.images, shards);
  if (test > 0) {
    write("test", test, (shards + 1) / 2);
    write("validation", test, (shards + 1) / 2);
  }
  writer.finish("0.1.0", fmt::format("SYNTHETIC: made by paceline data make cassava --images {} "
                                     "--seed {}; no photographs, no evidence of accuracy.",
                                     options.images, options.seed));
  mark_synthetic(folder.path());
  folder.commit();
  return {images, writer.bytes()};
}

Made make_cifar10(const MakeOptions& options) {
  const std::size_t test = options.test.value_or((options.images + 4) / 5);
  check(options, test);
  const std::size_t images = options.images + test;
  check_space(options.out, images * kRecord);
  StagedFolder folder(options.out);
  PrepareProgress progress("cifar10", static_cast<double>(images), PrepareProgress::Unit::images,
                           options.quiet);
  const auto write = [&](const std::string& name, std::uint32_t split, std::size_t first,
                         std::size_t last) {
    std::string bytes((last - first) * kRecord, '\0');
    work_on(last - first, options.threads, [&](std::size_t i) {
      put_record(bytes.data() + i * kRecord, options.seed, split, first + i);
      progress.add(1);
    });
    replace_file(folder.path() / name, bytes);
  };
  for (std::size_t b = 0; b < kBatches; ++b) {
    write(fmt::format("data_batch_{}.bin", b + 1), 0, options.images * b / kBatches,
          options.images * (b + 1) / kBatches);
  }
  write("test_batch.bin", 1, 0, test);
  replace_file(folder.path() / "batches.meta.txt", kNames);
  mark_synthetic(folder.path());
  folder.commit();
  return {images, images * kRecord};
}

Made make_set(const std::string& name, const MakeOptions& options) {
  if (name == "cassava") return make_cassava(options);
  if (name == "cifar10") return make_cifar10(options);
  if (name == "text") return make_text(options);
  throw usage_error("unknown data set \"" + name + "\"", "",
                    suggestion(name, {"cassava", "cifar10", "text"}));
}

}  // namespace paceline
