// What a prediction changes against the measured runs.
#pragma once

#include <optional>
#include <string>

namespace paceline {

struct WhatIf {
  std::string wire;                 // precision on the wire: bf16, fp16, fp32; empty: as it was
  std::optional<double> bucket_mb;  // the cap of buckets, MiB
  double links = 1;                 // links that are so many times as fast

  bool nothing() const { return wire.empty() && !bucket_mb && links == 1; }
};

// Parses "precision-on-the-wire=bf16,bucket_mb=32,links=2x". Throws usage.
WhatIf parse_what_if(const std::string& text);

}  // namespace paceline
