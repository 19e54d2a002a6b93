// Data sets in folders: what is recognised, what is read from it, and what is wrong with bad ones.
#include "engine/input/formats/source.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/core/json.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"
#include "tests/unit/input/made.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> examples(int first, int count) {
  std::vector<std::string> list;
  for (int i = first; i < first + count; ++i) {
    list.push_back(make_example("image " + std::to_string(i), i % 3));
  }
  return list;
}

EncodedSample read_sample(const SampleSource& source, std::size_t i) {
  EncodedSample sample;
  source.read(i, sample);
  return sample;
}

class SourceTest : public testing::Test {
 protected:
  const fs::path& folder() const { return scratch_.path(); }
  void write_pets() { write_tfds(folder(), {examples(0, 3), examples(3, 4)}); }
  void refuse(const std::vector<std::string>& parts, const std::string& split = "train") {
    expect_error(ErrorKind::input, parts, [&] {
      const ImageSet set = open_image_set(folder());
      const auto& source = set.split(split);
      EncodedSample sample;
      for (std::size_t i = 0; i < source->samples(); ++i) source->read(i, sample);
    });
  }

 private:
  Scratch scratch_;
};

TEST_F(SourceTest, TfdsAcrossShards) {
  write_pets();
  const ImageSet set = open_image_set(folder());
  EXPECT_EQ(set.name, "pets");
  EXPECT_EQ(set.classes, (std::vector<std::string>{"cat", "dog", "owl"}));
  const SampleSource& train = *set.split("train");
  ASSERT_EQ(train.samples(), 7U);
  for (const std::size_t i : {6, 0, 3, 2, 5}) {
    const EncodedSample sample = read_sample(train, i);
    EXPECT_EQ(sample.image, "image " + std::to_string(i));
    EXPECT_EQ(sample.label, static_cast<int>(i % 3));
    EXPECT_EQ(train.label(i), sample.label);
  }
  expect_parts(train.where(5), {"pets-train.tfrecord-00001-of-00002, record 2 at byte"});
  EXPECT_EQ(set.split("test")->samples(), 4U);
  EXPECT_EQ(train.files().size(), 2U);
}

TEST_F(SourceTest, AFileThatShrinksInUseIsNamed) {
  write_pets();
  const ImageSet set = open_image_set(folder());
  const SampleSource& train = *set.split("train");
  for (const auto& entry : fs::directory_iterator(folder())) {
    if (entry.path().string().find("tfrecord") != std::string::npos) fs::resize_file(entry, 10);
  }
  EncodedSample sample;
  expect_error(ErrorKind::input, {"became shorter while in use", "leave the files alone"},
               [&] { train.read(6, sample); });
}

TEST_F(SourceTest, TfdsInAVersionFolder) {
  write_tfds(folder() / "1.0.0", {examples(0, 3)});
  EXPECT_EQ(open_image_set(folder()).split("train")->samples(), 3U);
  write_tfds(folder() / "2.0.0", {examples(0, 3)});
  refuse({"several prepared data sets: 1.0.0, 2.0.0"});
}

