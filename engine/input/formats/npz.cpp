#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/input/formats/formats.h"

namespace paceline {

namespace {

constexpr std::size_t kMostBytes = std::size_t{2} << 30;
constexpr std::size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30, kLongestComment = 65535;
constexpr std::uint32_t kEntry = 0x02014b50, kLocal = 0x04034b50;
constexpr unsigned kStored = 0, kDeflated = 8, kEncrypted = 1;

Error unreadable_npz(const std::string& what, const std::string& where) {
  return {ErrorKind::input, what, where, "get the file again and compare its checksum"};
}

std::uint32_t little_endian(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = count; i-- > 0;)
    value = value << 8 | static_cast<std::uint8_t>(bytes[at + i]);
  return value;
}

bool has(std::string_view bytes, std::size_t at, std::size_t count) {
  return at <= bytes.size() && count <= bytes.size() - at;
}

std::uint32_t compute_crc(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string inflated(std::string_view bytes, std::size_t size, const std::string& where) {
  constexpr std::size_t kLargestRatio = 1032;  // of deflate
  if (size > kMostBytes || size / kLargestRatio > bytes.size()) {
    throw unreadable_npz("declares an absurd size", where);
  }
  z_stream stream{};
  constexpr int kRawWindow = -15;
  if (inflateInit2(&stream, kRawWindow) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  std::string text(size, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(size);
  if (inflate(&stream, Z_FINISH) != Z_STREAM_END || stream.avail_out != 0) {
    throw unreadable_npz("its compressed data is damaged", where);
  }
  return text;
}

// What the first bytes of a .npy file declare: a Python dictionary with a fixed set of keys.
std::string parse_header(std::string_view npy, std::size_t& begin, const std::string& where) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  constexpr std::size_t kLongest = 4096;
  const std::size_t digits = npy.size() > 6 && npy[6] == 1 ? 2 : 4;
  if (!npy.starts_with(kMagic) || !has(npy, 8, digits))
    throw unreadable_npz("is not a NumPy array", where);
  const std::size_t length = little_endian(npy, 8, digits);
  begin = 8 + digits + length;
  if (length > kLongest || begin > npy.size())
    throw unreadable_npz("is cut short in its header", where);
  return std::string(npy.substr(8 + digits, length));
}

// A quoted text with its quotes, a tuple with its parentheses, or a word.
std::string read_value(const std::string& header, const std::string& key,
                       const std::string& where) {
  const std::string entry = "'" + key + "': ";
  const std::size_t found = header.find(entry);
  const std::size_t at = found == std::string::npos ? found : found + entry.size();
  if (at >= header.size()) throw unreadable_npz("its header has no " + key, where);
  const char first = header[at];
  const std::size_t end = first == '\'' || first == '('
                              ? header.find(first == '(' ? ')' : first, at + 1)
                              : header.find(',', at) - 1;
  return header.substr(at, end - at + 1);
}

IdxArray parse_npy(std::string_view npy, const std::string& where) {
  std::size_t begin = 0;
  const std::string header = parse_header(npy, begin, where);
  const std::string type = read_value(header, "descr", where);
  if (!type.ends_with("u1'")) {
    throw Error(ErrorKind::input,
                "the array holds elements of type " + type + ", not unsigned bytes", where,
                "save it as numpy.uint8");
  }
  if (read_value(header, "fortran_order", where) != "False") {
    throw Error(ErrorKind::input, "the array is in Fortran order", where,
                "save it as numpy.ascontiguousarray");
  }
  IdxArray array;
  std::size_t elements = 1;
  std::string shape = read_value(header, "shape", where);
  if (!shape.starts_with('(') || !shape.ends_with(')')) throw unreadable_npz("has no shape", where);
  for (const std::string& part : split(shape.substr(1, shape.size() - 2), ',')) {
    if (trim(part).empty()) continue;  // behind the last comma
    const auto extent = to_integer(trim(part));
    const auto most = static_cast<std::int64_t>(kMostBytes);
    if (!extent || *extent < 0 || *extent > most || array.extents.size() == 3 ||
        (*extent != 0 && elements > kMostBytes / static_cast<std::size_t>(*extent))) {
      throw unreadable_npz("has an absurd shape, " + shape, where);
    }
    array.extents.push_back(static_cast<std::uint32_t>(*extent));
    elements *= static_cast<std::size_t>(*extent);
  }
  const std::string_view values = npy.substr(begin);
  if (array.extents.empty() || values.size() != elements) {
    throw unreadable_npz(fmt::format("has {} bytes, and its shape is {}", values.size(), shape),
                         where);
  }
  array.elements.assign(values.begin(), values.end());
  return array;
}

}  // namespace

struct NpzFile::Entry {
  unsigned method = 0;
  std::uint32_t crc = 0;
  std::size_t packed = 0, size = 0, local = 0;
};

NpzFile::NpzFile(const std::filesystem::path& file)
    : NpzFile(read_text(file, kMostBytes), file.string()) {}

// The list of files stands at the end, and behind it where it begins.
NpzFile::NpzFile(std::string bytes, std::string name)
    : bytes_(std::move(bytes)), name_(std::move(name)) {
  const std::string mark = "PK\x05\x06";
  const std::size_t from = bytes_.size() - std::min(bytes_.size(), kEndBytes + kLongestComment);
  const std::size_t end = bytes_.rfind(mark);
  if (end == std::string::npos || end < from || !has(bytes_, end, kEndBytes)) {
    const bool begins = bytes_.starts_with("PK\x03\x04");
    throw unreadable_npz(begins ? "the archive is cut short"
                         : trim(std::string_view(bytes_).substr(0, 64)).starts_with('<')
                             ? "is a web page, not a NumPy archive: the download failed"
                         : bytes_.starts_with("version https://git-lfs")
                             ? "is a git-lfs pointer, not the file"
                             : "is not a NumPy archive",
                         name_);
  }
  entries_ = little_endian(bytes_, end + 10, 2);
  directory_ = little_endian(bytes_, end + 16, 4);
}

std::string NpzFile::where(const std::string& array) const {
  return name_ + ", array " + array;
}

NpzFile::Entry NpzFile::find(const std::string& file) const {
  std::size_t at = directory_;
  for (std::size_t i = 0; i < entries_; ++i) {
    if (!has(bytes_, at, kEntryBytes) || little_endian(bytes_, at, 4) != kEntry) {
      throw unreadable_npz("the archive's list of files is damaged", name_);
    }
    const std::size_t length = little_endian(bytes_, at + 28, 2);
    if (std::string_view(bytes_).substr(at + kEntryBytes).substr(0, length) == file) {
      if (little_endian(bytes_, at + 8, 2) & kEncrypted)
        throw unreadable_npz("is encrypted", name_);
      return {little_endian(bytes_, at + 10, 2), little_endian(bytes_, at + 16, 4),
              little_endian(bytes_, at + 20, 4), little_endian(bytes_, at + 24, 4),
              little_endian(bytes_, at + 42, 4)};
    }
    at += kEntryBytes + length + little_endian(bytes_, at + 30, 2) +
          little_endian(bytes_, at + 32, 2);
  }
  throw Error(ErrorKind::input, "the archive has no array " + file.substr(0, file.rfind('.')),
              name_, "give mnist.npz as Keras has it: x_train, y_train, x_test, y_test");
}

std::string NpzFile::content(const Entry& entry, const std::string& where) const {
  if (!has(bytes_, entry.local, kLocalBytes) || little_endian(bytes_, entry.local, 4) != kLocal) {
    throw unreadable_npz("the archive is damaged", where);
  }
  const std::size_t begin = entry.local + kLocalBytes + little_endian(bytes_, entry.local + 26, 2) +
                            little_endian(bytes_, entry.local + 28, 2);
  if (!has(bytes_, begin, entry.packed)) throw unreadable_npz("is cut short", where);
  const std::string_view packed(bytes_.data() + begin, entry.packed);
  if (entry.method != kStored && entry.method != kDeflated) {
    throw unreadable_npz(fmt::format("is packed by method {}, which is not known", entry.method),
                         where);
  }
  std::string text =
      entry.method == kStored ? std::string(packed) : inflated(packed, entry.size, where);
  if (text.size() != entry.size || compute_crc(text) != entry.crc) {
    throw unreadable_npz("is damaged: its checksum differs", where);
  }
  return text;
}

IdxArray NpzFile::array(const std::string& name) const try {
  return parse_npy(content(find(name + ".npy"), where(name)), where(name));
} catch (const std::bad_alloc&) {
  throw Error(ErrorKind::input, "the array does not fit in memory", where(name),
              "check that it is the right file");
}

}  // namespace paceline
