#include "run/failed_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/log.h"
#include "results/store.h"
#include "run/record_parts.h"

namespace paceline {

namespace {

RunRecord record_of_failure(const RunRequest& request, const std::string& line) {
  RunRecord record = record_beginning(request.target, request.workload, request.parameters);
  record.status = "failed";
  record.reason = line;
  record.layout = layout_facts(request.config.place.layout, request.config.threads);
  record.provenance = build_facts(request.command);
  return record;
}

}  // namespace

std::filesystem::path failed_record_name(const std::filesystem::path& record) {
  std::filesystem::path name = record;
  name.replace_extension(".failed.json");
  std::error_code ignored;
  for (int attempt = 2; std::filesystem::exists(name, ignored); ++attempt) {
    name = record;
    name.replace_extension(fmt::format(".failed.{}.json", attempt));
  }
  return name;
}

void write_failed_record(const RunRequest& request, int code, const std::string& line) noexcept {
  const std::filesystem::path& record = request.target.file;
  const bool by_request = code == exit_code(ErrorKind::preempted) || code >= 128;
  if (record.empty() || code == 0 || by_request || code == exit_code(ErrorKind::usage)) return;
  try {
    const auto folder = record.has_parent_path() ? record.parent_path() : ".";
    if (std::filesystem::exists(record) || !std::filesystem::is_directory(folder)) return;
    write_record_file(failed_record_name(record), to_json(record_of_failure(request, line)), "");
  } catch (const std::exception& error) {
    log::warning("the record of the failure could not be written: {}", error.what());
  }
}

}  // namespace paceline
