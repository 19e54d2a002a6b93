#include "engine/input/idx.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <memory>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kLimit = std::size_t{2} << 30;

Error bad(const std::string& what, const std::string& name) {
  return {ErrorKind::input, what, name, "get the file again and compare its checksum"};
}

std::uint32_t big_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes[at + i]);
  return value;
}

bool looks_like_html(std::string_view bytes) {
  const std::string_view head = trim(bytes.substr(0, std::min<std::size_t>(bytes.size(), 512)));
  return head.starts_with("<!") || head.starts_with("<html") || head.starts_with("<HTML") ||
         head.starts_with("<?xml");
}

}  // namespace

std::string gunzip(std::string_view bytes, const std::string& name, std::size_t limit) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  std::vector<char> buffer(std::size_t{1} << 18);
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    status = inflate(&stream, Z_NO_FLUSH);
    text.append(buffer.data(), buffer.size() - stream.avail_out);
    if (text.size() > limit) throw bad("inflates to more than it should", name);
    if (status == Z_BUF_ERROR || (status == Z_OK && stream.avail_in == 0 && stream.avail_out > 0)) {
      throw bad(fmt::format("gzip data is cut short after {} bytes", bytes.size()), name);
    }
    if (status != Z_OK && status != Z_STREAM_END) throw bad("gzip data is damaged", name);
  }
  if (stream.avail_in > 0) {
    throw bad(fmt::format("has {} bytes behind its gzip data", stream.avail_in), name);
  }
  return text;
}

IdxArray parse_idx(std::string_view bytes, const std::string& name) {
  if (bytes.size() < 4) throw bad(fmt::format("has only {} bytes", bytes.size()), name);
  const auto type = static_cast<std::uint8_t>(bytes[2]), rank = static_cast<std::uint8_t>(bytes[3]);
  if (bytes[0] != 0 || bytes[1] != 0 || type != 0x08 || rank < 1 || rank > 3) {
    throw bad(looks_like_html(bytes)
                  ? "is a web page, not an IDX file: the download failed"
                  : fmt::format("is not an IDX file of bytes: magic number 0x{:08x}",
                                big_endian(bytes, 0)),
              name);
  }
  const std::size_t header = 4 + std::size_t{4} * rank;
  if (bytes.size() < header) throw bad("is cut short in its header", name);
  IdxArray array;
  std::size_t elements = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    array.extents.push_back(big_endian(bytes, 4 + 4 * i));
    if (array.extents.back() != 0 && elements > kLimit / array.extents.back()) {
      throw bad("declares an absurd size", name);
    }
    elements *= array.extents.back();
  }
  const std::size_t found = bytes.size() - header;
  if (found != elements) {
    throw bad(fmt::format("declares {} elements and has {}", elements, found), name);
  }
  array.elements.assign(bytes.begin() + static_cast<std::ptrdiff_t>(header), bytes.end());
  return array;
}

IdxArray read_idx(const std::filesystem::path& file) {
  const std::string bytes = read_text(file, kLimit);
  const std::string name = file.string();
  if (bytes.empty()) throw bad("is empty", name);
  if (bytes.starts_with("\x1f\x8b")) return parse_idx(gunzip(bytes, name, kLimit), name);
  if (file.extension() == ".gz") {
    throw bad(looks_like_html(bytes) ? "is a web page saved as .gz: the download failed"
                                     : "is named .gz but is not gzip data",
              name);
  }
  return parse_idx(bytes, name);
}

}  // namespace paceline
