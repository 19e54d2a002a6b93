#include "run/why/working_copy.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <fstream>

#include "engine/core/json.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

ino_t inode_of(const fs::path& file) {
  struct stat status {};
  EXPECT_EQ(stat(file.c_str(), &status), 0) << file;
  return status.st_ino;
}

// Data of gigabytes would else be copied for each run.
TEST(WorkingCopy, CopiesAgainWhatARunHasChanged) {
  const Scratch scratch;
  const fs::path from = fs::canonical(scratch.path()) / "project", other = from.string() + ".data";
  fs::create_directories(from / "data");
  fs::create_directories(other);
  for (const char* name : {"kept", "written", "same size", "closed", "data/moved", "data/linked"}) {
    std::ofstream(from / name) << name;
  }
  const WorkingCopy copy = {from, fs::canonical(scratch.path()) / "copy", {}, {}};
  copy.make();
  const ino_t kept = inode_of(copy.to() / "kept"), written = inode_of(copy.to() / "written");

  std::ofstream(copy.to() / "written", std::ios::app) << " by a run";
  std::ofstream(copy.to() / "same size") << "sizes are";
  fs::permissions(copy.to() / "closed", fs::perms::owner_read);
  std::ofstream(copy.to() / "new") << "of a run";
  // The user's own files at the end of a link, as like the copies as can be.
  fs::rename(copy.to() / "data", other / "data");
  fs::create_directory_symlink(other / "data", copy.to() / "data");
  copy.make();
  struct statfs storage {};
  ASSERT_EQ(statfs(scratch.path().c_str(), &storage), 0);
  // In memory all files are copied: a write through a map leaves no time there.
  EXPECT_EQ(inode_of(copy.to() / "kept") == kept, storage.f_type != TMPFS_MAGIC);
  EXPECT_NE(inode_of(copy.to() / "written"), written);
  EXPECT_EQ(read_text(copy.to() / "written"), "written");
  EXPECT_EQ(read_text(copy.to() / "same size"), "same size");
  EXPECT_EQ(fs::status(copy.to() / "closed").permissions(),
            fs::status(from / "closed").permissions());
  EXPECT_FALSE(fs::exists(copy.to() / "new"));
  EXPECT_FALSE(fs::is_symlink(copy.to() / "data"));
  EXPECT_EQ(read_text(copy.to() / "data/moved"), "data/moved");
  EXPECT_EQ(read_text(other / "data/moved"), "data/moved");

  fs::create_hard_link(copy.to() / "data/linked", other / "linked");
  const ino_t linked = inode_of(other / "linked");
  copy.make();
  EXPECT_NE(inode_of(copy.to() / "data/linked"), linked);
}

}  // namespace
}  // namespace paceline
