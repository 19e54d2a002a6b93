// An untrusted labels.csv beside a few files.
#include "tests/fuzz/image_set.h"
#include "tests/fuzz/parts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static paceline::FuzzFolder folder;
  for (const char* name : {"a.png", "b.jpg", "c d.png"}) folder.write(name, "no image");
  folder.fill({"labels.csv"}, {{reinterpret_cast<const char*>(data), size}});
  paceline::read_image_set(folder.path());
  return 0;
}
