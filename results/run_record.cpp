#include "results/run_record.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kMostOfAnInt = 10'000'000;  // ranks, repeats, threads
constexpr double kMostOfACount = 9e15;       // what a double counts exactly
constexpr double kLeastQuantity = 1e-290;    // a rate of less is not a number any more

[[noreturn]] void fail(const std::string& what, const std::string& where, const std::string& key) {
  std::error_code ignored;
  throw Error(ErrorKind::input, what, key.empty() ? where : where + ", key " + key,
              std::filesystem::exists(where, ignored) ? "fix the record or move it away"
                                                      : "correct what the record is made of");
}

Json number_json(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == std::floor(value) && std::abs(value) < kMostOfACount) {
    return static_cast<std::int64_t>(value);
  }
  return to_real(fmt::format("{:.7g}", value)).value_or(value);
}

class Writer {
 public:
  Json json = Json::object();

  template <typename T>
  void operator()(const char* key, T& member, Bounds = {}) {
    Json value = to_json(member);
    if (!value.is_null()) json[key] = std::move(value);
  }
  template <typename T>
  void always(const char* key, T& member) {
    json[key] = member;
  }
  template <typename T>
  void beside(T& members) {
    members.fields(*this);
  }
  void loss(const char* key, std::optional<double>& member) {
    if (member) json[key] = number_json(*member);
  }

 private:
  // Null: nothing is known.
  template <typename T>
  static Json to_json(T& value) {
    if constexpr (std::is_same_v<T, double>) {
      return number_json(value);
    } else if constexpr (std::is_arithmetic_v<T>) {
      return value;
    } else if constexpr (std::is_same_v<T, std::string>) {
      return value.empty() ? Json() : Json(value);
    } else {
      Writer writer;
      value.fields(writer);
      return writer.json.empty() ? Json() : writer.json;
    }
  }
  template <typename T>
  static Json to_json(std::optional<T>& value) {
    if (!value) return nullptr;
    Json json = to_json(*value);
    return json.is_null() ? Json::object() : json;
  }
  template <typename T>
  static Json to_json(std::vector<T>& values) {
    Json list;
    for (T& value : values) list.push_back(to_json(value));
    return list;
  }
};

class Reader {
 public:
  Reader(const Json& json, std::string key, const std::string& where)
      : json_(json), key_(std::move(key)), where_(where) {
    if (!json.is_object()) fail("should be an object", where_, key_);
  }

  template <typename T>
  void operator()(const char* key, T& member, Bounds bounds = {}) {
    const auto found = json_.find(key);
    const std::string path = key_ + "/" + key;
    if (found != json_.end() && !found->is_null()) {
      read(*found, path, member, bounds);
    } else if (bounds.required) {
      fail("is missing", where_, path);
    }
  }
  template <typename T>
  void always(const char* key, T& member) {
    (*this)(key, member);
  }
  template <typename T>
  void beside(T& members) {
    members.fields(*this);
  }
  void loss(const char* key, std::optional<double>& member) {
    (*this)(key, member, kAny);
    if (const auto found = json_.find(key); found != json_.end() && found->is_null()) {
      member = std::nan("");
    }
  }

 private:
  void read(const Json& json, const std::string& key, std::string& text, Bounds) const {
    if (!json.is_string()) fail("should be a text", where_, key);
    text = json.get<std::string>();
  }
  void read(const Json& json, const std::string& key, bool& value, Bounds) const {
    if (!json.is_boolean()) fail("should be true or false", where_, key);
    value = json.get<bool>();
  }
  double number(const Json& json, const std::string& key, Bounds bounds) const {
    if (!json.is_number()) fail("should be a number", where_, key);
    const double value = json.get<double>();
    if (!std::isfinite(value)) fail("is not a finite number", where_, key);
    if (bounds.share && !(value >= 0 && value <= 1)) {
      fail("should be from 0 to 1, not " + json_text(json), where_, key);
    }
    if (value < 0 && bounds.least >= 0) fail("cannot be negative: " + json_text(json), where_, key);
    return value;
  }
  void read(const Json& json, const std::string& key, double& value, Bounds bounds) const {
    value = number(json, key, bounds);
    if (bounds.above && !(value > bounds.least)) {
      fail("must be positive, not " + json_text(json), where_, key);
    }
  }
  void read(const Json& json, const std::string& key, std::int64_t& value, Bounds bounds) const {
    value = static_cast<std::int64_t>(whole(json, key, bounds, kMostOfACount));
  }
  void read(const Json& json, const std::string& key, int& value, Bounds bounds) const {
    value = static_cast<int>(whole(json, key, bounds, kMostOfAnInt));
  }
  // Published pages and other programs write 1e6, too.
  double whole(const Json& json, const std::string& key, Bounds bounds, double most) const {
    const double least = bounds.above ? 1 : bounds.least, value = number(json, key, bounds);
    if (value < least || value > most || value != std::floor(value)) {
      fail(fmt::format("should be a whole number of at least {}, not {}", least, json_text(json)),
           where_, key);
    }
    return value;
  }
  template <typename T>
  void read(const Json& json, const std::string& key, std::optional<T>& value,
            Bounds bounds) const {
    read(json, key, value.emplace(), bounds);
  }
  template <typename T>
  void read(const Json& json, const std::string& key, std::vector<T>& values, Bounds bounds) const {
    if (!json.is_array()) fail("should be a list", where_, key);
    for (std::size_t i = 0; i < json.size(); ++i) {
      read(json[i], fmt::format("{}/{}", key, i), values.emplace_back(), bounds);
    }
  }
  template <typename T>
  void read(const Json& json, const std::string& key, T& members, Bounds) const {
    Reader reader(json, key, where_);
    members.fields(reader);
  }