TEST_F(SourceTest, TfdsOldFormWithoutClassNames) {
  write_tfds(folder(), {examples(0, 3)});
  fs::remove(folder() / "label.labels.txt");
  refuse({"names no classes", "label.labels.txt", "features.json"});
  write_file(folder() / "dataset_info.json",
             R"({"name": "pets", "supervisedKeys": {"input": "image", "output": "label"},
                 "splits": [{"name": "train", "numShards": "1", "shardLengths": [3]}]})");
  write_file(folder() / "features.json",
             R"({"content": {"label": {"content": {"num_classes": 3}}}})");
  const ImageSet set = open_image_set(folder());
  EXPECT_EQ(set.classes, (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(set.split("train")->samples(), 3U);
  write_file(folder() / "features.json",
             R"({"featuresDict": {"features": {"label": {"classLabel": {"numClasses": "4"}}}}})");
  EXPECT_EQ(open_image_set(folder()).classes.size(), 4U);
  write_file(folder() / "features.json", R"({"featuresDict": 3})");
  refuse({"how many classes", "features.json"});
}

TEST_F(SourceTest, TfdsMissingShardIsNamed) {
  write_pets();
  fs::remove(folder() / "pets-train.tfrecord-00001-of-00002");
  refuse({"shard pets-train.tfrecord-00001-of-00002 is missing", "2 shards"});
  EXPECT_EQ(open_image_set(folder()).split("test")->samples(), 4U);
  refuse({"no split \"validation\"", "test"}, "validation");
}

// Of food101, imagenette and others, which have no test split.
TEST_F(SourceTest, ValidationIsTheTestWhereThereIsNone) {
  write_pets();
  const std::string info = read_text(folder() / "dataset_info.json");
  std::string renamed = info;
  renamed.replace(renamed.find("\"test\""), 6, "\"validation\"");
  write_file(folder() / "dataset_info.json", renamed);
  fs::rename(folder() / "pets-test.tfrecord-00000-of-00001",
             folder() / "pets-validation.tfrecord-00000-of-00001");
  const ImageSet set = open_image_set(folder());
  EXPECT_EQ(set.split("test"), set.split("validation"));
  EXPECT_EQ(set.split("test")->samples(), 4U);
  EXPECT_EQ(set.split("train")->samples(), 7U);
}

// Of tf_flowers, cats_vs_dogs and others: the last fifth is the test.
TEST_F(SourceTest, TfdsWithOnlyATrainSplitIsDivided) {
  write_tfds(folder(), {examples(0, 6), examples(6, 5)});
  write_file(folder() / "dataset_info.json",
             R"({"name": "pets", "splits": [{"name": "train", "shardLengths": ["6", "5"]}]})");
  const ImageSet set = open_image_set(folder());
  const SampleSource &train = *set.split("train"), &test = *set.split("test");
  ASSERT_EQ(train.samples(), 9U);
  ASSERT_EQ(test.samples(), 2U);
  EXPECT_EQ(read_sample(train, 8).image, "image 8");
  EXPECT_EQ(read_sample(test, 0).image, "image 9");
  EXPECT_EQ(test.label(1), 10 % 3);
  expect_parts(test.where(0), {"00001-of-00002, record 3"});
  EXPECT_NE(train.hash(), test.hash());
}

TEST_F(SourceTest, TfdsCountsMustAgree) {
  write_pets();
  write_file(folder() / "pets-train.tfrecord-00001-of-00002", make_record(examples(0, 1)[0]));
  refuse({"holds 1 records", "declares 4", "pets-train.tfrecord-00001-of-00002"});
}

TEST_F(SourceTest, TfdsBehindADamagedHeaderRecordsAreLostAndCounted) {
  write_pets();
  const fs::path shard = folder() / "pets-train.tfrecord-00000-of-00002";
  std::string bytes = read_text(shard);
  const std::size_t second = make_record(examples(0, 1)[0]).size();
  const std::string where =
      "pets-train.tfrecord-00000-of-00002, record 1 at byte " + std::to_string(second);
  const auto skipping = [&] { return open_image_set(folder(), {.skip_damaged = true}); };
  EXPECT_TRUE(skipping().split("train")->lost().empty());
  bytes[second + 1] ^= 1;
  write_file(shard, bytes);
  refuse({"CRC of a record's length is wrong", where, "--on-bad-sample skip"});
  const ImageSet set = skipping();
  const SampleSource& train = *set.split("train");
  ASSERT_EQ(train.samples(), 5U);
  EXPECT_EQ(read_sample(train, 0).image, "image 0");
  EXPECT_EQ(read_sample(train, 1).image, "image 3");  // of the next shard
  ASSERT_EQ(train.lost().size(), 1U);
  EXPECT_EQ(train.lost()[0].count, 2U);
  EXPECT_EQ(train.lost()[0].text(),
            where + ": 2 records are lost (the CRC of a record's length is wrong)");
  EXPECT_TRUE(set.split("test")->lost().empty());
}

TEST_F(SourceTest, TfdsOtherLosses) {
  write_pets();
  const fs::path shard = folder() / "pets-train.tfrecord-00000-of-00002";
  const std::string whole = read_text(shard), one = make_record(examples(0, 1)[0]);
  const auto losses = [&](const std::string& bytes) {
    write_file(shard, bytes);
    return open_image_set(folder(), {.skip_damaged = true}).split("train")->lost();
  };
  const auto ends_early = losses(one);
  ASSERT_EQ(ends_early.size(), 1U);
  EXPECT_EQ(ends_early[0].count, 2U);
  expect_parts(ends_early[0].text(), {"record 1 at byte " + std::to_string(one.size())});
  const auto goes_on = losses(whole + "garbage behind the last one");
  ASSERT_EQ(goes_on.size(), 1U);
  expect_parts(goes_on[0].text(), {"the rest of the shard is lost"});
  expect_error(ErrorKind::input, {"holds 4 records", "declares 3"}, [&] { losses(whole + one); });
  expect_error(ErrorKind::input, {"git-lfs pointer"},
               [&] { losses("version https://git-lfs.github.com/spec/v1\n"); });
}

TEST_F(SourceTest, TfdsBadDescriptions) {
  write_pets();
  const auto expect_refused = [&](const std::string& text, const std::vector<std::string>& parts) {
    write_file(folder() / "dataset_info.json", text);
    refuse(parts);
  };
  expect_refused("{", {"dataset_info.json"});
  expect_refused("[]", {"names no data set"});
  expect_refused(R"({"name": "pets"})", {"declares no splits"});
  expect_refused(R"({"name": "pets", "splits": [{"name": "train"}]})",
                 {"shardLengths", "dataset_info.json:1"});
  expect_refused(R"({"name": "pets", "splits": [{"name": "train", "shardLengths": ["x"]}]})",
                 {"not a number"});
  expect_refused(R"({"name": "pets", "splits": [{"name": "train", "shardLengths": ["7"],
               "filepathTemplate": "../{SPLIT}"}]})",
                 {"another folder"});
}

