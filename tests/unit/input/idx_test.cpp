#include <gtest/gtest.h>

#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/input/formats/formats.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"
#include "tests/unit/input/idx_files.h"

namespace paceline {
namespace {

void refuse(const std::string& bytes, const std::vector<std::string>& parts) {
  std::vector<std::string> all = parts;
  all.insert(all.end(), {"digits-idx", "get the file again"});
  expect_error(ErrorKind::input, all, [&] { parse_idx(bytes, "digits-idx"); });
}

TEST(Idx, ReadsExtentsAndElements) {
  const IdxArray array = parse_idx(idx_header(2, {2, 3}) + "abcdef", "digits-idx");
  EXPECT_EQ(array.extents, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(array.elements, (std::vector<std::uint8_t>{'a', 'b', 'c', 'd', 'e', 'f'}));
}

TEST(Idx, WrongMagicNumbers) {
  refuse(std::string("\1\0\x8\1", 4) + "\0\0\0\0", {"magic number 0x01000801"});
  refuse(std::string("\0\0\xd\1\0\0\0\0", 8), {"magic number 0x00000d01"});  // floats
  refuse(std::string("\0\0\x8\0", 4), {"magic number"});
  refuse(idx_header(4, {1, 1, 1, 1}) + "x", {"magic number"});
  refuse("<!DOCTYPE html><html>", {"web page"});
  refuse("\n\n <html><body>not found</body></html>", {"web page"});
}

TEST(Idx, EveryCutIsRefused) {
  const std::string whole = idx_header(3, {2, 2, 2}) + "abcdefgh";
  EXPECT_NO_THROW(parse_idx(whole, "digits-idx"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    expect_error(ErrorKind::input, {"digits-idx"},
                 [&] { parse_idx(whole.substr(0, size), "digits-idx"); });
  }
  refuse(whole + "i", {"declares 8 elements and has 9"});
}

TEST(Idx, AbsurdExtents) {
  refuse(idx_header(3, {~0U, ~0U, ~0U}) + "x", {"absurd"});
  refuse(idx_header(3, {65536, 65536, 65536}) + "x", {"absurd"});  // product wraps to 0
  refuse(idx_header(3, {0, ~0U, ~0U}) + "x", {"declares 0 elements and has 1"});
}

class IdxFile : public testing::Test {
 protected:
  void refuse_file(const std::string& name, const std::string& bytes,
                   const std::vector<std::string>& parts) {
    const auto file = scratch_ / name;
    replace_file(file, bytes);
    std::vector<std::string> all = parts;
    all.push_back(name);
    expect_error(ErrorKind::input, all, [&] { read_idx(file); });
  }
  Scratch scratch_;
  const std::string idx_ = idx_header(1, {1000}) + std::string(1000, 'x');
};

TEST_F(IdxFile, PlainAndGzippedGiveTheSame) {
  replace_file(scratch_ / "plain", idx_);
  replace_file(scratch_ / "packed.gz", gzip(idx_));
  EXPECT_EQ(read_idx(scratch_ / "plain").elements, read_idx(scratch_ / "packed.gz").elements);
}

TEST_F(IdxFile, DamagedGzip) {
  const std::string packed = gzip(idx_);
  for (const std::size_t left :
       {3UL, 10UL, packed.size() / 2, packed.size() - 8, packed.size() - 1}) {
    refuse_file("cut.gz", packed.substr(0, left), {"cut short"});
  }
  std::string flipped = packed;
  flipped[packed.size() - 6] ^= 1;  // of the checksum
  refuse_file("flipped.gz", flipped, {"damaged"});
  refuse_file("trailing.gz", gzip(idx_ + "more"), {"declares 1000 elements and has more"});
  refuse_file("garbage.gz", packed + "garbage", {"behind"});
}

TEST_F(IdxFile, SeveralMembersAreOneFile) {
  replace_file(scratch_ / "x.gz", gzip(idx_.substr(0, 300)) + gzip(idx_.substr(300)));
  EXPECT_EQ(read_idx(scratch_ / "x.gz").elements.size(), 1000U);
  const std::string packed = gzip(idx_);
  refuse_file("twice.gz", packed + packed, {"declares 1000 elements and has more"});
  refuse_file("cut.gz", packed + packed.substr(0, 5), {"cut short"});
}

// 300 kB that would be 300 MB: no more is inflated than the header declares.
TEST_F(IdxFile, ABombIsRefusedByItsHeader) {
  const std::string zeros(std::size_t{1} << 20, '\0');
  std::string many;
  for (int i = 0; i < 300; ++i) many += gzip(zeros);
  const auto seconds = [&](const std::string& name, const std::string& bytes,
                           const std::string& part) {
    const std::clock_t start = std::clock();  // of this process: others may be busy
    refuse_file(name, bytes, {part});
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  EXPECT_LT(seconds("zeros.gz", many, "magic number 0x00000000"), 0.3);
  EXPECT_LT(seconds("small.gz", gzip(idx_header(1, {10})) + many, "10 elements and has more"), 0.3);
}

TEST_F(IdxFile, NotGzipAtAll) {
  const std::string page = read_text(std::string(PACELINE_SOURCE_DIR) +
                                     "/tests/data/html-saved-as-train-images-idx3-ubyte.gz");
  refuse_file("images.gz", page, {"web page saved as .gz"});
  refuse_file("plain.gz", idx_, {"is named .gz but is not gzip data"});
  refuse_file("empty.gz", "", {"is empty"});
  refuse_file("empty", "", {"is empty"});
}

TEST(Idx, InflationIsLimited) {
  expect_error(ErrorKind::input, {"would unpack to", "over 100 times"},
               [&] { gunzip(gzip(std::string(40'000'000, ' ')), "bomb", 1 << 30); });
  const std::string bomb = gzip(std::string(1 << 20, '\0'));
  EXPECT_EQ(gunzip(bomb, "bomb", 1 << 20).size(), std::size_t{1} << 20);
  expect_error(ErrorKind::input, {"inflates to more"},
               [&] { gunzip(bomb, "bomb", (1 << 20) - 1); });
  const std::string part = gunzip(bomb, "bomb", 1 << 20, [](std::string_view) { return false; });
  EXPECT_LE(part.size(), std::size_t{1} << 18);
}

}  // namespace
}  // namespace paceline
