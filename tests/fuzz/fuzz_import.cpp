// A file of another tool from an untrusted source, as every format and as a table.
#include "engine/core/error.h"
#include "results/import/format.h"
#include "results/record.h"
#include "tests/fuzz/parts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  const ForeignFile file{"file", {reinterpret_cast<const char*>(data), size}, {}, {"workload=w"}};
  for (const ImportFormat& format : import_formats()) {
    try {
      check_format(format, file);
      for (const ImportedRun& run : format.read(file).runs) to_json(run.record);
    } catch (const Error&) {
    }
  }
  return 0;
}