TEST_F(SourceTest, BadExamplesAreNamedWithShardRecordAndOffset) {
  const std::string where = "pets-train.tfrecord-00000-of-00001, record 1 at byte";
  const std::string good = make_example("image", 0);
  const auto expect_refused = [&](const std::string& bad, const std::vector<std::string>& parts) {
    write_tfds(folder(), {{good, bad}});
    refuse(parts);
  };
  expect_refused(make_example("image", 3), {"label 3 is out of range", "3 classes", where});
  expect_refused(make_example("image", -1), {"label -1 is out of range", where});
  expect_refused(make_example("image", 1, "picture"),
                 {"has no image", "image/filename, label, picture", where});
  expect_refused(make_example("image", 1, "image", "class"), {"has no label", where});
  expect_refused("\xff\xff\xff", {"not a tf.train.Example", where});
  expect_refused("", {"no feature at all", where});
}

TEST_F(SourceTest, ClassFoldersAreSplitByName) {
  for (int i = 0; i < 10; ++i) {
    write_file(folder() / "b" / (std::to_string(i) + ".jpg"), "b" + std::to_string(i));
  }
  write_file(folder() / "a" / "one.PNG", "a");
  write_file(folder() / "a" / "notes.txt", "not an image");
  const ImageSet set = open_image_set(folder());
  EXPECT_EQ(set.format, "class folders");
  EXPECT_EQ(set.classes, (std::vector<std::string>{"a", "b"}));
  const SampleSource& train = *set.split("train");
  ASSERT_EQ(train.samples(), 9U);
  EXPECT_EQ(read_sample(train, 0).image, "a");
  EXPECT_EQ(read_sample(train, 8).image, "b7");
  EXPECT_EQ(read_sample(train, 8).label, 1);
  const SampleSource& test = *set.split("test");
  ASSERT_EQ(test.samples(), 2U);
  EXPECT_EQ(read_sample(test, 0).image, "b8");
  EXPECT_TRUE(test.where(0).ends_with("/b/8.jpg"));
}

