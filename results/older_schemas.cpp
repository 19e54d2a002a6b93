#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/backend_stack.h"
#include "engine/core/error.h"
#include "results/names.h"
#include "results/run_record.h"

namespace paceline {

namespace {

std::string text_at(const Json& json, const char* section, const char* key) {
  const auto found = json.find(section);
  if (found == json.end() || !found->is_object()) return "";
  const auto value = found->find(key);
  return value != found->end() && value->is_string() ? value->get<std::string>() : "";
}

bool is_of_this_program(const Json& record) {
  const auto kind = record.find("kind");
  if (kind == record.end() || (*kind != Json("measured") && *kind != Json("collective")))
    return false;
  const auto provenance = record.find("provenance");
  return provenance == record.end() || !provenance->is_object() || !provenance->contains("program");
}

// The stack that ran where `used` is what the record says of its transport.
std::string backend_that_ran(const std::string& name, const std::string& used) {
  BackendStack stack = split_stack(name);
  const bool of_library = std::erase(stack.wrappers, "flat") > 0 ||
                          used.find("MPI_Allreduce") != std::string::npos ||
                          used.find("gloo::allreduce") != std::string::npos;
  const auto& backends = known_names().backends;
  const auto now = std::find_if(backends.begin(), backends.end(),
                                [&](const Name& each) { return each.was == stack.between; });
  if (!of_library && now != backends.end()) stack.between = now->name;
  return to_text(stack);
}

void replace_in_point(Json& record, const std::string& before, const std::string& now) {
  const auto point = record.find("point");
  if (point == record.end() || !point->is_string()) return;
  std::string text = "," + point->get<std::string>() + ",";
  const std::string old_part = ",backend=" + before + ",";
  const std::size_t at = text.find(old_part);
  if (at == std::string::npos) return;
  text.replace(at, old_part.size(), ",backend=" + now + ",");
  *point = text.substr(1, text.size() - 2);
}

void rename_keys(Json& json) {
  constexpr std::pair<const char*, const char*> kRenamed[] = {
      {"accumulate", "gradient_accumulation_steps"},
      {"array_element", "array_task"},
      {"backend_asked", "backend_requested"},
      {"buckets_bytes", "bucket_bytes"},
      {"calls_a_sample", "calls_per_sample"},
      {"heat_slowdowns", "thermal_throttles"},
      {"keep", "keep_checkpoints"},
      {"literal_guide_loss", "double_softmax"}};
  if (json.is_object()) {
    for (const auto& [before, now] : kRenamed) {
      if (const auto found = json.find(before); found != json.end()) {
        json[now] = std::move(*found);
        json.erase(before);
      }
    }
  }
  for (Json& part : json) {
    if (part.is_structured()) rename_keys(part);
  }
}

// Until schema 1, backends `mpi` and `gloo` were Paceline's own sums, and `+flat` made them the
// library's. Gives such a record the name of what ran, which provenance.backend_used says, and sets
// "renamed_backend" to the name in the file. Records of published, imported and users' own programs
// stay as they are: their backends are other programs' words.
void rename_backend(Json& record) {
  if (!is_of_this_program(record)) return;
  const std::string before = text_at(record, "parameters", "backend");
  if (before.empty()) return;
  std::string now;
  try {
    now = backend_that_ran(before, text_at(record, "provenance", "backend_used"));
  } catch (const Error&) {
    return;  // no stack: the reader names the fault
  }
  if (now == before) return;
  record["parameters"]["backend"] = now;
  if (!text_at(record, "provenance", "backend_requested").empty())
    record["provenance"]["backend_requested"] = now;
  replace_in_point(record, before, now);
  record.erase("identity");  // a hash over the name
  record["renamed_backend"] = before;
}

}  // namespace

Json upgrade_record(Json record) {
  const Json schema = record.at("schema");
  rename_keys(record);
  if (schema == Json(1)) rename_backend(record);
  return record;
}

}  // namespace paceline
