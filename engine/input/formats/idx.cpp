#include <fmt/format.h>
#include <zlib.h>

#include <memory>
#include <new>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/core/unpack_limit.h"
#include "engine/input/formats/formats.h"
#include "engine/input/formats/source.h"

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

// What the first bytes of a file declare.
struct IdxHeader {
  std::vector<std::uint32_t> extents;
  std::size_t bytes = 0, elements = 1;  // of the header; behind it
};

IdxHeader parse_header(std::string_view bytes, const std::string& name) {
  if (bytes.size() < 4) throw bad(fmt::format("has only {} bytes", bytes.size()), name);
  const auto type = static_cast<std::uint8_t>(bytes[2]), rank = static_cast<std::uint8_t>(bytes[3]);
  if (bytes[0] != 0 || bytes[1] != 0 || type != 0x08 || rank < 1 || rank > 3) {
    throw bad(is_web_page(bytes) ? "is a web page, not an IDX file: the download failed"
                                 : fmt::format("is not an IDX file of bytes: magic number 0x{:08x}",
                                               big_endian(bytes, 0)),
              name);
  }
  IdxHeader header;
  header.bytes = 4 + std::size_t{4} * rank;
  if (bytes.size() < header.bytes) throw bad("is cut short in its header", name);
  for (std::size_t i = 0; i < rank; ++i) {
    header.extents.push_back(big_endian(bytes, 4 + 4 * i));
    if (header.extents.back() != 0 && header.elements > kLimit / header.extents.back()) {
      throw bad("declares an absurd size", name);
    }
    header.elements *= header.extents.back();
  }
  return header;
}

// No further than the header says that there is something.
IdxArray parse_gzipped(std::string_view bytes, const std::string& name) {
  constexpr std::size_t kLongestHeader = 16;
  const auto goes_on = [&](std::string_view text) {
    if (text.size() < kLongestHeader) return true;
    const IdxHeader header = parse_header(text, name);
    if (text.size() - header.bytes <= header.elements) return true;
    throw bad(fmt::format("declares {} elements and has more", header.elements), name);
  };
  return parse_idx(gunzip(bytes, name, kLimit, goes_on), name);
}

}  // namespace

std::string gunzip(std::string_view bytes, const std::string& name, std::size_t limit,
                   const std::function<bool(std::string_view)>& goes_on) try {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  const UnpackLimit unpack_limit(bytes.size(), name);
  std::string text;
  std::vector<char> buffer(std::size_t{1} << 18);
  int status = Z_OK;
  for (bool done = false; !done;) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    status = inflate(&stream, Z_NO_FLUSH);
    text.append(buffer.data(), buffer.size() - stream.avail_out);
    if (text.size() > limit) throw bad("inflates to more than it should", name);
    unpack_limit.check(text.size());
    if (status == Z_BUF_ERROR || (status == Z_OK && stream.avail_in == 0 && stream.avail_out > 0)) {
      throw bad(fmt::format("gzip data is cut short after {} bytes", bytes.size()), name);
    }
    if (status != Z_OK && status != Z_STREAM_END) throw bad("gzip data is damaged", name);
    if (goes_on && !goes_on(text)) return text;
    if (status != Z_STREAM_END) continue;
    done = stream.avail_in == 0;
    if (done) break;
    // Another member, as when files are put behind each other (RFC 1952, section 2.2).
    if (stream.avail_in < 2 || stream.next_in[0] != 0x1f || stream.next_in[1] != 0x8b) {
      throw bad(fmt::format("has {} bytes behind its gzip data", stream.avail_in), name);
    }
    if (inflateReset(&stream) != Z_OK) throw bad("gzip data is damaged", name);
  }
  return text;
} catch (const std::bad_alloc&) {
  throw input_error("the inflated file does not fit in memory", name,
                    "check that it is the right file");
}

IdxArray parse_idx(std::string_view bytes, const std::string& name) {
  IdxHeader header = parse_header(bytes, name);
  const std::size_t found = bytes.size() - header.bytes;
  if (found != header.elements) {
    throw bad(fmt::format("declares {} elements and has {}", header.elements, found), name);
  }
  IdxArray array{std::move(header.extents), {}};
  array.elements.assign(bytes.begin() + static_cast<std::ptrdiff_t>(header.bytes), bytes.end());
  return array;
}

IdxArray read_idx(const std::filesystem::path& file) {
  const std::string bytes = read_text(file, kLimit);
  const std::string name = file.string();
  if (bytes.empty()) throw bad("is empty", name);
  if (bytes.starts_with("\x1f\x8b")) return parse_gzipped(bytes, name);
  if (file.extension() == ".gz") {
    throw bad(is_web_page(bytes) ? "is a web page saved as .gz: the download failed"
                                 : "is named .gz but is not gzip data",
              name);
  }
  return parse_idx(bytes, name);
}

}  // namespace paceline
