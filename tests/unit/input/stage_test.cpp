#include <gtest/gtest.h>

#include <set>

#include "engine/core/json.h"
#include "engine/input/loading/dataset.h"
#include "tests/support/expect_error.h"
#include "tests/support/on_threads.h"
#include "tests/support/scratch.h"
#include "tests/unit/input/made.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

class Stage : public testing::Test {
 protected:
  Stage() {
    write_file(data_ / "a" / "1.jpg", "one");
    write_file(data_ / "b" / "2.jpg", std::string(3 << 20, 'x'));
    write_file(data_ / ".hidden", "no");
  }
  static bool is_whole(const fs::path& folder) {
    return read_text(folder / "a" / "1.jpg") == "one" &&
           read_text(folder / "b" / "2.jpg") == std::string(3 << 20, 'x') &&
           !fs::exists(folder / ".hidden");
  }
  std::size_t folders() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(into_)) count += entry.is_directory();
    return count;
  }

  Scratch scratch_;
  fs::path data_ = scratch_ / "pets", into_ = scratch_ / "fast" / "deep";
};

TEST_F(Stage, CopiesOnceAndFindsItThen) {
  const StagedData first = stage_data(data_, into_, true);
  EXPECT_TRUE(first.copied);
  EXPECT_TRUE(is_whole(first.folder));
  EXPECT_EQ(first.bytes, (3U << 20) + 3);
  EXPECT_TRUE(first.folder.filename().string().starts_with("pets-"));
  const StagedData second = stage_data(data_, into_, true);
  EXPECT_FALSE(second.copied);
  EXPECT_EQ(second.folder, first.folder);
}

// Links may lead anywhere, to loops and to what is nobody's business; samples behind them are
// the set's.
TEST_F(Stage, OnlyWhatBelongsToTheSetIsCopied) {
  const fs::path other = scratch_ / "other";
  write_file(other / "deep" / "id_rsa", "private");
  write_file(other / "3.jpg", "three");
  write_file(data_ / "a" / "notes.txt", "mine");
  fs::create_directory_symlink(other, data_ / "c");
  fs::create_directory_symlink(".", data_ / "self");
  fs::create_directory_symlink("..", data_ / "a" / "up");
  const fs::path copy = stage_data(data_, into_, true).folder;
  std::set<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(copy)) {
    const std::string name = entry.path().lexically_relative(copy).string();
    if (entry.is_regular_file() && !name.starts_with(".")) files.insert(name);
  }
  EXPECT_EQ(files, (std::set<std::string>{"a/1.jpg", "b/2.jpg", "c/3.jpg"}));
}

TEST_F(Stage, MnistIsItsFourFiles) {
  const fs::path mnist = scratch_ / "digits";
  write_file(mnist / "train-images-idx3-ubyte.gz", "1");
  write_file(mnist / "t10k-labels-idx1-ubyte", "2");
  write_file(mnist / "thesis.pdf", "3");
  EXPECT_EQ(stage_data(mnist, into_, true).bytes, 2U);
}

TEST_F(Stage, AChangedSetIsAnotherCopy) {
  const StagedData first = stage_data(data_, into_, true);
  write_file(data_ / "a" / "2.jpg", "two");
  const StagedData second = stage_data(data_, into_, true);
  EXPECT_TRUE(second.copied);
  EXPECT_NE(second.folder, first.folder);
}

TEST_F(Stage, ManyAtOnceMakeOneCopy) {
  std::vector<StagedData> staged(6);
  on_threads(staged.size(), [&](std::size_t i) { staged[i] = stage_data(data_, into_, true); });
  int copied = 0;
  for (const StagedData& mine : staged) {
    copied += mine.copied;
    EXPECT_TRUE(is_whole(mine.folder));
  }
  EXPECT_EQ(copied, 1);
  EXPECT_EQ(folders(), 1U);
}

TEST_F(Stage, WhatAKilledJobLeftIsCleared) {
  const fs::path target = stage_data(data_, into_, true).folder;
  const fs::path half = into_ / ("." + target.filename().string() + ".tmp");
  fs::rename(target, half);
  fs::remove(half / "b" / "2.jpg");
  const StagedData again = stage_data(data_, into_, true);
  EXPECT_TRUE(again.copied);
  EXPECT_TRUE(is_whole(again.folder));
  EXPECT_EQ(folders(), 1U);
}

TEST_F(Stage, AChangedCopyIsRefused) {
  const fs::path target = stage_data(data_, into_, true).folder;
  write_file(target / "a" / "1.jpg", "two");
  EXPECT_FALSE(stage_data(data_, into_, false).copied);  // sizes agree
  const auto expect_refused = [&](bool verify) {
    expect_error(ErrorKind::input, {"has changed since it was staged", "a/1.jpg", "remove"},
                 [&] { stage_data(data_, into_, verify); });
  };
  expect_refused(true);
  write_file(target / "a" / "1.jpg", "three");
  expect_refused(false);
}

TEST_F(Stage, PlacesThatCannotBe) {
  expect_error(ErrorKind::usage, {"its own folder", "--stage"},
               [&] { stage_data(data_, data_ / "copy", true); });
  write_file(scratch_ / "file", "");
  expect_error(ErrorKind::input, {"file"},
               [&] { stage_data(data_, scratch_ / "file" / "x", true); });
  fs::create_directory(scratch_ / "empty");
  expect_error(ErrorKind::input, {"no data set to stage"},
               [&] { stage_data(scratch_ / "empty", into_, true); });
}

}  // namespace
}  // namespace paceline
