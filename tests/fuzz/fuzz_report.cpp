// Records from untrusted files, all the way to what `paceline report` prints.
#include <sstream>

#include "analysis/report.h"
#include "engine/core/error.h"
#include "tests/fuzz/parts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static paceline::FuzzFolder folder;
  folder.fill({"1.1.json", "2.1.json", "3.1.json"}, paceline::split_path(data, size));
  for (const paceline::Format format :
       {paceline::Format::text, paceline::Format::json, paceline::Format::html}) {
    std::ostringstream text;
    paceline::ReportOptions options;
    options.format = format;
    options.plots.clear();
    options.anonymous = format == paceline::Format::html;
    try {
      paceline::write_report({folder.path()}, options, text);
    } catch (const paceline::Error&) {
    }
  }
  return 0;
}