  const Json& json_;
  std::string key_;
  const std::string& where_;
};

// Those that are known here; a record of another build may hold choices that this one has not.
void read_parameters(const Json& json, RunRecord& record, const std::string& where) {
  const auto found = json.find("parameters");
  if (found == json.end() || !found->is_object()) fail("is missing", where, "/parameters");
  for (const auto& [name, value] : found->items()) {
    const Parameter* parameter = find_parameter(name);
    if (!parameter || value.is_null()) continue;
    const std::string key = "/parameters/" + name;
    if (parameter->kind == ValueKind::boolean && value.is_boolean()) {
      record.parameters.set(name, value.get<bool>());
    } else if (parameter->kind == ValueKind::integer && value.is_number_integer()) {
      record.parameters.set(name, value.get<std::int64_t>());
    } else if (parameter->kind == ValueKind::real && value.is_number()) {
      if (!std::isfinite(value.get<double>())) fail("is not a finite number", where, key);
      record.parameters.set(name, value.get<double>());
    } else if (parameter->kind == ValueKind::text && value.is_string()) {
      record.parameters.set(name, value.get<std::string>());
    } else {
      fail("has the wrong type", where, key);
    }
  }
  const auto workload = found->find("workload");
  if (workload != found->end() && workload->is_string()) {
    record.workload = workload->get<std::string>();
  }
  const auto control = found->find(kControl);
  record.control = control != found->end() && *control == Json(true);
}

Json parameters_json(const RunRecord& record) {
  Json json = to_json(record.parameters);
  if (!record.workload.empty()) json["workload"] = record.workload;
  if (record.control) json[kControl] = true;
  return json;
}

void check_schema(const Json& json, const std::string& where) {
  if (!json.is_object()) fail("is not a record: no JSON object", where, "");
  const auto schema = json.find("schema");
  if (schema == json.end() || !schema->is_number_integer()) {
    fail("is not a record: no schema", where, "/schema");
  }
  const auto version = schema->get<std::int64_t>();
  if (version > kRecordSchema) {
    throw Error(ErrorKind::input,
                fmt::format("the record has schema {}, newer than this build reads ({})", version,
                            kRecordSchema),
                where + ", key /schema", "use a newer paceline");
  }
  if (version < 1) fail(fmt::format("has unknown schema {}", version), where, "/schema");
}

void check_choice(const char* key, const std::string& value,
                  std::initializer_list<std::string_view> choices, const std::string& where) {
  for (const std::string_view choice : choices) {
    if (value == choice) return;
  }
  fail(value.empty() ? fmt::format("has no {}", key)
                     : fmt::format("has unknown {} \"{}\"", key, value),
       where, std::string("/") + key);
}

// A published page need not say how many CPUs there were.
void check_layout(const RunRecord& record, const std::string& where) {
  if (record.kind != "measured") return;
  const LayoutFacts& layout = record.layout;
  for (const auto& [key, known] : {std::pair{"nodes", layout.nodes.has_value()},
                                   {"ntasks", layout.ntasks.has_value()},
                                   {"cpus_per_task", layout.cpus_per_task.has_value()},
                                   {"cpus_per_replica", layout.cpus_per_replica.has_value()}}) {
    if (!known) fail("is missing", where, std::string("/layout/") + key);
  }
}

void check_collective(const Json& json, const RunRecord& record, const std::string& where) {
  if (!record.collective || record.collective->rows.empty()) {
    fail("is missing", where, "/collective/rows");
  }
  const auto provenance = json.find("provenance");
  if (provenance == json.end() || provenance->is_null()) fail("is missing", where, "/provenance");
}

// A published rate will do for a time, and so will a program's of its own.
void check_results(const RunRecord& record, const std::string& where) {
  if (!record.completed() || record.is_collective()) return;
  const Throughput& rate = record.throughput;
  for (const auto& [key, value] : {std::pair{"/timing/fit_seconds", record.timing.fit_seconds},
                                   {"/throughput/samples_per_second", rate.samples_per_second},
                                   {"/throughput/samples", rate.samples},
                                   {"/throughput/steps", rate.steps}}) {
    if (value && *value < kLeastQuantity) fail(fmt::format("cannot be {}", *value), where, key);
  }
  const bool may_lack_time = record.kind != "measured" || record.provenance.program;
  const bool rate_will_do = may_lack_time && rate.samples_per_second;
  if (!record.timing.fit_seconds && !rate_will_do) fail("is missing", where, "/timing/fit_seconds");
}

