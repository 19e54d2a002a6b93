// IDX bytes and gzip data made by hand.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace paceline {

inline std::string idx_header(unsigned rank, const std::vector<std::uint32_t>& extents) {
  std::string bytes = {0, 0, 8, static_cast<char>(rank)};
  for (const std::uint32_t extent : extents) {
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(extent >> shift & 255);
  }
  return bytes;
}

inline std::string gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace paceline
