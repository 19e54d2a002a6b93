// NumPy's .npz: a zip archive of arrays, each a .npy file. Keras caches MNIST as one.
// Formats: APPNOTE.TXT of PKWARE; numpy.lib.format.
#pragma once

#include <filesystem>
#include <string>

#include "engine/input/formats/idx.h"

namespace paceline {

class NpzFile {
 public:
  // Throws input: not a zip archive (with a guess of the content), cut short, not readable.
  explicit NpzFile(const std::filesystem::path& file);
  NpzFile(std::string bytes, std::string name);  // from memory; `name` is for error messages

  // Array `name` ("x_train") of unsigned bytes in C order, with up to 3 extents. Throws input
  // naming it: absent, damaged, encrypted, too large, of another type or order.
  IdxArray array(const std::string& name) const;

  std::string where(const std::string& array) const;  // "mnist.npz, array x_train"

 private:
  struct Entry;
  Entry find(const std::string& file) const;
  std::string content(const Entry& entry, const std::string& where) const;

  std::string bytes_, name_;
  std::size_t directory_ = 0, entries_ = 0;  // where the list of files begins; its length
};

}  // namespace paceline
