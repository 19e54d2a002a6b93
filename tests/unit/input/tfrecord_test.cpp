#include "engine/input/formats/tfrecord.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"
#include "tests/unit/input/idx_files.h"
#include "tests/unit/input/made.h"

namespace paceline {
namespace {

const std::vector<std::string> kData = {"first", "", std::string(1000, 'x'), "last"};

std::string records() {
  std::string bytes;
  for (const std::string& data : kData) bytes += make_record(data);
  return bytes;
}

// Of record i in records().
std::size_t find_offset(std::size_t i) {
  std::size_t offset = 0;
  for (std::size_t k = 0; k < i; ++k) offset += make_record(kData[k]).size();
  return offset;
}

TfRecordFile resolve_file(const std::string& bytes) {
  return TfRecordFile(RandomFile("pets-00000-of-00001", bytes));
}

void refuse_records(const std::string& bytes, const std::vector<std::string>& parts) {
  std::vector<std::string> all = parts;
  all.push_back("pets-00000-of-00001");
  expect_error(ErrorKind::input, all, [&] { resolve_file(bytes); });
}

TEST(TfRecord, AnyRecordIsReadInAnyOrder) {
  const TfRecordFile file = resolve_file(records());
  ASSERT_EQ(file.records(), kData.size());
  std::string data;
  for (const std::size_t i : {3, 0, 2, 1, 2}) {
    file.read(i, data);
    EXPECT_EQ(data, kData[i]);
  }
  EXPECT_EQ(file.where(2),
            "pets-00000-of-00001, record 2 at byte " + std::to_string(find_offset(2)));
}

TEST(TfRecord, FromDiskInSmallReads) {
  const Scratch scratch;
  write_file(scratch / "shard", records());
  for (const std::size_t buffer : {0, 1, 7, 4096}) {
    const TfRecordFile file(scratch / "shard", buffer);
    std::string data;
    file.read(2, data);
    EXPECT_EQ(data, kData[2]);
  }
}

TEST(TfRecord, GzippedAsAWhole) {
  const TfRecordFile file = resolve_file(gzip(records()));
  ASSERT_EQ(file.records(), kData.size());
  std::string data;
  file.read(2, data);
  EXPECT_EQ(data, kData[2]);
  expect_parts(file.where(2), {"of the inflated file"});
  EXPECT_EQ(file.hash(), resolve_file(records()).hash());
}

// 64 kB that would be 64 MB: nothing is inflated behind a header that is damaged.
TEST(TfRecord, AGzipBombIsNotInflated) {
  const std::string bomb = gzip(std::string(std::size_t{64} << 20, '\0'));
  refuse_records(bomb, {"is no TFRecord file"});
  const TfRecordFile file(RandomFile("pets", gzip(records()) + bomb),
                          TfRecordFile::OnDamage::keep_what_precedes);
  EXPECT_EQ(file.records(), kData.size());
  EXPECT_FALSE(file.damage().empty());
}

// 0x088b1f bytes: the length begins as a gzip file does.
TEST(TfRecord, ALengthThatLooksLikeGzip) {
  const std::string data(0x088b1f, 'g');
  std::string read;
  resolve_file(make_record(data)).read(0, read);
  EXPECT_EQ(read, data);
}

TEST(TfRecord, AnEmptyFileHoldsNoRecords) {
  EXPECT_EQ(resolve_file("").records(), 0U);
}

TEST(TfRecord, ADamagedLengthIsFoundAtOnce) {
  std::string bytes = records();
  bytes[find_offset(2)] ^= 1;
  refuse_records(
      bytes, {"CRC of a record's length", "record 2 at byte " + std::to_string(find_offset(2))});
  bytes = records();
  bytes[5] ^= 1;
  refuse_records(bytes, {"no TFRecord file", "record 0 at byte 0"});
}

TEST(TfRecord, WhatPrecedesADamagedHeaderMayBeKept) {
  const auto count_kept = [](const std::string& bytes) {
    return TfRecordFile(RandomFile("pets-00000-of-00001", bytes),
                        TfRecordFile::OnDamage::keep_what_precedes);
  };
  EXPECT_EQ(count_kept(records()).damage(), "");
  const std::string where =
      "pets-00000-of-00001, record 2 at byte " + std::to_string(find_offset(2));
  for (const std::size_t byte : {0, 7, 8, 11}) {  // of the length, of its CRC
    std::string bytes = records();
    bytes[find_offset(2) + byte] ^= 1;
    const TfRecordFile file = count_kept(bytes);
    ASSERT_EQ(file.records(), 2U);
    std::string data;
    file.read(0, data);
    EXPECT_EQ(data, kData[0]);
    EXPECT_EQ(file.damage(), "the CRC of a record's length is wrong");
    EXPECT_EQ(file.where_end(), where);
  }
  const TfRecordFile cut = count_kept(records().substr(0, find_offset(2) + 500));
  EXPECT_EQ(cut.records(), 2U);
  expect_parts(cut.damage(), {"cut short"});
  EXPECT_EQ(cut.where_end(), where);
  std::string first = records();
  first[3] ^= 1;
  EXPECT_EQ(count_kept(first).records(), 0U);
  EXPECT_NE(count_kept(first).damage(), "");
}

TEST(TfRecord, DamagedDataAreFoundWhenRead) {
  std::string bytes = records();
  bytes[find_offset(2) + 500] ^= 1;
  const TfRecordFile file = resolve_file(bytes);
  std::string data;
  file.read(3, data);
  expect_error(ErrorKind::input,
               {"CRC of a record's data", "record 2 at byte " + std::to_string(find_offset(2))},
               [&] { file.read(2, data); });
}

TEST(TfRecord, CutShortAnywhere) {
  const std::string whole = make_record(kData[0]) + make_record(kData[2]);
  const std::size_t first = make_record(kData[0]).size();
  for (std::size_t size = 1; size < whole.size(); ++size) {
    if (size == first) continue;
    refuse_records(whole.substr(0, size), {"cut short", size < first ? "record 0" : "record 1"});
  }
}

TEST(TfRecord, ReportsWhatAFileIsInstead) {
  refuse_records("version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 5\n",
                 {"git-lfs pointer"});
  refuse_records("<!DOCTYPE html><html></html>", {"web page"});
  refuse_records(gzip(records()).substr(0, 20), {"cut short"});
  expect_error(ErrorKind::input, {"no-such-file"}, [] { TfRecordFile("no-such-file"); });
  expect_error(ErrorKind::input, {"not a regular file"}, [] { TfRecordFile("/"); });
}

// A sound header that declares more than any record has.
TEST(TfRecord, AnAbsurdLength) {
  std::string record = make_record("");
  const std::uint64_t length = std::uint64_t{1} << 60;
  std::string header(reinterpret_cast<const char*>(&length), 8);
  std::string crc = make_record(header).substr(12 + 8, 4);  // that of the header's 8 bytes
  refuse_records(header + crc + record, {"declares a record of"});
}

TEST(TfRecord, TheHashIsOfTheContent) {
  EXPECT_NE(resolve_file(make_record("a")).hash(), resolve_file(make_record("b")).hash());
  EXPECT_NE(resolve_file(make_record("a") + make_record("b")).hash(),
            resolve_file(make_record("b") + make_record("a")).hash());
}

}  // namespace
}  // namespace paceline
