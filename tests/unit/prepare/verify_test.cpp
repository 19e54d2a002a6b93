// Whole sets pass; damage is found and named with shard, record and byte.
#include "engine/input/prepare/verify.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/input/formats/tfrecord.h"
#include "engine/input/prepare/make.h"
#include "engine/input/prepare/tfds_writer.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

class Verify : public ::testing::Test {
 protected:
  Verify() : folder_(scratch_ / "set") {
    MakeOptions made;
    made.out = folder_;
    made.images = 10;
    made.test = 4;
    made.shards = 2;
    made.size_min = 30;
    made.size_max = 50;
    made.quiet = true;
    make_cassava(made);
  }

  fs::path shard(int index) const {
    return folder_ / ("cassava-train.tfrecord-0000" + std::to_string(index) + "-of-00002");
  }
  void flip_byte(const fs::path& file, std::size_t at) const {
    std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
    stream.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(byte);
  }
  void expect_problem(const Verified& verified, const std::vector<std::string>& parts) const {
    ASSERT_EQ(verified.problems.size(), 1U);
    for (const std::string& part : parts) {
      EXPECT_NE(verified.problems[0].find(part), std::string::npos)
          << part << " is not in: " << verified.problems[0];
    }
  }

  Scratch scratch_;
  fs::path folder_;
};

TEST_F(Verify, AWholeSet) {
  for (const int threads : {1, 3}) {
    const Verified v = verify_folder(folder_, threads, true);
    EXPECT_TRUE(v.whole());
    EXPECT_TRUE(v.synthetic);
    EXPECT_EQ(v.images, 18U);
    ASSERT_EQ(v.splits.size(), 3U);
    EXPECT_EQ(v.splits[1].name, "train");
    EXPECT_EQ(v.splits[1].class_images, (std::vector<std::size_t>{1, 2, 1, 5, 1}));
    EXPECT_GE(v.least_side, 30);
    EXPECT_LE(v.most_side, 50);
    EXPECT_GE(v.median_pixels, 900U);
  }
}

TEST_F(Verify, OneBitInAnImage) {
  flip_byte(shard(1), fs::file_size(shard(1)) - 100);
  const Verified v = verify_folder(folder_, 2, true);
  EXPECT_EQ(v.images, 17U);
  EXPECT_EQ(v.splits[1].bad, 1U);
  expect_problem(v, {"train: ", "CRC", "cassava-train.tfrecord-00001-of-00002, record 4 at byte"});
}

TEST_F(Verify, AShardCutShortOrMissing) {
  fs::resize_file(shard(0), fs::file_size(shard(0)) - 10);
  expect_problem(verify_folder(folder_, 1, true), {"cut short", "00000-of-00002"});
  fs::remove(shard(0));
  const Verified v = verify_folder(folder_, 1, true);
  expect_problem(v, {"cassava-train.tfrecord-00000-of-00002 is missing"});
  EXPECT_EQ(v.images, 8U) << "the other splits are checked all the same";
}

TEST_F(Verify, CountsThatDifferFromTheDeclaredOnes) {
  TfRecordWriter writer(shard(1));
  writer.close();
  expect_problem(verify_folder(folder_, 1, true), {"0 records", "declares 5"});
}

TEST_F(Verify, AnImageThatIsNone) {
  const fs::path other = scratch_ / "other";
  fs::create_directories(other);
  TfdsWriter writer(other, "leaves", {"a", "b"});
  writer.write_split("train", 3, 1, 1, [](std::size_t i) {
    return WrittenSample{"<html>not a photograph</html>", "x.jpg", static_cast<int>(i % 2)};
  });
  writer.finish("1.0.0", "bad ones");
  const Verified v = verify_folder(other, 1, true);
  EXPECT_EQ(v.images, 0U);
  ASSERT_EQ(v.problems.size(), 3U);
  expect_parts(v.problems[0], {"leaves-train.tfrecord-00000-of-00001, record 0"});
}

TEST_F(Verify, ReportsForPeopleAndPrograms) {
  const Verified whole = verify_folder(folder_, 1, true);
  const std::string text = to_text(whole);
  expect_parts(text, {"cassava (", ", synthetic)\n", "  train      10 images: cbb 1, cbsd 2, ",
                      "\nwhole: 18 good images of 5 classes, sides of "});
  const Json json = to_json(whole);
  EXPECT_EQ(json.at("whole"), true);
  EXPECT_EQ(json.at("images"), 18);
  EXPECT_EQ(json.at("splits").at(1).at("class_images").at("cbsd"), 2);
  Verified bad;
  bad.problems.assign(25, "a\nb");
  bad.more_problems = 3;
  const std::string wrong = to_text(bad);
  EXPECT_EQ(wrong.find("  wrong: a b\n"), 0U) << wrong;
  expect_parts(wrong, {"  and 8 more (--json has 25)\n28 wrong: no good image\n"});
  EXPECT_EQ(to_json(bad).at("more_problems"), 3);
}

TEST_F(Verify, NoDataSetIsAnError) {
  expect_error(ErrorKind::input, {"no-such", "not a folder"},
               [&] { verify_folder(folder_ / "no-such", 1, true); });
  expect_error(ErrorKind::input, {"not a folder", "nowhere"},
               [&] { verify_folder(scratch_ / "nowhere", 1, true); });
  fs::create_directories(scratch_ / "empty");
  expect_error(ErrorKind::input, {"no data set", "empty"},
               [&] { verify_folder(scratch_ / "empty", 1, true); });
}

TEST(VerifyMnist, TheSetThatShipsHere) {
  const Verified v = verify_folder(PACELINE_SOURCE_DIR "/data/mnist", 1, true);
  EXPECT_TRUE(v.whole());
  EXPECT_EQ(v.images, 70000U);
  EXPECT_EQ(v.splits[1].class_images[1], 1135U);
}

TEST(TfRecordWriter, WhatIsWrittenIsRead) {
  const Scratch scratch;
  const fs::path file = scratch / "r";
  TfRecordWriter writer(file);
  writer.write("first");
  writer.write("");
  writer.close();
  const TfRecordFile read(file);
  ASSERT_EQ(read.records(), 2U);
  std::string data;
  read.read(0, data);
  EXPECT_EQ(data, "first");
  EXPECT_EQ(writer.bytes(), 5U);
  expect_error(ErrorKind::input, {"cannot be written", "no/such"},
               [] { TfRecordWriter nowhere("no/such"); });
}

}  // namespace
}  // namespace paceline
