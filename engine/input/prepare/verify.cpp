#include "engine/input/prepare/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/input/decode/image.h"
#include "engine/input/formats/source.h"
#include "engine/input/loading/dataset.h"
#include "engine/input/prepare/staged_folder.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBlockImages = 32;  // that a thread checks at a time
constexpr std::size_t kShownProblems = 20;

class Verifier {
 public:
  Verifier(const fs::path& folder, int threads, bool quiet)
      : folder_(folder), threads_(threads), quiet_(quiet) {}

  Verified run() {
    const double began = now_seconds();
    if (!mnist_files(folder_).empty()) {
      collect_problems([&] { check_mnist(); });
    } else {
      // In a folder without any file of a set, this throws, naming what was looked for.
      if (!fs::is_directory(folder_) || !is_image_set(folder_)) open_image_set(folder_);
      collect_problems([&] { check_images(open_image_set(folder_)); });
    }
    summarise();
    result_.seconds = now_seconds() - began;
    return std::move(result_);
  }

 private:
  // Input errors are problems of the set.
  void collect_problems(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::input) throw;
      add_problem(error.what());
    }
  }

  void add_problem(const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (result_.problems.size() < Verified::kMostProblems) {
      result_.problems.push_back(line);
    } else {
      ++result_.more_problems;
    }
  }

  void check_mnist() {
    const DatasetPair sets = load_mnist(folder_);
    result_.name = "mnist";
    result_.format = mnist_files(folder_)[0].extension() == ".npz" ? "NumPy archive" : "IDX files";
    for (int digit = 0; digit < sets.train.classes; ++digit) {
      result_.classes.push_back(std::to_string(digit));
    }
    for (const auto& [name, set] : {std::pair{"train", &sets.train}, {"test", &sets.test}}) {
      VerifiedSplit split{name, set->samples, std::vector<std::size_t>(result_.classes.size()), 0};
      for (const std::int32_t label : set->labels) {
        ++split.class_images[static_cast<std::size_t>(label)];
      }
      result_.bytes += set->images.size();
      sizes_.insert(sizes_.end(), set->samples, {set->width, set->height});
      result_.splits.push_back(std::move(split));
    }
  }

  void check_images(const ImageSet& set) {
    result_.name = set.name;
    result_.format = set.format;
    result_.classes = set.classes;
    result_.synthetic = set.synthetic;
    for (const auto& [name, reason] : set.absent)
      add_problem(reason + " (data set " + set.name + ")");
    std::size_t images = 0;
    for (const auto& [name, source] : set.splits) images += source->samples();
    PrepareProgress progress("checked", static_cast<double>(images), PrepareProgress::Unit::images,
                             quiet_);
    for (const auto& entry : set.splits) {
      const SampleSource& source = *entry.second;
      VerifiedSplit split{entry.first, source.samples(),
                          std::vector<std::size_t>(set.classes.size()), 0};
      work_on(
          (source.samples() + kBlockImages - 1) / kBlockImages, threads_,
          [&](std::size_t block) { check_block(source, block * kBlockImages, split, progress); });
      result_.splits.push_back(std::move(split));
    }
  }

  void check_block(const SampleSource& source, std::size_t first, VerifiedSplit& split,
                   PrepareProgress& progress) {
    const std::size_t last = std::min(first + kBlockImages, source.samples());
    ImageDecoder decoder;
    EncodedSample sample;
    Image image;
    for (std::size_t i = first; i < last; ++i) {
      try {
        source.read(i, sample);
        if (sample.height == 0) {
          decoder.decode(sample.image, 3, image, [&] { return source.where(i); });
        } else {
          image.height = sample.height;
          image.width = sample.width;
        }
        count_image(split, sample, image);
      } catch (const Error& error) {
        add_problem(split.name + ": " + error.what());
        const std::lock_guard lock(mutex_);
        ++split.bad;
      }
    }
    progress.add(static_cast<double>(last - first));
  }

  void count_image(VerifiedSplit& split, const EncodedSample& sample, const Image& image) {
    const std::lock_guard lock(mutex_);
    ++split.class_images.at(static_cast<std::size_t>(sample.label));
    result_.bytes += sample.image.size();
    sizes_.emplace_back(image.width, image.height);
  }

  void summarise() {
    result_.images = sizes_.size();
    std::sort(result_.problems.begin(), result_.problems.end());
    if (sizes_.empty()) return;
    std::vector<std::size_t> pixels;
    result_.least_side = std::min(sizes_[0].first, sizes_[0].second);
    for (const auto& [width, height] : sizes_) {
      result_.least_side = std::min({result_.least_side, width, height});
      result_.most_side = std::max({result_.most_side, width, height});
      pixels.push_back(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
    }
    const auto middle = pixels.begin() + static_cast<std::ptrdiff_t>(pixels.size() / 2);
    std::nth_element(pixels.begin(), middle, pixels.end());
    result_.median_pixels = *middle;
  }

  const fs::path& folder_;
  int threads_;
  bool quiet_;
  std::mutex mutex_;
  std::vector<std::pair<int, int>> sizes_;  // width, height
  Verified result_;
};

}  // namespace

