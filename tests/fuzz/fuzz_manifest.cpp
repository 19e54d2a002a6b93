// The manifest of a checkpoint from an untrusted folder. What is understood must come out as it
// went in, and name no file outside the folder.
#include <cstdlib>
#include <string_view>

#include "engine/core/error.h"
#include "engine/train/checkpoint/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const paceline::CheckpointManifest manifest = paceline::parse_manifest(text, "fuzz");
    for (const paceline::CheckpointFile& file : manifest.files) {
      if (file.name.find('/') != std::string::npos || file.name == "..") std::abort();
    }
    const std::string written = manifest.json();
    if (paceline::parse_manifest(written, "fuzz").json() != written) std::abort();
  } catch (const paceline::Error&) {
  }
  return 0;
}
