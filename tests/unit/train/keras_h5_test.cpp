// Keras' HDF5 layout, in files made here with HDF5 itself.
#include <gtest/gtest.h>
#include <hdf5.h>

#include "engine/train/weights.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

class KerasH5 : public ::testing::Test {
 protected:
  KerasH5() : path_(scratch_ / "w.h5") {
    file_ = H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  }
  ~KerasH5() override { close(); }

  void close() {
    if (file_ >= 0) H5Fclose(file_);
    file_ = -1;
  }

  // Groups on the way are made.
  void put(const std::string& name, const std::vector<hsize_t>& shape, hid_t type,
           const std::vector<float>& values) const {
    const hid_t links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t set = H5Dcreate2(file_, name.c_str(), type, space, links, H5P_DEFAULT, H5P_DEFAULT);
    ASSERT_GE(set, 0) << name;
    if (!values.empty()) {
      H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    }
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(links);
  }

  // Of one dimension, without values.
  template <typename Properties>
  void declare(const char* name, hsize_t extent, Properties set_properties) const {
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    set_properties(properties);
    const hid_t space = H5Screate_simple(1, &extent, nullptr);
    const hid_t set =
        H5Dcreate2(file_, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    ASSERT_GE(set, 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(properties);
  }

  void expect_bad(const std::string& part) {
    close();
    expect_error(ErrorKind::input, {part, "w.h5"}, [&] { read_weights(path_); });
  }

  Scratch scratch_;
  fs::path path_;
  hid_t file_ = -1;
};

TEST_F(KerasH5, NotopLayout) {
  put("conv1_conv/conv1_conv/kernel:0", {1, 1, 2, 3}, H5T_IEEE_F32LE, {1, 2, 3, 4, 5, 6});
  put("conv1_conv/conv1_conv/bias:0", {3}, H5T_IEEE_F64BE, {7, 8, 9});
  put("top_level_model_weights/count", {1}, H5T_STD_I32LE, {1});
  close();
  try_weights(path_);
  const auto tensors = read_weights(path_);
  ASSERT_EQ(tensors.size(), 2U) << "integers are no weights";
  EXPECT_EQ(tensors[0].name, "conv1_conv/conv1_conv/bias:0");
  EXPECT_EQ(tensors[0].values, (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(tensors[1].shape, (std::vector<int>{1, 1, 2, 3}));
  EXPECT_EQ(tensors[1].values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST_F(KerasH5, OptimizersOfWholeModelsAreSkipped) {
  put("model_weights/dense/dense/kernel:0", {1, 2}, H5T_IEEE_F32LE, {1, 2});
  put("optimizer_weights/Adam/dense/kernel/m:0", {1, 2}, H5T_IEEE_F32LE, {1, 2});
  close();
  ASSERT_EQ(read_weights(path_).size(), 1U);
}

TEST_F(KerasH5, AbsurdSizesAreRefusedBeforeTheyAreAllocated) {
  declare("a", hsize_t{1} << 50, [](hid_t p) {
    const hsize_t chunk[] = {1024};
    H5Pset_chunk(p, 1, chunk);
  });
  expect_bad("too large at /a");
}

TEST_F(KerasH5, SizesThatTheFileDoesNotHoldAreRefused) {
  declare("a", 1 << 28, [](hid_t) {});
  expect_bad("declares more values than it holds at /a");
}

TEST_F(KerasH5, ValuesInOtherFilesAreNotRead) {
  declare("a", 4, [](hid_t p) { H5Pset_external(p, "/etc/passwd", 0, 16); });
  expect_bad("keeps values in another file at /a");
}

TEST_F(KerasH5, ChunksAreRefused) {
  declare("a", 4, [](hid_t p) {
    const hsize_t chunk[] = {4};
    H5Pset_chunk(p, 1, chunk);
    H5Pset_deflate(p, 6);
  });
  expect_bad("chunked values are not supported, at /a");
}

TEST_F(KerasH5, LoopsAndLinksToOtherFiles) {
  put("a/b", {1}, H5T_IEEE_F32LE, {1});
  H5Lcreate_external("/etc/passwd", "/x", file_, "elsewhere", H5P_DEFAULT, H5P_DEFAULT);
  close();
  EXPECT_EQ(read_weights(path_).size(), 1U);
  file_ = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Lcreate_hard(file_, "/a", file_, "/a/self", H5P_DEFAULT, H5P_DEFAULT);
  expect_bad("damaged at group");
}

TEST_F(KerasH5, EveryCutIsAnError) {
  put("conv/conv/kernel:0", {40, 40}, H5T_IEEE_F32LE, std::vector<float>(1600, 1));
  close();
  const std::string whole = file_text(path_);
  for (std::size_t size = 8; size < whole.size(); size += 97) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << whole.substr(0, size);
    EXPECT_THROW(read_weights(path_), Error) << size;
  }
}

// Structure that is damaged makes HDF5 1.10.8 itself read at address 0.
TEST(KerasH5Trial, AFileThatBreaksHdf5IsRefusedInOneLine) {
  const std::string file = PACELINE_SOURCE_DIR "/tests/data/breaks-hdf5-1.10.h5";
  expect_error(ErrorKind::input, {"is damaged", file}, [&] { try_weights(file); });
}

TEST(KerasH5Samples, FilesThatKerasWrote) {
  const char* data = std::getenv("PACELINE_TEST_DATA");
  if (!data) GTEST_SKIP() << "PACELINE_TEST_DATA names no folder of samples";
  const fs::path folder = fs::path(data) / "formats/keras-h5";
  if (!fs::exists(folder)) GTEST_SKIP() << "no formats/keras-h5 there";
  EXPECT_EQ(read_weights(folder / "KERAS_conv2d_model_weights.h5").size(), 4U);
  EXPECT_EQ(read_weights(folder / "KERAS_3layer_batch_norm_weights.h5").size(), 24U);
  const auto whole = read_weights(folder / "pretrainedResnet.h5");
  for (const NamedTensor& tensor : whole) {
    EXPECT_TRUE(tensor.name.starts_with("model_weights/")) << tensor.name;
  }
  const auto kernel = std::find_if(whole.begin(), whole.end(), [](const NamedTensor& tensor) {
    return tensor.name == "model_weights/conv2d/conv2d/kernel:0";
  });
  ASSERT_NE(kernel, whole.end());
  EXPECT_EQ(kernel->shape, (std::vector<int>{3, 3, 3, 16}));
}

}  // namespace
}  // namespace paceline
