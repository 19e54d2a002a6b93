#include "analysis/predict/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

const std::vector<std::string> kNames = {"precision-on-the-wire", "bucket_mb", "links"};
const std::vector<std::string> kPrecisions = {"bf16", "fp16", "fp32"};

[[noreturn]] void complain(const std::string& what, const std::string& hint) {
  throw Error(ErrorKind::usage, what, "--what-if", hint);
}

double above_zero(const std::string& name, std::string_view text, const char* example) {
  const auto value = to_real(text);
  if (!value || *value <= 0 || *value > 1e6) {
    complain(fmt::format("{} cannot be \"{}\"", name, text), example);
  }
  return *value;
}

void set(WhatIf& what_if, const std::string& name, const std::string& value) {
  if (name == "links") {
    const std::string_view number(value.data(), value.size() - (value.ends_with('x') ? 1 : 0));
    what_if.links = above_zero(name, number, "give links=2x for links of twice the bandwidth");
  } else if (name == "bucket_mb") {
    what_if.bucket_mb = above_zero(name, value, "give a size in MiB, as bucket_mb=32");
  } else {
    if (std::find(kPrecisions.begin(), kPrecisions.end(), value) == kPrecisions.end()) {
      complain(fmt::format("gradients are not sent as \"{}\"", value),
               "give " + join(kPrecisions, ", "));
    }
    what_if.wire = value;
  }
}

}  // namespace

WhatIf parse_what_if(const std::string& text) {
  WhatIf what_if;
  std::vector<std::string> given;
  for (const std::string& part : split(text, ',')) {
    const std::size_t at = part.find('=');
    const std::string name(trim(part.substr(0, at)));
    if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) {
      complain(fmt::format("unknown change \"{}\"", name), suggestion(name, kNames));
    }
    if (std::find(given.begin(), given.end(), name) != given.end()) {
      complain(fmt::format("{} is given twice", name), "give it once");
    }
    given.push_back(name);
    set(what_if, name, at == std::string::npos ? "" : std::string(trim(part.substr(at + 1))));
  }
  return what_if;
}

}  // namespace paceline
