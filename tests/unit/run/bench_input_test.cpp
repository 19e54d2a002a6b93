#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "run/bench.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"
#include "tests/unit/input/made.h"

namespace paceline {
namespace {

// Six images of two classes, one of them damaged.
class BenchInput : public ::testing::Test {
 protected:
  BenchInput() {
    for (int i = 0; i < 6; ++i) {
      const auto folder = scratch_ / "train" / (i % 2 ? "dog" : "cat");
      std::filesystem::create_directories(folder);
      const std::string image = make_jpeg(20, 30, i);
      write_file(folder / (std::to_string(i) + ".jpg"), i == 5 ? image.substr(0, 40) : image);
    }
    options_.data = scratch_.path().string();
    options_.size = "12x16";
    options_.skip_bad = true;
    options_.batch = 2;
    options_.epochs = 2;
  }

  Scratch scratch_;
  BenchInputOptions options_;
};

TEST_F(BenchInput, JsonAndDocumentHoldWhatWasMeasured) {
  const BenchedInput benched = bench_input(options_);
  const Json json = to_json(benched);
  EXPECT_EQ(json.at("samples"), 6);
  EXPECT_EQ(json.at("height"), 12);
  EXPECT_EQ(json.at("width"), 16);
  EXPECT_EQ(json.at("pixel_type"), "uint8");
  EXPECT_EQ(json.at("input_threads"), 0);
  EXPECT_EQ(json.at("cache"), "decoded");
  EXPECT_EQ(json.at("epochs").size(), 2U);
  EXPECT_GT(json.at("epochs").at(0).at("images_per_second"), 0);
  EXPECT_GT(json.at("one_thread").at("together").at("seconds"),
            json.at("one_thread").at("decode").at("seconds"));
  EXPECT_EQ(json.at("bad_samples"), 1);
  expect_parts(json.at("bad_places").at(0).get<std::string>(), {"5.jpg"});
  const Document document = to_document(benched);
  EXPECT_EQ(document.title, benched.name + " (class folders), split train");
  ASSERT_EQ(document.sections.size(), 2U);
  EXPECT_EQ(document.sections[0].headline.find("6 images, "), 0U) << document.sections[0].headline;
  EXPECT_EQ(document.sections[1].title, "Feeder, inline, cache decoded, augment none");
  EXPECT_EQ(document.sections[1].findings.size(), 1U);
}

TEST_F(BenchInput, OptionsAreThoseOfTheFeeder) {
  options_.samples = 4;
  options_.cache = "off";
  options_.cache_type = "fp32";
  options_.augment = "hflip";
  options_.read_buffer_kb = 3;
  const InputBenchOptions options = bench_input(options_).options;
  EXPECT_EQ(options.samples, 4U);
  EXPECT_EQ(options.input.cache, CacheKind::off);
  EXPECT_EQ(options.input.cache_bytes, 0U);
  EXPECT_EQ(options.input.type, DType::f32);
  EXPECT_EQ(options.input.parallel_reads, 1);
  EXPECT_EQ(options.input.reading.buffer_bytes, 3U << 10);
}

TEST_F(BenchInput, ImpossibleRequestsAreRefused) {
  const auto expect_refusal = [&](const std::vector<std::string>& parts, const auto& change) {
    BenchInputOptions options = options_;
    change(options);
    expect_error(ErrorKind::usage, parts, [&] { bench_input(options); });
  };
  for (const char* size : {"12", "0x3", "3x-1", "12x16x3", "axb", "16385x1", ""}) {
    expect_refusal({"--size", "is not a size", "300x300"}, [&](auto& o) { o.size = size; });
  }
  expect_refusal({"4096 input threads on ", "use fewer"}, [](auto& o) { o.input_threads = 4096; });
  expect_refusal({"2 parallel reads with 0 input threads", "read 1 at once"},
                 [](auto& o) { o.parallel_reads = 2; });
  expect_refusal({"--cache-mb", "exceeds the free memory"}, [](auto& o) { o.cache_mb = 1 << 30; });
  expect_refusal({"crop12", "12 x 16 black"}, [](auto& o) { o.augment = "crop12"; });
}

}  // namespace
}  // namespace paceline
