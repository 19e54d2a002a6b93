#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <memory>
#include <new>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/core/unpack_limit.h"
#include "engine/input/formats/formats.h"

namespace paceline {

namespace {

constexpr std::size_t kMostBytes = std::size_t{2} << 30;

using Reader = std::unique_ptr<archive, int (*)(archive*)>;

Error unreadable_npz(const std::string& what, const std::string& where) {
  return {ErrorKind::input, what, where, "get the file again and compare its checksum"};
}

std::uint32_t little_endian(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = count; i-- > 0;)
    value = value << 8 | static_cast<std::uint8_t>(bytes[at + i]);
  return value;
}

// What the first bytes of a .npy file declare: a Python dictionary with a fixed set of keys.
std::string parse_header(std::string_view npy, std::size_t& begin, const std::string& where) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  constexpr std::size_t kLongest = 4096;
  const std::size_t digits = npy.size() > 6 && npy[6] == 1 ? 2 : 4;
  if (!npy.starts_with(kMagic) || npy.size() < 8 + digits)
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
                              : header.find_first_of(",}", at) - 1;
  return header.substr(at, end - at + 1);
}

IdxArray parse_npy(std::string_view npy, const std::string& where) {
  std::size_t begin = 0;
  const std::string header = parse_header(npy, begin, where);
  const std::string type = read_value(header, "descr", where);
  if (!type.ends_with("u1'")) {
    throw input_error("the array holds elements of type " + type + ", not unsigned bytes", where,
                      "save it as numpy.uint8");
  }
  if (read_value(header, "fortran_order", where) != "False") {
    throw input_error("the array is in Fortran order", where, "save it as numpy.ascontiguousarray");
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

NpzFile::NpzFile(const std::filesystem::path& file)
    : NpzFile(read_text(file, kMostBytes), file.string()) {}

NpzFile::NpzFile(std::string bytes, std::string name)
    : bytes_(std::move(bytes)), name_(std::move(name)) {}

std::string NpzFile::where(const std::string& array) const {
  return name_ + ", array " + array;
}

Error NpzFile::no_archive() const {
  const bool is_page = trim(std::string_view(bytes_).substr(0, 64)).starts_with('<');
  return unreadable_npz(bytes_.starts_with("PK\x03\x04") ? "the archive is cut short or damaged"
                        : is_page ? "is a web page, not a NumPy archive: the download failed"
                        : bytes_.starts_with("version https://git-lfs")
                            ? "is a git-lfs pointer, not the file"
                            : "is not a NumPy archive",
                        name_);
}

// Only by the list at the archive's end: without it, the file is cut short.
std::string NpzFile::content(const std::string& file, const std::string& where) const {
  const Reader reader(archive_read_new(), archive_read_free);
  if (!reader) throw std::bad_alloc();
  archive_read_support_format_zip_seekable(reader.get());
  if (archive_read_open_memory(reader.get(), bytes_.data(), bytes_.size()) != ARCHIVE_OK) {
    throw no_archive();
  }
  archive_entry* entry = nullptr;
  const char* name = nullptr;
  do {
    const int code = archive_read_next_header(reader.get(), &entry);
    if (code == ARCHIVE_EOF) {
      throw input_error("the archive has no array " + file.substr(0, file.rfind('.')), name_,
                        "give mnist.npz as Keras has it: x_train, y_train, x_test, y_test");
    }
    if (code != ARCHIVE_OK) throw no_archive();
    name = archive_entry_pathname(entry);
  } while (name == nullptr || name != file);
  const auto size = static_cast<std::size_t>(archive_entry_size(entry));
  if (size > kMostBytes) throw unreadable_npz("declares an absurd size", where);
  UnpackLimit(bytes_.size(), where).check(size);
  // One byte more, so that the end is reached, where the checksum is compared.
  std::string text(size + 1, '\0');
  const auto got = archive_read_data(reader.get(), text.data(), text.size());
  if (got != static_cast<la_ssize_t>(size)) {
    const char* why = archive_error_string(reader.get());
    throw unreadable_npz(std::string("is damaged") + (why ? std::string(": ") + why : ""), where);
  }
  text.pop_back();
  return text;
}

IdxArray NpzFile::array(const std::string& name) const try {
  return parse_npy(content(name + ".npy", where(name)), where(name));
} catch (const std::bad_alloc&) {
  throw input_error("the array does not fit in memory", where(name),
                    "check that it is the right file");
}

}  // namespace paceline
