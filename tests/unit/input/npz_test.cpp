// Keras' mnist.npz: what is read, and what is wrong with files that are none.
#include <gtest/gtest.h>

#include "engine/core/file.h"
#include "engine/input/formats/formats.h"
#include "engine/input/loading/dataset.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"
#include "tests/unit/input/npz_files.h"

namespace paceline {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

std::string bytes_from(int first, int count) {
  std::string bytes;
  for (int i = first; i < first + count; ++i) bytes += static_cast<char>(i);
  return bytes;
}

Files mnist() {
  return {{"x_test.npy", make_npy("(2, 3, 2)", bytes_from(200, 12))},
          {"x_train.npy", make_npy("(3, 3, 2)", bytes_from(100, 18))},
          {"y_train.npy", make_npy("(3,)", bytes_from(5, 3))},
          {"y_test.npy", make_npy("(2,)", bytes_from(1, 2))}};
}

class Npz : public testing::Test {
 protected:
  void write(const std::string& bytes) { replace_file(scratch_ / "mnist.npz", bytes); }
  void refuse(const std::string& bytes, const std::vector<std::string>& parts) {
    write(bytes);
    expect_error(ErrorKind::input, parts, [&] { load_mnist(scratch_.path()); });
  }
  void refuse_array(const std::string& npy, const std::vector<std::string>& parts) {
    Files files = mnist();
    files[1].second = npy;
    refuse(make_zip(files, true), parts);
  }
  Scratch scratch_;
};

TEST_F(Npz, IsReadAsSavezAndSavezCompressedWriteIt) {
  for (const bool deflated : {false, true}) {
    write(make_zip(mnist(), deflated));
    const DatasetPair pair = load_mnist(scratch_.path());
    EXPECT_EQ(pair.train.samples, 3U);
    EXPECT_EQ(pair.train.height, 3);
    EXPECT_EQ(pair.train.width, 2);
    EXPECT_EQ(pair.train.labels, (std::vector<std::int32_t>{5, 6, 7}));
    EXPECT_EQ(pair.train.images[17], 117);
    EXPECT_EQ(pair.test.samples, 2U);
    EXPECT_EQ(pair.test.images[0], 200);
    EXPECT_EQ(pair.hash, mnist_hash(scratch_.path()));
    EXPECT_EQ(mnist_files(scratch_.path()).size(), 1U);
  }
}

// Python takes a dictionary without its last comma, and so do others who write one.
TEST_F(Npz, AHeaderNeedsNoLastComma) {
  Files files = mnist();
  for (auto& [name, npy] : files) {
    const std::string shape =
        npy.substr(npy.find("'shape'"), npy.find(')') + 1 - npy.find("'shape'"));
    const std::string text = "{" + shape + ", 'descr': '|u1', 'fortran_order': False}";
    npy.replace(10, text.size(), text);
    npy.replace(10 + text.size(), npy.find('\n') - 10 - text.size(),
                std::string(npy.find('\n') - 10 - text.size(), ' '));
  }
  write(make_zip(files, true));
  EXPECT_EQ(load_mnist(scratch_.path()).train.samples, 3U);
}

TEST_F(Npz, ABombIsRefused) {
  refuse_array(make_npy("(40000, 1000, 1)", std::string(40'000'000, '\0')),
               {"would unpack to", "over 100 times its size", "array x_train"});
}

// Before memory is asked for.
TEST_F(Npz, ASizeThatNoArrayHasIsRefused) {
  std::string zip = make_zip(mnist(), true);
  const std::string name = "x_train.npy", size = "\xf0\xff\xff\xff";
  zip.replace(zip.find(name) + name.size() + 4, 4, size);
  zip.replace(zip.rfind(name) - 46 + 24, 4, size);  // in the list at the end
  refuse(zip, {"declares an absurd size", "array x_train"});
}

TEST_F(Npz, OtherFilesAreNamed) {
  refuse("", {"is not a NumPy archive", "mnist.npz"});
  refuse("<!DOCTYPE html><html>", {"a web page", "download"});
  refuse("version https://git-lfs.github.com/spec/v1\n", {"git-lfs pointer"});
  refuse(make_zip(mnist(), true).substr(0, 300), {"cut short", "mnist.npz"});
  refuse(make_zip({{"x_train.npy", "x"}}, true), {"is not a NumPy array", "array x_train"});
  refuse(make_zip({{"arr_0.npy", "x"}}, true), {"has no array x_train", "Keras"});
}

TEST_F(Npz, OtherArraysAreNamed) {
  refuse_array(make_npy("(3, 3, 2)", bytes_from(0, 18), "<f4"), {"type '<f4'", "x_train", "uint8"});
  refuse_array(make_npy("(3, 3, 2)", bytes_from(0, 18), "|u1", "True"), {"Fortran", "x_train"});
  refuse_array(make_npy("(3, 3, 2)", bytes_from(0, 17)), {"has 17 bytes", "(3, 3, 2)"});
  refuse_array(make_npy("(3, 3, 2, 1)", bytes_from(0, 18)), {"absurd shape"});
  refuse_array(make_npy("(99999999, 99999999)", bytes_from(0, 18)), {"absurd shape"});
  refuse_array(make_npy("5", bytes_from(0, 5)), {"has no shape", "x_train"});
  refuse_array(make_npy("(3, 6)", bytes_from(0, 18)), {"no images", "x_train"});
  refuse_array(make_npy("(2, 3, 3)", bytes_from(0, 18)), {"2 images but 3 labels", "x_train"});
  refuse_array(make_npy("(3, 2, 3)", bytes_from(0, 18)), {"2 x 3 pixels, but test images 3 x 2"});
  Files files = mnist();
  files[2].second = make_npy("(3,)", bytes_from(9, 3));
  refuse(make_zip(files, true), {"label 10 of sample 1 is not a digit", "y_train"});
}

// The checksums cover all content, so what is read is right or is refused.
TEST_F(Npz, NoCutAndNoFlippedByteGoesUnnoticed) {
  for (const bool deflated : {false, true}) {
    const std::string whole = make_zip(mnist(), deflated);
    const auto arrays = [](const std::string& bytes) {
      const NpzFile npz(bytes, "test.npz");
      std::vector<std::vector<std::uint8_t>> all;
      for (const char* name : {"x_train", "y_train", "x_test", "y_test"}) {
        all.push_back(npz.array(name).elements);
      }
      return all;
    };
    const auto expected = arrays(whole);
    std::size_t refused = 0;
    const auto try_bytes = [&](const std::string& bytes) {
      try {
        EXPECT_EQ(arrays(bytes), expected);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
        ++refused;
      }
    };
    for (std::size_t size = 0; size < whole.size(); ++size) try_bytes(whole.substr(0, size));
    EXPECT_GT(refused, whole.size() - 3);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const char flip : {'\x01', '\xff'}) {
        std::string bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ flip);
        try_bytes(bytes);
      }
    }
  }
}

}  // namespace
}  // namespace paceline
