// A TFRecord file: consecutive records, each an 8-byte little-endian length, the masked CRC-32C of
// these 8 bytes, the data, and its masked CRC-32C (tensorflow.org/tutorials/load_data/tfrecord).
// Plain, or gzipped as a whole, which is then kept in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/input/formats/source.h"

namespace paceline {

class TfRecordFile {
 public:
  static constexpr std::size_t kMostRecordBytes = std::size_t{1} << 30;
  static constexpr std::size_t kMostInflatedBytes = std::size_t{4} << 30;

  // After a damaged header, the position of the next record is unknown.
  enum class OnDamage { refuse, keep_what_precedes };

  // Walks over the headers, checks them, and indexes the records. Throws input naming record and
  // offset: a damaged header, a record cut short, not a TFRecord file.
  explicit TfRecordFile(const std::filesystem::path& file, std::size_t buffer_bytes = 0,
                        OnDamage on_damage = OnDamage::refuse);
  explicit TfRecordFile(RandomFile file, OnDamage on_damage = OnDamage::refuse);

  std::size_t records() const { return records_.size(); }

  // Reads record i and checks its CRC. Thread-safe.
  void read(std::size_t i, std::string& data) const;

  // "shard-00003-of-00008, record 17 at byte 123456" (of the inflated file if gzipped)
  std::string where(std::size_t i) const;

  // Why there are no more records at where_end(), before the end of the file. Empty: all were read.
  const std::string& damage() const { return damage_; }
  std::string where_end() const;

  // Hash of all lengths and CRCs, so of the content without reading it.
  std::uint64_t hash() const;

 private:
  struct Record {
    std::uint64_t offset;  // of the data
    std::uint32_t length, masked_crc;
  };

  TfRecordFile(bool gzipped, RandomFile file, OnDamage on_damage);
  void check_content() const;
  std::string flaw_at(std::uint64_t offset, const char* header) const;
  void index(OnDamage on_damage);
  std::string where_at(std::size_t i, std::uint64_t data_offset) const;

  RandomFile file_;
  bool gzipped_;
  std::vector<Record> records_;
  std::uint64_t end_ = 0;  // end of the last record
  std::string damage_;
};

// The bytes of a record: header, data, CRC.
std::string framed_record(std::string_view data);

// Reads the two features of a tf.train.Example that a labelled image needs.

struct ExampleKeys {
  std::string image = "image", label = "label";
};

// Parses `sample.bytes`, an Example in wire format, and sets image and label. Throws input naming
// where(): not an Example, a missing feature, a wrong type, not exactly one value, a label outside
// 0..classes - 1.
void take_example(EncodedSample& sample, const ExampleKeys& keys, std::size_t classes,
                  const std::function<std::string()>& where);

// CRC-32C (Castagnoli, polynomial 0x1EDC6F41, RFC 3720), with the CPU's instruction if it has one,
// and the masked form used in TFRecord files.

std::uint32_t crc32c(std::span<const std::byte> bytes);

// Rotates and offsets a CRC, so that the CRC of data that contains CRCs is not trivial
// (TensorFlow's tensorflow/core/lib/hash/tfrecord.h).
constexpr std::uint32_t mask_crc(std::uint32_t crc) {
  return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}
inline std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  return mask_crc(crc32c(bytes));
}

// The table-driven version, for CPUs without the instruction and for tests.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes);

}  // namespace paceline
