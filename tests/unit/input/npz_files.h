// NumPy archives made by hand: zip around .npy files.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace paceline {

inline std::string little_endian_bytes(std::uint64_t value, std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(value >> 8 * i & 255);
  return bytes;
}

// A .npy file: `shape` as Python writes it, "(3, 2, 2)".
inline std::string make_npy(const std::string& shape, const std::string& values,
                            const std::string& type = "|u1", const std::string& fortran = "False") {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
  header.resize((10 + header.size() + 64) / 64 * 64 - 11, ' ');
  header += '\n';
  return "\x93NUMPY" + std::string("\1\0", 2) + little_endian_bytes(header.size(), 2) + header +
         values;
}

// As numpy.savez does it (the local headers leave sizes to the list at the end), or
// savez_compressed.
inline std::string make_zip(const std::vector<std::pair<std::string, std::string>>& files,
                            bool deflated) {
  std::string zip, list;
  for (const auto& [name, content] : files) {
    std::string packed = content;
    if (deflated) {
      z_stream stream{};
      deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
      packed.resize(deflateBound(&stream, content.size()));
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
      stream.avail_in = static_cast<uInt>(content.size());
      stream.next_out = reinterpret_cast<Bytef*>(packed.data());
      stream.avail_out = static_cast<uInt>(packed.size());
      deflate(&stream, Z_FINISH);
      packed.resize(stream.total_out);
      deflateEnd(&stream);
    }
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
    const std::string kind = little_endian_bytes(45, 2) + little_endian_bytes(0, 2) +
                             little_endian_bytes(deflated ? 8 : 0, 2) + std::string(4, '\0') +
                             little_endian_bytes(crc, 4);
    const std::string extra = little_endian_bytes(1, 2) + little_endian_bytes(16, 2) +
                              little_endian_bytes(content.size(), 8) +
                              little_endian_bytes(packed.size(), 8);
    list += "PK\1\2" + little_endian_bytes(45, 2) + kind + little_endian_bytes(packed.size(), 4) +
            little_endian_bytes(content.size(), 4) + little_endian_bytes(name.size(), 2) +
            std::string(12, '\0') + little_endian_bytes(zip.size(), 4) + name;
    zip += "PK\3\4" + kind + std::string(8, '\xff') + little_endian_bytes(name.size(), 2) +
           little_endian_bytes(extra.size(), 2) + name + extra + packed;
  }
  return zip + list + "PK\5\6" + std::string(4, '\0') + little_endian_bytes(files.size(), 2) +
         little_endian_bytes(files.size(), 2) + little_endian_bytes(list.size(), 4) +
         little_endian_bytes(zip.size(), 4) + std::string(2, '\0');
}

}  // namespace paceline