TEST_F(SourceTest, ALinkThatLeadsBackIsNoClass) {
  write_file(folder() / "a" / "1.jpg", "1");
  write_file(folder() / "b" / "1.jpg", "2");
  fs::create_directory_symlink(".", folder() / "self");
  fs::create_directory_symlink(".", folder() / "a" / "self");
  const Scratch elsewhere;
  write_file(elsewhere.path() / "1.jpg", "3");
  fs::create_directory_symlink(elsewhere.path(), folder() / "c");
  EXPECT_EQ(open_image_set(folder()).classes, (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(SourceTest, ClassFoldersBelowSplits) {
  write_file(folder() / "train" / "a" / "1.jpg", "1");
  write_file(folder() / "train" / "b" / "2.jpg", "2");
  write_file(folder() / "validation" / "b" / "3.jpg", "3");
  const ImageSet set = open_image_set(folder());
  EXPECT_EQ(set.split("train")->samples(), 2U);
  EXPECT_EQ(read_sample(*set.split("validation"), 0).label, 1);
  EXPECT_FALSE(set.splits.contains("test"));
  write_file(folder() / "validation" / "c" / "4.jpg", "4");
  refuse({"a class that train/ does not have"});
}

TEST_F(SourceTest, LabelsCsv) {
  std::string lines = "path,label,class\n";
  for (int i = 0; i < 5; ++i) {
    const std::string file = "x/" + std::to_string(i) + ".jpg";
    write_file(folder() / file, "image " + std::to_string(i));
    lines += "\"" + file + "\",1,owl\r\n";
  }
  write_file(folder() / "labels.csv", lines);
  const ImageSet set = open_image_set(folder());
  EXPECT_EQ(set.classes, (std::vector<std::string>{"0", "owl"}));
  EXPECT_EQ(set.split("train")->samples(), 4U);
  EXPECT_EQ(read_sample(*set.split("test"), 0).image, "image 4");
  write_file(folder() / "labels.csv", "path,label\nx/1.jpg,owl\nx/2.jpg,cat\n");
  const ImageSet named = open_image_set(folder());
  write_file(folder() / "labels.csv", "\xef\xbb\xbfpath,label\r\nx/1.jpg,owl\r\n");
  EXPECT_EQ(open_image_set(folder()).classes, std::vector<std::string>{"owl"});
  EXPECT_EQ(named.classes, (std::vector<std::string>{"cat", "owl"}));
}

TEST_F(SourceTest, BadLabelsCsv) {
  const auto expect_refused = [&](const std::string& text, const std::vector<std::string>& parts) {
    write_file(folder() / "labels.csv", text);
    refuse(parts);
  };
  expect_refused("file,label\n", {"no column \"path\"", "labels.csv:1"});
  expect_refused("path,label\n", {"lists no images"});
  expect_refused("path,label\na.jpg,0\nb.jpg\n", {"too few columns", "labels.csv:3"});
  expect_refused("path,label\na.jpg,0\nb.jpg,-1\n", {"out of range", "labels.csv:3"});
  expect_refused("path,label\na.jpg,0\nb.jpg,9999999999\n", {"out of range", "labels.csv:3"});
  expect_refused("path,label\na.jpg,1048576\n", {"out of range", "labels.csv:2"});
  std::string classes = "path,label\n";
  for (int i = 0; i <= 1 << 20; ++i)
    classes += "a" + std::to_string(i) + ",c" + std::to_string(i) + "\n";
  expect_refused(classes, {"too many classes", "labels.csv:1048578"});
  expect_refused("path,label\na.jpg,cat\nb.jpg,0\n",
                 {"label \"0\" is a number, and those before are names", "labels.csv:3"});
  expect_refused("path,label\na.jpg,0\nb.jpg,cat\n",
                 {"label \"cat\" is a name, and those before are numbers", "labels.csv:3"});
  expect_refused("path,label\na.jpg,99999999999999999999\n", {"out of range", "labels.csv:2"});
  expect_refused("path,label\na.jpg,0\nx/../a.jpg,1\n",
                 {"\"x/../a.jpg\" has label \"1\", and \"0\" before", "labels.csv:3"});
  expect_refused(std::string("path,label\na.jpg\0.txt,0\n", 25),
                 {"has a path with a zero byte", "labels.csv:2"});
  expect_refused("path,label\n../a.jpg,0\n", {"leads out of the folder", "labels.csv:2"});
  expect_refused("path,label\na.jpg,0\n", {"cannot be read", "a.jpg"});
}

std::string cifar_record(char label, char red, char green, char blue) {
  return label + std::string(1024, red) + std::string(1024, green) + std::string(1024, blue);
}

TEST_F(SourceTest, Cifar10) {
  write_file(folder() / "data_batch_1.bin", cifar_record(3, 1, 2, 3) + cifar_record(9, 4, 5, 6));
  write_file(folder() / "data_batch_2.bin", cifar_record(0, 7, 8, 9));
  for (const int k : {3, 4, 5}) {
    write_file(folder() / ("data_batch_" + std::to_string(k) + ".bin"), cifar_record(1, 0, 0, 0));
  }
  write_file(folder() / "test_batch.bin", cifar_record(1, 1, 1, 1));
  const ImageSet set = open_image_set(folder());
  EXPECT_EQ(set.classes[3], "cat");
  const SampleSource& train = *set.split("train");
  ASSERT_EQ(train.samples(), 6U);
  const EncodedSample sample = read_sample(train, 2);
  EXPECT_EQ(sample.height, 32);
  EXPECT_EQ(sample.image.size(), 3072U);
  EXPECT_EQ(sample.image.substr(0, 6), "\x07\x08\x09\x07\x08\x09");
  EXPECT_EQ(read_sample(train, 1).label, 9);
  EXPECT_EQ(train.where(1), "data_batch_1.bin, record 1 at byte 3073");
}

TEST_F(SourceTest, BadCifar10) {
  for (const int k : {1, 3, 5}) {
    write_file(folder() / ("data_batch_" + std::to_string(k) + ".bin"), cifar_record(10, 1, 2, 3));
  }
  refuse({"data_batch_2.bin, data_batch_4.bin are missing"});
  refuse({"test_batch.bin is missing"}, "test");
  write_file(folder() / "data_batch_4.bin", cifar_record(1, 1, 2, 3));
  refuse({"data_batch_2.bin is missing"});
  write_file(folder() / "data_batch_2.bin", cifar_record(1, 1, 2, 3));
  refuse({"label 10 is out of range", "data_batch_1.bin, record 0 at byte 0"});
  write_file(folder() / "data_batch_6.bin", cifar_record(1, 1, 2, 3));
  refuse({"not one of CIFAR-10's 5 batches", "data_batch_6.bin"});
  fs::remove(folder() / "data_batch_6.bin");
  write_file(folder() / "data_batch_2.bin", cifar_record(1, 1, 2, 3).substr(1));
  refuse({"cut short", "data_batch_2.bin"});
}

TEST_F(SourceTest, ReportsWhatItLookedFor) {
  refuse({"holds no data set", "dataset_info.json", "data_batch_1.bin", "labels.csv", "train/"});
  expect_error(ErrorKind::input, {"not a folder"}, [] { open_image_set("no-such-folder"); });
}

TEST_F(SourceTest, HashesAreOfTheContentAndNotOfThePlace) {
  std::set<std::string> hashes;
  const std::vector<std::string> same = examples(0, 3);  // its features come in any order
  for (const char* place : {"here", "there"}) {
    write_tfds(folder() / place / "tfds", {same});
    write_file(folder() / place / "files" / "a" / "1.jpg", "1");
    hashes.insert(open_image_set(folder() / place / "tfds").hash());
    hashes.insert(open_image_set(folder() / place / "files").hash());
  }
  EXPECT_EQ(hashes.size(), 2U);
  write_file(folder() / "here" / "files" / "a" / "1.jpg", "2");
  write_tfds(folder() / "here" / "tfds", {examples(1, 3)});
  hashes.insert(open_image_set(folder() / "here" / "tfds").hash());
  hashes.insert(open_image_set(folder() / "here" / "files").hash());
  EXPECT_EQ(hashes.size(), 4U);
}

// $PACELINE_TEST_DATA/formats/tfds-mnist: one real shard, 10,000 PNG images of 28 x 28.
TEST(RealSource, TfdsMnistTestShard) {
  const char* data = std::getenv("PACELINE_TEST_DATA");
  if (!data) GTEST_SKIP() << "PACELINE_TEST_DATA names no folder of shared samples";
  const ImageSet set = open_image_set(fs::path(data) / "formats/tfds-mnist");
  const SampleSource& test = *set.split("test");
  ASSERT_EQ(test.samples(), 10000U);
  std::vector<int> counts(10);
  EncodedSample sample;
  for (std::size_t i = 0; i < test.samples(); ++i) {
    test.read(i, sample);
    ++counts[static_cast<std::size_t>(sample.label)];
    ASSERT_TRUE(sample.image.starts_with("\x89PNG")) << i;
  }
  EXPECT_EQ(counts, (std::vector<int>{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009}));
  expect_error(ErrorKind::input, {"mnist-train.tfrecord-00000-of-00001 is missing"},
               [&] { set.split("train"); });
}

}  // namespace
}  // namespace paceline
