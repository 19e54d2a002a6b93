#include "results/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/facts/json.h"
#include "engine/facts/rank.h"
#include "results/schema.h"
#include "results/store.h"

namespace paceline {

namespace {

constexpr std::size_t kLongestUnit = 40;
constexpr const char* kBetter[] = {"more", "less"};
constexpr double kLeastQuantity = 1e-290;  // a rate of less is not a number any more

[[noreturn]] void fail(const std::string& what, const std::string& where, const std::string& key) {
  FactPlace{where, key}.fail(what);
}

void check_schema(const Json& json, const std::string& where) {
  if (!json.is_object()) fail("is not a record: no JSON object", where, "");
  const auto schema = json.find("schema");
  if (schema == json.end() || !schema->is_number_integer()) {
    fail("is not a record: no schema", where, "/schema");
  }
  const auto version = schema->get<std::int64_t>();
  if (version == kRecordSchema) return;
  const bool is_newer = version > kRecordSchema;
  throw input_error(fmt::format("the record has schema {}, {} than this build reads ({})", version,
                                is_newer ? "newer" : "older", kRecordSchema),
                    where + ", key /schema",
                    is_newer ? "use a newer paceline" : "remove it, and run its point again");
}

void check_choice(const char* key, const std::string& value, std::span<const char* const> choices,
                  const std::string& where) {
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
  for (const auto& [key, known] : measured_layout(record.layout)) {
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
  const Throughput& rate = *record.throughput;
  for (const auto& [key, value] : {std::pair{"/timing/fit_seconds", record.timing->fit_seconds},
                                   {"/throughput/samples_per_second", rate.samples_per_second},
                                   {"/throughput/samples", rate.samples},
                                   {"/throughput/steps", rate.steps}}) {
    if (value && *value < kLeastQuantity) fail(fmt::format("cannot be {}", *value), where, key);
  }
  if (!rate.better.empty()) {
    check_choice("throughput/better", rate.better, kBetter, where);
    if (rate.unit.empty() || rate.unit.size() > kLongestUnit) {
      fail("must be a short unit such as ns/day", where, "/throughput/unit");
    }
  } else if (!rate.unit.empty() && !is_plural(rate.unit)) {
    fail("must be a plural such as tokens, or stand beside \"better\"", where, "/throughput/unit");
  }
  const bool may_lack_time = record.kind != "measured" || record.provenance.program;
  const bool rate_will_do = may_lack_time && rate.samples_per_second;
  if (!record.timing->fit_seconds && !rate_will_do)
    fail("is missing", where, "/timing/fit_seconds");
}

}  // namespace

std::vector<std::pair<const char*, bool>> measured_layout(const LayoutFacts& layout) {
  return {{"nodes", layout.nodes.has_value()},
          {"ntasks", layout.ntasks.has_value()},
          {"cpus_per_task", layout.cpus_per_task.has_value()},
          {"cpus_per_replica", layout.cpus_per_replica.has_value()}};
}

RunRecord::RunRecord() = default;
RunRecord::RunRecord(const RunRecord& other) = default;
RunRecord::RunRecord(RunRecord&& other) noexcept = default;
RunRecord& RunRecord::operator=(const RunRecord& other) = default;
RunRecord& RunRecord::operator=(RunRecord&& other) noexcept = default;
RunRecord::~RunRecord() = default;

// Of RunRecord::parameters, found by the record's JSON.
Json fact_to_json(const Point& point) {
  return to_json(point);
}

// Those that are known here; a record of another build may hold choices that this one has not.
void fact_from_json(const Json& json, Point& point, const FactPlace& place) {
  if (!json.is_object()) place.fail("is missing");
  for (const auto& [name, value] : json.items()) {
    const Parameter* parameter = find_parameter(name);
    if (!parameter || value.is_null()) continue;
    const FactPlace at{place.file, place.key + "/" + name};
    if (parameter->kind == ValueKind::boolean && value.is_boolean()) {
      point.set(name, value.get<bool>());
    } else if (parameter->kind == ValueKind::integer && value.is_number_integer()) {
      point.set(name, value.get<std::int64_t>());
    } else if (parameter->kind == ValueKind::real && value.is_number()) {
      point.set(name, number_from_json(value, kAny, at));
    } else if (parameter->kind == ValueKind::text && value.is_string()) {
      point.set(name, value.get<std::string>());
    } else {
      at.fail("has the wrong type");
    }
  }
}

bool is_plural(std::string_view unit) {
  const auto is_in_word = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  return unit.size() >= 2 && unit.ends_with('s') && std::ranges::all_of(unit, is_in_word);
}

fact::Real RunRecord::fit_seconds() const {
  return timing->fit_seconds;
}

double RunRecord::whole_seconds() const {
  return timing->fit_seconds.value_or(0) + timing->setup_seconds.value_or(0) +
         timing->evaluation_seconds.value_or(0);
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
  if (*ranks && (*ranks)->hosts) return fmt::format("{} hosts", *(*ranks)->hosts);
  return join(each_once(host_names()), ", ");
}

std::vector<std::string> RunRecord::host_names() const {
  std::vector<std::string> names = mapped(*each_rank, &RankFacts::host);
  std::erase(names, "");
  return names;
}

std::vector<const RankFacts*> RunRecord::known_ranks() const {
  std::vector<const RankFacts*> known;
  if (*ranks) known.push_back(&(*ranks)->spread.mean);
  for (const RankFacts& rank : *each_rank) known.push_back(&rank);
  return known;
}

fact::Real RunRecord::max_over_ranks(
    const std::function<fact::Real(const RankFacts&)>& read) const {
  fact::Real most;
  if (*ranks) most = read((*ranks)->spread.max);
  for (const RankFacts& rank : *each_rank) most = std::max(most, read(rank));
  return most;
}

Layout RunRecord::task_layout() const {
  return {layout.nodes.value_or(1),
          layout.ntasks.value_or(1),
          layout.cpus_per_task.value_or(1),
          layout.gpus,
          layout.cpus_per_replica.value_or(1),
          layout.replicas_are != "gpus"};
}

RunRecord begin_record(const RunPlace& place, const std::string& workload,
                       const Point& parameters) {
  RunRecord record;
  record.study = place.study;
  record.point = place.point;
  record.repeat = place.repeat;
  record.session = place.session;
  record.round = place.round;
  record.flags.sequential = place.sequential;
  record.workload = workload;
  record.parameters = parameters;
  return record;
}

RunRecord make_record(const UnfinishedRun& run) {
  RunRecord record = begin_record(run, run.workload, run.parameters);
  record.status = run.status;
  record.reason = run.reason;
  record.layout = layout_facts(make_layout(run.parameters));
  return record;
}

LayoutFacts layout_facts(const Layout& layout) {
  return {.nodes = layout.nodes,
          .ntasks = layout.ntasks,
          .cpus_per_task = layout.cpus_per_task,
          .gpus = layout.gpus,
          .cpus_per_replica = layout.cpus_per_replica,
          .replicas_are = layout.replicas_are_cores ? "cores" : "gpus"};
}

Json to_json(const RunRecord& record) {
  Json json = {{"schema", kRecordSchema}};
  json.update(facts_to_json(record));
  add_rank_lists(json, *record.each_rank);
  Json& parameters = json["parameters"];
  if (!record.workload.empty()) parameters["workload"] = record.workload;
  if (record.control) parameters[kControl] = true;
  return json;
}

RunRecord parse_run_record(const Json& json, const std::string& where) {
  check_schema(json, where);
  RunRecord record;
  record.kind.clear();
  record.status.clear();
  facts_from_json(json, record, {where, ""});
  *record.each_rank = read_rank_lists(json, where);
  check_choice("kind", record.kind, kRecordKinds, where);
  check_choice("status", record.status, kRecordStates, where);
  const Json& parameters = json.at("parameters");
  if (const auto workload = parameters.find("workload");
      workload != parameters.end() && workload->is_string()) {
    record.workload = workload->get<std::string>();
  }
  record.control = parameters.value(kControl, Json(false)) == Json(true);
  if (record.workload.empty() && !record.is_collective()) {
    fail("is missing", where, "/parameters/workload");
  }
  check_layout(record, where);
  if (record.is_collective()) check_collective(json, record, where);
  check_results(record, where);
  return record;
}

}  // namespace paceline
