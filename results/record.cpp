#include "results/record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "results/record_check.h"

namespace paceline {

namespace {

std::string text_at(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_string() ? it->get<std::string>() : "";
}

int integer_at(const Json& json, const char* key, int otherwise) {
  const auto it = json.find(key);
  return it != json.end() && it->is_number_integer() ? it->get<int>() : otherwise;
}

const Json& object_at(const Json& json, const char* key) {
  static const Json kEmpty = Json::object();
  const auto it = json.find(key);
  return it != json.end() && it->is_object() ? *it : kEmpty;
}

}  // namespace

Record::Record(Json json, std::string where)
    : json_(std::make_unique<Json>(std::move(json))), where_(std::move(where)) {
  check_record(*json_, where_);
}

Record::~Record() = default;
Record::Record(const Record& other)
    : json_(std::make_unique<Json>(*other.json_)), where_(other.where_) {}
Record::Record(Record&&) noexcept = default;
Record& Record::operator=(Record&&) noexcept = default;

std::string Record::kind() const {
  return text_at(*json_, "kind");
}
std::string Record::study() const {
  return text_at(*json_, "study");
}
std::string Record::point() const {
  return text_at(*json_, "point");
}
std::string Record::status() const {
  return text_at(*json_, "status");
}
std::string Record::reason() const {
  return text_at(*json_, "reason");
}
std::string Record::identity() const {
  return text_at(*json_, "identity");
}
std::string Record::session() const {
  return text_at(*json_, "session");
}
int Record::repeat() const {
  return integer_at(*json_, "repeat", 1);
}
int Record::attempt() const {
  return integer_at(*json_, "attempt", 1);
}
int Record::round() const {
  return integer_at(*json_, "round", 0);
}

std::string Record::data_hash() const {
  return text_at(object_at(*json_, "provenance"), "data_hash");
}

std::string Record::build() const {
  const Json& provenance = object_at(*json_, "provenance");
  const auto dirty = provenance.find("dirty");
  std::string build = text_at(provenance, "version");
  if (const std::string commit = text_at(provenance, "commit"); !commit.empty()) {
    build += (build.empty() ? "" : " ") + commit;
  }
  if (dirty != provenance.end() && dirty->is_boolean() && dirty->get<bool>()) build += " (dirty)";
  return build;
}

bool Record::is_control() const {
  const Json& given = object_at(*json_, "parameters");
  return given.contains(kControl) && given.at(kControl) == true;
}

bool Record::flag(const char* name) const {
  const Json& flags = object_at(*json_, "flags");
  const auto it = flags.find(name);
  return it != flags.end() && it->is_boolean() && it->get<bool>();
}

std::string Record::workload() const {
  return text_at(object_at(*json_, "parameters"), "workload");
}

Point Record::parameters() const {
  Point point;
  for (const auto& [name, json] : object_at(*json_, "parameters").items()) {
    const Parameter* parameter = find_parameter(name);
    if (!parameter || json.is_null()) continue;
    if (json.is_boolean()) {
      point.set(name, json.get<bool>());
    } else if (parameter->kind == ValueKind::real) {
      point.set(name, json.get<double>());
    } else if (json.is_number()) {
      point.set(name, json.get<std::int64_t>());
    } else {
      point.set(name, json.get<std::string>());
    }
  }
  return point;
}

Layout Record::layout() const {
  const Json& json = object_at(*json_, "layout");
  Layout layout;
  layout.nodes = integer_at(json, "nodes", 1);
  layout.ntasks = integer_at(json, "ntasks", 1);
  layout.cpus_per_task = integer_at(json, "cpus_per_task", 1);
  layout.gpus = integer_at(json, "gpus", 1);
  layout.cpus_per_replica = integer_at(json, "cpus_per_replica", 1);
  layout.replicas_are_cores = text_at(json, "replicas_are") != "gpus";
  return layout;
}

std::optional<double> Record::number(const std::string& pointer) const {
  const Json::json_pointer path(pointer);
  if (!json_->contains(path)) return std::nullopt;
  const Json& value = json_->at(path);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

Record read_record(const std::filesystem::path& file) {
  const std::string text = read_text(file, kRecordLimitBytes);
  JsonDocument document(file.string(), text);
  return Record(document.value(), file.string());
}

}  // namespace paceline
