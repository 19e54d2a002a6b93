#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/input/prepare/fetch.h"

namespace paceline {

std::string make_url(const PublishedFile& file, const FetchOptions& options) {
  std::string base = options.mirror.empty() ? file.base : options.mirror;
  while (base.ends_with('/')) base.pop_back();
  return base + "/" + file.name;
}

std::string describe_fetch(const PublishedSet& set, const FetchOptions& options) {
  if (options.tfrecord && set.name != "cassava") {
    throw Error(ErrorKind::usage, set.name + " does not come as class folders", "--tfrecord",
                "leave it out");
  }
  std::string text = fmt::format("{}: {}\n", set.name, set.about);
  for (const PublishedFile& file : set.files) {
    text += fmt::format("  {}\n    {} ({} bytes), {} {}\n", make_url(file, options),
                        format_bytes(static_cast<double>(file.bytes)), file.bytes, file.algorithm,
                        file.digest);
  }
  text += fmt::format("  {} to download", format_bytes(static_cast<double>(set.bytes())));
  if (set.unpacked_bytes > 0) {
    text +=
        fmt::format(", about {} unpacked", format_bytes(static_cast<double>(set.unpacked_bytes)));
  }
  return text + "\n";
}

}  // namespace paceline
