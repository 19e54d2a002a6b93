#include "engine/input/formats/tfrecord.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/input/formats/crc32c.h"
#include "engine/input/formats/idx.h"

namespace paceline {

static_assert(std::endian::native == std::endian::little);

namespace {

constexpr std::size_t kLengthBytes = 8, kCrcBytes = 4, kHeaderBytes = kLengthBytes + kCrcBytes;
constexpr char kGetAgain[] =
    "get the file again and compare its checksum, or skip it with --on-bad-sample skip";

template <typename T>
void append(std::string& bytes, T number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::uint32_t masked(std::string_view data) {
  return masked_crc32c(std::as_bytes(std::span(data.data(), data.size())));
}

template <typename T>
T number_at(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

bool header_is_sound(const char* header) {
  return masked({header, kLengthBytes}) == number_at<std::uint32_t>(header + kLengthBytes);
}

// A gzip file begins like a TFRecord file whose first record is large: the CRC decides.
bool is_gzipped(const RandomFile& file) {
  std::array<char, kHeaderBytes> head{};
  if (file.size() < head.size()) return false;
  file.read(0, head.size(), head.data());
  return !header_is_sound(head.data()) && std::memcmp(head.data(), "\x1f\x8b", 2) == 0;
}

RandomFile inflated(const RandomFile& packed) {
  if (packed.size() > TfRecordFile::kMostInflatedBytes / 2) {
    throw Error(ErrorKind::input,
                "this is a gzip file of " + format_bytes(static_cast<double>(packed.size())),
                packed.name(), "write smaller shards, or shards without compression");
  }
  std::string bytes(packed.size(), '\0');
  packed.read(0, bytes.size(), bytes.data());
  // As far as there are records: behind a bad header everything is lost anyway, and index() tells.
  std::uint64_t next = 0;
  const auto goes_on = [&next](std::string_view text) {
    while (text.size() >= next + kHeaderBytes) {
      const char* const header = text.data() + next;
      const auto length = number_at<std::uint64_t>(header);
      if (!header_is_sound(header) || length > TfRecordFile::kMostRecordBytes) return false;
      next += kHeaderBytes + length + kCrcBytes;
    }
    return true;
  };
  return {packed.name(), gunzip(bytes, packed.name(), TfRecordFile::kMostInflatedBytes, goes_on)};
}

}  // namespace

TfRecordFile::TfRecordFile(const std::filesystem::path& file, std::size_t buffer_bytes,
                           OnDamage on_damage)
    : TfRecordFile(RandomFile(file, buffer_bytes), on_damage) {}

TfRecordFile::TfRecordFile(RandomFile file, OnDamage on_damage)
    : TfRecordFile{is_gzipped(file), std::move(file), on_damage} {}  // braces: in this order

TfRecordFile::TfRecordFile(bool gzipped, RandomFile file, OnDamage on_damage)
    : file_(gzipped ? inflated(file) : std::move(file)), gzipped_(gzipped) {
  check_content();
  index(on_damage);
}

void TfRecordFile::check_content() const {
  if (file_.size() == 0) return;
  std::string head(std::min<std::uint64_t>(file_.size(), 512), '\0');
  file_.read(0, head.size(), head.data());
  if (const std::string guess = guess_content(head); !guess.empty()) {
    throw Error(ErrorKind::input, guess, file_.name(), "get the file itself");
  }
}

std::string TfRecordFile::flaw_at(std::uint64_t offset, const char* header) const {
  const std::uint64_t left = file_.size() - offset;
  if (left < kHeaderBytes) {
    return fmt::format("is cut short: {} bytes are no record header", left);
  }
  if (!header_is_sound(header)) {
    return offset == 0 ? "is no TFRecord file, or its first header is damaged"
                       : "the CRC of a record's length is wrong";
  }
  const auto length = number_at<std::uint64_t>(header);
  if (length > kMostRecordBytes) return fmt::format("declares a record of {} bytes", length);
  const std::uint64_t behind = left - kHeaderBytes;
  if (behind < length + kCrcBytes) {
    return fmt::format("is cut short: a record of {} bytes, of which {} are there", length,
                       std::min<std::uint64_t>(length, behind));
  }
  return "";
}

void TfRecordFile::index(OnDamage on_damage) {
  // One read a record: the CRC behind its data and the header of the next one.
  std::array<char, kCrcBytes + kHeaderBytes> bytes{};
  char* const header = bytes.data() + kCrcBytes;
  const std::uint64_t size = file_.size();
  file_.read(0, std::min<std::uint64_t>(kHeaderBytes, size), header);
  while (end_ < size) {
    damage_ = flaw_at(end_, header);
    if (!damage_.empty()) {
      if (on_damage == OnDamage::keep_what_precedes) return;
      throw Error(ErrorKind::input, damage_, where_end(), kGetAgain);
    }
    const auto length = number_at<std::uint64_t>(header);
    const std::uint64_t data = end_ + kHeaderBytes, next = data + length + kCrcBytes;
    const std::size_t more = std::min<std::uint64_t>(kHeaderBytes, size - next);
    file_.read(data + length, kCrcBytes + more, bytes.data());
    records_.push_back(
        {data, static_cast<std::uint32_t>(length), number_at<std::uint32_t>(bytes.data())});
    end_ = next;
  }
}

std::string TfRecordFile::where_end() const {
  return where_at(records_.size(), end_ + kHeaderBytes);
}

void TfRecordFile::read(std::size_t i, std::string& data) const {
  const Record& record = records_.at(i);
  data.resize(record.length);
  file_.read(record.offset, record.length, data.data());
  if (masked(data) != record.masked_crc) {
    throw Error(ErrorKind::input, "the CRC of a record's data is wrong", where(i), kGetAgain);
  }
}

std::string TfRecordFile::where(std::size_t i) const {
  return where_at(i, records_.at(i).offset);
}

std::string TfRecordFile::where_at(std::size_t i, std::uint64_t data_offset) const {
  return fmt::format("{}, record {} at byte {}{}", file_.name(), i, data_offset - kHeaderBytes,
                     gzipped_ ? " of the inflated file" : "");
}

std::uint64_t TfRecordFile::hash() const {
  Hash hash;
  for (const Record& record : records_) {
    hash.add(&record.length, sizeof record.length)
        .add(&record.masked_crc, sizeof record.masked_crc);
  }
  return hash.value();
}

std::string framed_record(std::string_view data) {
  std::string record;
  record.reserve(kHeaderBytes + data.size() + kCrcBytes);
  append<std::uint64_t>(record, data.size());
  append(record, masked(record));
  record += data;
  append(record, masked(data));
  return record;
}

}  // namespace paceline
