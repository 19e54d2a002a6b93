// A file of another tool from an untrusted source, as every format and as a table: all the way to
// the records that it would make.
#include "engine/core/error.h"
#include "results/import/formats.h"
#include "results/import/import.h"
#include "tests/fuzz/parts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  static FuzzFolder folder;
  folder.write("file", {reinterpret_cast<const char*>(data), size});
  const std::string file = (folder.path() / "file").string();
  for (const ImportFormat& format : import_formats()) {
    try {
      Import({format.name, {file}, "s", folder.path(), {"gpus=2", "workload=w"}, {}, "1"})
          .write(true);
    } catch (const Error&) {
    }
  }
  return 0;
}
