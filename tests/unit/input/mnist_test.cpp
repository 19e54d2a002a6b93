#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "engine/core/file.h"
#include "engine/input/loading/dataset.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"
#include "tests/unit/input/idx_files.h"

namespace paceline {
namespace {

// Facts about the real set: counts, the first labels, class sizes and the mean pixel.
TEST(Mnist, TheRealSetIsWhole) {
  const DatasetPair pair = load_mnist(std::string(PACELINE_SOURCE_DIR) + "/data/mnist");
  EXPECT_EQ(pair.train.samples, 60000U);
  EXPECT_EQ(pair.test.samples, 10000U);
  EXPECT_EQ(pair.train.sample_bytes(), 784U);
  EXPECT_EQ(pair.train.images.size(), 60000U * 784);
  EXPECT_EQ(pair.test.images.size(), 10000U * 784);
  EXPECT_FALSE(pair.train.synthetic);
  EXPECT_EQ(std::vector(pair.train.labels.begin(), pair.train.labels.begin() + 10),
            (std::vector<std::int32_t>{5, 0, 4, 1, 9, 2, 1, 3, 1, 4}));
  EXPECT_EQ(std::vector(pair.test.labels.begin(), pair.test.labels.begin() + 5),
            (std::vector<std::int32_t>{7, 2, 1, 0, 4}));
  std::array<int, 10> counts{};
  for (const std::int32_t label : pair.train.labels) ++counts[static_cast<std::size_t>(label)];
  EXPECT_EQ(counts,
            (std::array<int, 10>{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949}));
  const double sum = std::accumulate(pair.train.images.begin(), pair.train.images.end(), 0.0);
  EXPECT_NEAR(sum / static_cast<double>(pair.train.images.size()), 33.318421, 1e-6);
}

class BadMnist : public testing::Test {
 protected:
  BadMnist() {
    for (const char* split : {"train", "t10k"}) write(split, 3, 3, '\1');
  }
  void write(const std::string& split, std::uint32_t images, std::uint32_t labels, char label) {
    replace_file(scratch_ / (split + "-images-idx3-ubyte"),
                 idx_header(3, {images, 2, 2}) + std::string(4 * images, 'x'));
    replace_file(scratch_ / (split + "-labels-idx1-ubyte"),
                 idx_header(1, {labels}) + std::string(labels, label));
  }
  void refuse(const std::vector<std::string>& parts) {
    expect_error(ErrorKind::input, parts, [&] { load_mnist(scratch_.path()); });
  }
  Scratch scratch_;
};

TEST_F(BadMnist, IsGoodAtFirst) {
  EXPECT_EQ(load_mnist(scratch_.path()).train.samples, 3U);
}

TEST_F(BadMnist, CountsDiffer) {
  write("train", 3, 2, '\1');
  refuse({"3 images but 2 labels", "train-images-idx3-ubyte", "train-labels-idx1-ubyte"});
}

TEST_F(BadMnist, LabelOutOfRange) {
  write("t10k", 3, 3, '\12');
  refuse({"label 10 of sample 0 is not a digit", "t10k-labels-idx1-ubyte"});
}

TEST_F(BadMnist, FilesMissingOrSwapped) {
  std::filesystem::remove(scratch_ / "t10k-images-idx3-ubyte");
  refuse({"t10k-images-idx3-ubyte[.gz] is missing", "--data"});
  std::filesystem::copy_file(scratch_ / "t10k-labels-idx1-ubyte",
                             scratch_ / "t10k-images-idx3-ubyte");
  refuse({"holds no images"});
}

TEST_F(BadMnist, SidesDiffer) {
  replace_file(scratch_ / "t10k-images-idx3-ubyte", idx_header(3, {3, 2, 1}) + std::string(6, 'x'));
  refuse({"training images have 2 x 2 pixels, but test images 2 x 1", "one distribution"});
}

TEST_F(BadMnist, NoSamples) {
  write("train", 0, 0, '\0');
  refuse({"holds no samples", "train-images-idx3-ubyte"});
}

TEST(Dataset, FolderGivenMustExist) {
  expect_error(ErrorKind::input, {"neither a folder nor", "/absent"},
               [] { find_data_folder("mnist", "/absent"); });
  expect_error(ErrorKind::input, {"data set nonsense was not found", "looked in", "--data"},
               [] { find_data_folder("nonsense", ""); });
  EXPECT_TRUE(std::filesystem::is_directory(find_data_folder("mnist", "")));
}

TEST(Dataset, LimitKeepsTheFirstSamples) {
  DatasetPair pair = synthetic_images(4, 3, 2, 10, 50, 20, 7);
  EXPECT_TRUE(pair.train.synthetic);
  EXPECT_EQ(pair.train.images.size(), 50U * 24);
  const Dataset before = pair.train;
  limit_samples(pair.train, 0);
  EXPECT_EQ(pair.train.samples, 50U);
  limit_samples(pair.train, 8);
  EXPECT_EQ(pair.train.samples, 8U);
  EXPECT_EQ(pair.train.images.size(), 8U * 24);
  EXPECT_TRUE(
      std::equal(pair.train.images.begin(), pair.train.images.end(), before.images.begin()));
  expect_error(ErrorKind::usage, {"the limit is 9 samples", "has only 8"},
               [&] { limit_samples(pair.train, 9); });
  EXPECT_EQ(synthetic_images(4, 3, 2, 10, 50, 20, 7).train.images, before.images);
  EXPECT_NE(synthetic_images(4, 3, 2, 10, 50, 20, 8).train.images, before.images);
}

}  // namespace
}  // namespace paceline