template <typename Facts>
Json json_of_section(Facts facts) {
  Writer writer;
  facts.fields(writer);
  return std::move(writer.json);
}

template <typename Facts>
Facts parse_section(const Json& json, const std::string& where) {
  Facts facts;
  Reader reader(json, "", where);
  facts.fields(reader);
  return facts;
}

}  // namespace

double Timing::whole_seconds() const {
  return fit_seconds.value_or(0) + setup_seconds.value_or(0) + evaluation_seconds.value_or(0);
}

bool RunRecord::is_collective() const {
  return kind == "collective" || (kind == "imported" && collective && !collective->rows.empty());
}

std::string ProgramFacts::build() const {
  constexpr std::size_t kShortCommit = 12;
  std::vector<std::string> parts;
  if (!commit.empty()) {
    parts.push_back(commit.substr(0, kShortCommit) + (dirty.value_or(false) ? " (dirty)" : ""));
  }
  if (!files_hash.empty()) parts.push_back("files " + files_hash);
  return join(parts, ", ");
}

bool ProgramFacts::differs_from(const ProgramFacts& other) const {
  const auto differ = [](const auto& a, const auto& b, bool known) { return known && a != b; };
  return differ(commit, other.commit, !commit.empty() && !other.commit.empty()) ||
         differ(dirty, other.dirty, dirty && other.dirty) ||
         differ(files_hash, other.files_hash, !files_hash.empty() && !other.files_hash.empty());
}

std::string RunRecord::build() const {
  if (provenance.program) {
    if (std::string text = provenance.program->build(); !text.empty()) return text;
  }
  std::string text = provenance.version;
  if (!provenance.commit.empty()) text += (text.empty() ? "" : " ") + provenance.commit;
  if (provenance.dirty.value_or(false)) text += " (dirty)";
  return text;
}

std::string RunRecord::hosts() const {
  if (ranks && ranks->hosts) return fmt::format("{} hosts", *ranks->hosts);
  return join(each_once(provenance.hosts), ", ");
}

Layout RunRecord::task_layout() const {
  return {layout.nodes.value_or(1),
          layout.ntasks.value_or(1),
          layout.cpus_per_task.value_or(1),
          layout.gpus,
          layout.cpus_per_replica.value_or(1),
          layout.replicas_are != "gpus"};
}

LayoutFacts layout_facts(const Layout& layout) {
  LayoutFacts facts;
  facts.nodes = layout.nodes;
  facts.ntasks = layout.ntasks;
  facts.cpus_per_task = layout.cpus_per_task;
  facts.gpus = layout.gpus;
  facts.cpus_per_replica = layout.cpus_per_replica;
  facts.replicas_are = layout.replicas_are_cores ? "cores" : "gpus";
  return facts;
}

Json to_json(const RunRecord& record) {
  RunRecord copy = record;  // one list of members serves reading, too, which changes them
  Writer writer;
  writer.json["schema"] = kRecordSchema;
  copy.beginning(writer);
  writer.json["parameters"] = parameters_json(record);
  copy.sections(writer);
  return std::move(writer.json);
}

Json to_json(const GpuFacts& gpu) {
  return json_of_section(gpu);
}

Json to_json(const EnergyFacts& energy) {
  return json_of_section(energy);
}

RunRecord parse_run_record(const Json& given, const std::string& where) {
  check_schema(given, where);
  Json upgraded;
  if (given.at("schema") != Json(kRecordSchema)) upgraded = upgrade_record(given);
  const Json& json = upgraded.is_null() ? given : upgraded;
  RunRecord record;
  record.kind.clear();
  record.status.clear();
  Reader reader(json, "", where);
  record.beginning(reader);
  check_choice("kind", record.kind,
               {"measured", "published", "predicted", "imported", "collective"}, where);
  check_choice("status", record.status, {"completed", "failed", "timeout", "preempted"}, where);
  read_parameters(json, record, where);
  record.sections(reader);
  if (record.workload.empty() && !record.is_collective()) {
    fail("is missing", where, "/parameters/workload");
  }
  check_layout(record, where);
  if (record.is_collective()) check_collective(json, record, where);
  check_results(record, where);
  return record;
}

GpuFacts parse_gpu_facts(const Json& json, const std::string& where) {
  return parse_section<GpuFacts>(json, where);
}

EnergyFacts parse_energy_facts(const Json& json, const std::string& where) {
  return parse_section<EnergyFacts>(json, where);
}

}  // namespace paceline
