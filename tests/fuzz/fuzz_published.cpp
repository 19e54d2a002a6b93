// A published table from an untrusted folder: its description and its rows.
#include "engine/core/error.h"
#include "results/shipped.h"
#include "tests/fuzz/parts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static paceline::FuzzFolder folder;
  folder.fill({paceline::kPublishedDescription, paceline::kPublishedRows},
              paceline::split_path(data, size));
  try {
    paceline::read_published(folder.path());
  } catch (const paceline::Error&) {
  }
  return 0;
}
