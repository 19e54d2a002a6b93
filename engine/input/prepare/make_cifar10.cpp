#include <fmt/format.h>

#include <string>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/input/formats/synthetic_mark.h"
#include "engine/input/prepare/leaf.h"
#include "engine/input/prepare/make.h"
#include "engine/input/prepare/progress.h"
#include "engine/input/prepare/staged_folder.h"
#include "engine/input/prepare/workers.h"

namespace paceline {

namespace {

constexpr std::size_t kPlane = 32 * 32, kRecord = 1 + 3 * kPlane, kBatches = 5;
constexpr int kClasses = 10;
constexpr std::size_t kMostImages = 1'000'000;
constexpr char kNames[] =
    "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";

// A label byte, then planes of red, green and blue.
void put_record(char* record, std::uint64_t seed, std::uint32_t split, std::size_t i) {
  RandomSequence random(seed, Stream::synthetic, static_cast<std::uint32_t>(i), split);
  const int label = static_cast<int>(random.below(kClasses));
  const Image image = paint_texture(label, random);
  record[0] = static_cast<char>(label);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t p = 0; p < kPlane; ++p) {
      record[1 + c * kPlane + p] = static_cast<char>(image.pixels[3 * p + c]);
    }
  }
}

void check(const MakeOptions& options, std::size_t test) {
  if (options.images < kBatches || options.images > kMostImages || test < 1 || test > kMostImages) {
    throw Error(
        ErrorKind::usage, fmt::format("{} training and {} test images", options.images, test),
        "--images, --test", fmt::format("ask for {} and 1 at least, a million at most", kBatches));
  }
}

}  // namespace

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

}  // namespace paceline
