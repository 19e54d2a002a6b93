#include "engine/input/formats/tfrecord.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/input/formats/example.pb.h"
#include "engine/input/formats/formats.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

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
    throw input_error("this is a gzip file of " + format_bytes(static_cast<double>(packed.size())),
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

wire::Feature* find_feature(wire::Example& example, const std::string& key) {
  auto& features = *example.mutable_features()->mutable_feature();
  const auto found = features.find(key);
  return found == features.end() ? nullptr : &found->second;
}

std::string list_keys(const wire::Example& example) {
  auto keys = mapped(example.features().feature(), [](const auto& each) { return each.first; });
  std::sort(keys.begin(), keys.end());
  return keys.empty() ? "no feature at all" : join(keys, ", ");
}

constexpr std::uint32_t kReversedPolynomial = 0x82F63B78;
constexpr std::size_t kWord = 8;

using Tables = std::array<std::array<std::uint32_t, 256>, kWord>;

// tables[k][b]: what byte b does to the CRC when k more bytes follow it ("slicing by eight").
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kReversedPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < kWord; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = before >> 8 ^ tables[0][before & 255];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

std::uint64_t word_at(const std::byte* data) {
  std::uint64_t word = 0;
  std::memcpy(&word, data, kWord);
  return word;
}

#if defined(__x86_64__)
#define PACELINE_WITH_CRC [[gnu::target("sse4.2")]]
bool has_instruction() {
  return __builtin_cpu_supports("sse4.2");
}
PACELINE_WITH_CRC std::uint64_t add_word(std::uint64_t crc, std::uint64_t word) {
  return _mm_crc32_u64(crc, word);
}
PACELINE_WITH_CRC std::uint32_t add_byte(std::uint32_t crc, std::uint8_t byte) {
  return _mm_crc32_u8(crc, byte);
}
#elif defined(__aarch64__)
#define PACELINE_WITH_CRC [[gnu::target("+crc")]]
bool has_instruction() {
  return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}
PACELINE_WITH_CRC std::uint64_t add_word(std::uint64_t crc, std::uint64_t word) {
  return __crc32cd(static_cast<std::uint32_t>(crc), word);
}
PACELINE_WITH_CRC std::uint32_t add_byte(std::uint32_t crc, std::uint8_t byte) {
  return __crc32cb(crc, byte);
}
#endif

#if defined(PACELINE_WITH_CRC)
PACELINE_WITH_CRC std::uint32_t crc32c_by_instruction(std::span<const std::byte> bytes) {
  std::uint64_t crc = 0xFFFFFFFF;
  std::size_t at = 0;
  for (; at + kWord <= bytes.size(); at += kWord) crc = add_word(crc, word_at(&bytes[at]));
  auto rest = static_cast<std::uint32_t>(crc);
  for (; at < bytes.size(); ++at) rest = add_byte(rest, std::to_integer<std::uint8_t>(bytes[at]));
  return ~rest;
}
#endif

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
    throw input_error(guess, file_.name(), "get the file itself");
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
      throw input_error(damage_, where_end(), kGetAgain);
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
    throw input_error("the CRC of a record's data is wrong", where(i), kGetAgain);
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

void take_example(EncodedSample& sample, const ExampleKeys& keys, std::size_t classes,
                  const std::function<std::string()>& where) {
  const auto bad = [&](const std::string& what) {
    return input_error(what, where(), "write the data set again");
  };
  wire::Example example;
  if (!example.ParseFromString(sample.bytes)) throw bad("the record is not a tf.train.Example");
  wire::Feature* image = find_feature(example, keys.image);
  if (!image || image->bytes_list().value_size() != 1) {
    throw bad(image ? fmt::format("feature \"{}\" does not hold one image", keys.image)
                    : fmt::format("the Example has no image: it holds {}, not \"{}\"",
                                  list_keys(example), keys.image));
  }
  wire::Feature* label = find_feature(example, keys.label);
  if (!label || label->int64_list().value_size() != 1) {
    throw bad(label ? fmt::format("feature \"{}\" is not one whole number", keys.label)
                    : fmt::format("the Example has no label: it holds {}, not \"{}\"",
                                  list_keys(example), keys.label));
  }
  const std::int64_t value = label->int64_list().value(0);
  if (value < 0 || static_cast<std::uint64_t>(value) >= classes) {
    throw bad(fmt::format("label {} is out of range: there are {} classes", value, classes));
  }
  sample.label = static_cast<std::int32_t>(value);
  sample.bytes.swap(*image->mutable_bytes_list()->mutable_value(0));
  sample.image = sample.bytes;
  sample.height = sample.width = 0;
}

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  std::size_t at = 0;
  for (; at + kWord <= bytes.size(); at += kWord) {
    std::uint64_t word = word_at(&bytes[at]) ^ crc;  // little-endian, as our machines are
    crc = 0;
    for (std::size_t k = kWord; k-- > 0; word >>= 8) crc ^= kTables[k][word & 255];
  }
  for (; at < bytes.size(); ++at) {
    crc = crc >> 8 ^ kTables[0][(crc ^ std::to_integer<std::uint32_t>(bytes[at])) & 255];
  }
  return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes) {
#if defined(PACELINE_WITH_CRC)
  if (has_instruction()) return crc32c_by_instruction(bytes);
#endif
  return crc32c_by_table(bytes);
}

}  // namespace paceline
