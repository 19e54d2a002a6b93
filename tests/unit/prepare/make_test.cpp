// Made sets: read back by the readers, the same from the same seed, never half there.
#include "engine/input/prepare/make.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>
#include <map>

#include "engine/input/decode/image.h"
#include "engine/input/formats/source.h"
#include "engine/input/prepare/staged_folder.h"
#include "engine/input/prepare/tfds_writer.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> canonical_content(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream stream(entry.path(), std::ios::binary);
    files[entry.path().filename()] = {std::istreambuf_iterator<char>(stream), {}};
  }
  return files;
}

class Make : public ::testing::Test {
 protected:
  MakeOptions options(const std::string& name, std::size_t images = 12) const {
    MakeOptions made;
    made.out = scratch_ / name;
    made.images = images;
    made.size_min = 40;
    made.size_max = 60;
    made.quiet = true;
    return made;
  }
  Scratch scratch_;
};

TEST_F(Make, CassavaIsATfdsFolderThatIsRead) {
  MakeOptions o = options("c", 30);
  o.test = 7;
  o.shards = 4;
  EXPECT_EQ(make_cassava(o).images, 44U);
  const ImageSet set = open_image_set(o.out);
  EXPECT_EQ(set.name, "cassava");
  EXPECT_TRUE(set.synthetic);
  EXPECT_EQ(set.classes, (std::vector<std::string>{"cbb", "cbsd", "cgm", "cmd", "healthy"}));
  EXPECT_EQ(set.split("train")->samples(), 30U);
  EXPECT_EQ(set.split("test")->samples(), 7U);
  EXPECT_EQ(set.split("validation")->samples(), 7U);
  EXPECT_EQ(set.split("train")->files().size(), 4U);
  ImageDecoder decoder;
  Image image;
  EncodedSample sample;
  std::map<int, int> counts;
  bool sizes_vary = false;
  for (std::size_t i = 0; i < 30; ++i) {
    set.split("train")->read(i, sample);
    decoder.decode(sample.image, 3, image, [] { return "made"; });
    EXPECT_TRUE(image.width >= 40 && image.width <= 60 && image.height >= 40 && image.height <= 60);
    sizes_vary = sizes_vary || image.width != image.height;
    ++counts[sample.label];
  }
  EXPECT_TRUE(sizes_vary);
  // 30 x {466, 1443, 773, 2658, 316} / 5656 by largest remainder.
  EXPECT_EQ(counts, (std::map<int, int>{{0, 2}, {1, 8}, {2, 4}, {3, 14}, {4, 2}}));
}

TEST_F(Make, TheSameSeedMakesTheSameBytes) {
  MakeOptions one = options("one"), three = options("three"), other = options("other");
  three.threads = 3;
  other.seed = 2;
  make_cassava(one);
  make_cassava(three);
  make_cassava(other);
  EXPECT_EQ(canonical_content(one.out), canonical_content(three.out));
  EXPECT_NE(canonical_content(one.out), canonical_content(other.out));
}