Verified verify_folder(const fs::path& folder, int threads, bool quiet) {
  std::error_code none;
  if (!fs::is_directory(folder, none)) {
    throw input_error("not a folder", folder.string(), "name the folder of a data set");
  }
  return Verifier(folder, threads, quiet).run();
}

std::string to_text(const Verified& v) {
  std::string text;
  if (!v.name.empty()) {
    text +=
        fmt::format("{} ({}{})\n", printable(v.name), v.format, v.synthetic ? ", synthetic" : "");
  }
  for (const VerifiedSplit& split : v.splits) {
    std::vector<std::string> counts;
    for (std::size_t c = 0; c < v.classes.size(); ++c) {
      counts.push_back(fmt::format("{} {}", printable(v.classes[c]), split.class_images[c]));
    }
    text +=
        fmt::format("  {:<11}{} images: {}{}\n", printable(split.name), split.images,
                    join(counts, ", "), split.bad > 0 ? fmt::format("; {} bad", split.bad) : "");
  }
  const std::size_t shown = std::min(v.problems.size(), kShownProblems);
  for (std::size_t i = 0; i < shown; ++i) {
    text += fmt::format("  wrong: {}\n", printable(v.problems[i]));
  }
  const std::size_t all = v.problems.size() + v.more_problems;
  if (all > shown) {
    text += fmt::format("  and {} more (--json has {})\n", all - shown, v.problems.size());
  }
  const std::string verdict = v.whole() ? "whole" : fmt::format("{} wrong", all);
  if (v.images == 0) return text + fmt::format("{}: no good image\n", verdict);
  return text +
         fmt::format(
             "{}: {} good images of {} classes, sides of {} to {} pixels, {}, {:.0f} images/s\n",
             verdict, v.images, v.classes.size(), v.least_side, v.most_side,
             format_bytes(static_cast<double>(v.bytes)),
             static_cast<double>(v.images) / std::max(v.seconds, 1e-9));
}

Json to_json(const Verified& v) {
  Json splits = Json::array();
  for (const VerifiedSplit& split : v.splits) {
    Json classes = Json::object();
    for (std::size_t c = 0; c < v.classes.size(); ++c)
      classes[v.classes[c]] = split.class_images[c];
    splits.push_back({{"name", split.name},
                      {"images", split.images},
                      {"bad_images", split.bad},
                      {"class_images", classes}});
  }
  return {{"name", v.name},
          {"format", v.format},
          {"synthetic", v.synthetic},
          {"whole", v.whole()},
          {"images", v.images},
          {"bytes", v.bytes},
          {"least_side_pixels", v.least_side},
          {"most_side_pixels", v.most_side},
          {"median_pixels", v.median_pixels},
          {"seconds", v.seconds},
          {"images_per_second", static_cast<double>(v.images) / std::max(v.seconds, 1e-9)},
          {"splits", splits},
          {"problems", v.problems},
          {"more_problems", v.more_problems}};
}

}  // namespace paceline
