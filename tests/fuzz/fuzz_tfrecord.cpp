// TFRecord bytes, plain or gzipped, from an untrusted file.
#include <string>

#include "engine/core/error.h"
#include "engine/input/formats/tfrecord.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  using OnDamage = paceline::TfRecordFile::OnDamage;
  for (const OnDamage on_damage : {OnDamage::refuse, OnDamage::keep_what_precedes}) {
    try {
      const paceline::TfRecordFile file(paceline::RandomFile("fuzz", bytes), on_damage);
      std::string record;
      for (std::size_t i = 0; i < file.records(); ++i) {
        try {
          file.read(i, record);
        } catch (const paceline::Error&) {
        }
      }
    } catch (const paceline::Error&) {
    }
  }
  return 0;
}