TEST_F(Make, PhotographsAreOfTheRealSetsSizes) {
  MakeOptions o = options("c", 10);
  o.size_min = o.size_max = 600;
  o.test = 0;
  const Made made = make_cassava(o);
  EXPECT_GT(made.bytes / made.images, 50'000U);
  EXPECT_LT(made.bytes / made.images, 130'000U);
}

TEST_F(Make, Cifar10IsRead) {
  MakeOptions o = options("c", 50);
  make_cifar10(o);
  const ImageSet set = open_image_set(o.out);
  EXPECT_TRUE(set.synthetic);
  EXPECT_EQ(set.classes.size(), 10U);
  EXPECT_EQ(set.split("train")->samples(), 50U);
  EXPECT_EQ(set.split("test")->samples(), 10U);
  MakeOptions again = options("again", 50);
  again.threads = 3;
  make_cifar10(again);
  EXPECT_EQ(canonical_content(o.out), canonical_content(again.out));
}

// The entropy that is said is that of the letters behind each pair, as they were drawn.
TEST_F(Make, TextHasTheEntropyThatIsSaid) {
  MakeOptions o = options("text", 0);
  o.tokens = 400'000;
  const Made made = make_text(o);
  const std::map<std::string, std::string> files = canonical_content(scratch_ / "text");
  const std::string& text = files.at("train.txt");
  ASSERT_EQ(text.size(), o.tokens);
  EXPECT_EQ(files.at("val.txt").size(), o.tokens / 10);
  std::map<std::string, double> pairs, triples;
  for (std::size_t i = 2; i < text.size(); ++i) {
    ++pairs[text.substr(i - 2, 2)];
    ++triples[text.substr(i - 2, 3)];
  }
  double entropy = 0;
  for (const auto& [letters, count] : triples) {
    entropy -=
        count / static_cast<double>(text.size()) * std::log(count / pairs[letters.substr(0, 2)]);
  }
  ASSERT_TRUE(made.entropy);
  EXPECT_NEAR(entropy, *made.entropy, 0.01);
  MakeOptions again = o;
  again.out = scratch_ / "again";
  make_text(again);
  EXPECT_EQ(canonical_content(again.out), files);
}

TEST_F(Make, WhatMakesNoSetIsRefused) {
  const auto refused = [&](auto change, const std::string& part) {
    MakeOptions o = options("bad");
    change(o);
    expect_error(ErrorKind::usage, {part}, [&] { make_cassava(o); });
    EXPECT_FALSE(fs::exists(o.out));
  };
  refused([](MakeOptions& o) { o.images = 0; }, "--images");
  refused([](MakeOptions& o) { o.size_min = 70; }, "--size-min");
  refused([](MakeOptions& o) { o.size_min = 1; }, "--size-min");
  refused([](MakeOptions& o) { o.shards = 13; }, "13 shards for 12 images");
  MakeOptions o = options("bad", 3);
  expect_error(ErrorKind::usage, {"--images"}, [&] { make_set("cifar10", o); });
  expect_error(ErrorKind::usage, {"unknown data set \"casava\"", "\"cassava\"?"},
               [&] { make_set("casava", o); });
  std::ofstream(scratch_ / "file") << "x";
  o.out = scratch_ / "file";
  expect_error(ErrorKind::usage, {"not empty"}, [&] { make_cassava(o); });
}

TEST_F(Make, ShardsOfClassFolders) {
  const fs::path from = scratch_ / "from", to = scratch_ / "to";
  MakeOptions o = options("made", 6);
  make_cassava(o);
  const ImageSet made = open_image_set(o.out);
  EncodedSample sample;
  for (std::size_t i = 0; i < 6; ++i) {
    made.split("train")->read(i, sample);
    const std::string label = made.classes[static_cast<std::size_t>(sample.label)];
    for (const char* split : {"train", "test"}) {
      fs::create_directories(from / split / label);
      std::ofstream(from / split / label / (label + std::to_string(i) + ".jpg"), std::ios::binary)
          << sample.image;
    }
  }
  fs::create_directories(to);
  write_shards(from, to, "cassava", "0.1.0", "from folders", 2, true);
  const ImageSet shards = open_image_set(to);
  EXPECT_FALSE(shards.synthetic);
  EXPECT_EQ(shards.split("train")->samples(), 6U);
  EXPECT_EQ(shards.split("test")->samples(), 6U);
  std::vector<std::string> before, after;
  for (std::size_t i = 0; i < 6; ++i) {
    made.split("train")->read(i, sample);
    before.push_back(std::string(sample.image) +
                     made.classes[static_cast<std::size_t>(sample.label)]);
    shards.split("train")->read(i, sample);
    after.push_back(std::string(sample.image) +
                    shards.classes[static_cast<std::size_t>(sample.label)]);
  }
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  EXPECT_EQ(before, after);
}

TEST_F(Make, AStagedFolderIsThereWholeOrNotAtAll) {
  const fs::path out = scratch_ / "out";
  {
    StagedFolder folder(out);
    std::ofstream(folder.path() / "half") << "x";
    expect_error(ErrorKind::input, {"another paceline"}, [&] { StagedFolder second(out); });
  }
  EXPECT_EQ(scratch_.files(), 0U) << "not committed, so removed";
  fs::create_directories(out);
  StagedFolder folder(out / "");
  std::ofstream(folder.path() / "whole") << "x";
  folder.commit();
  EXPECT_EQ(canonical_content(out), (std::map<std::string, std::string>{{"whole", "x"}}));
  expect_error(ErrorKind::usage, {"not empty"}, [&] { StagedFolder again(out); });
}

TEST_F(Make, WhatAnInterruptedCallLeftIsClearedAndNothingElse) {
  const fs::path out = scratch_ / "out", partial = scratch_ / "out.partial";
  fs::create_directories(partial);
  std::ofstream(partial / "precious") << "mine";
  expect_error(ErrorKind::usage, {"out.partial", "was not written by paceline"},
               [&] { StagedFolder folder(out); });
  EXPECT_TRUE(fs::exists(partial / "precious"));
  std::ofstream(partial / ".paceline-lock") << "";
  StagedFolder folder(out);
  EXPECT_FALSE(fs::exists(partial / "precious"));
  fs::remove_all(partial);
  const fs::path elsewhere = scratch_ / "elsewhere";
  fs::create_directories(elsewhere);
  std::ofstream(elsewhere / ".paceline-lock");
  std::ofstream(elsewhere / "precious") << "mine";
  fs::create_directory_symlink(elsewhere, partial);
  expect_error(ErrorKind::usage, {"not written by paceline"}, [&] { StagedFolder folder(out); });
  EXPECT_TRUE(fs::exists(elsewhere / "precious"));
}

TEST(Workers, EveryPieceOnceAndTheFirstFailureIsThrown) {
  std::vector<std::atomic<int>> done(100);
  work_on(100, 4, [&](std::size_t i) { ++done[i]; });
  EXPECT_TRUE(std::all_of(done.begin(), done.end(), [](const auto& n) { return n == 1; }));
  std::atomic<int> calls{0};
  const auto failing = [&](std::size_t i) {
    ++calls;
    if (i == 3) throw Error(ErrorKind::input, "piece 3");
  };
  expect_error(ErrorKind::input, {"piece 3"}, [&] { work_on(1'000'000, 4, failing); });
  EXPECT_LT(calls, 1'000'000);
}

}  // namespace
}  // namespace paceline
