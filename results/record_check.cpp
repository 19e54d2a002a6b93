#include "results/record_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/json_text.h"
#include "engine/core/text.h"
#include "results/parameters.h"
#include "results/record.h"

namespace paceline {

namespace {

constexpr std::int64_t kMostReplicas = 10'000'000;

class Check {
 public:
  Check(const Json& record, const std::string& where) : record_(record), where_(where) {}

  void all() const {
    if (!record_.is_object()) fail("", "is not a record: no JSON object");
    check_schema();
    check_choice("kind", {"measured", "published", "predicted", "imported", "collective"});
    check_choice("status", {"completed", "failed", "timeout", "preempted"});
    for (const char* key :
         {"/study", "/point", "/session", "/reason", "/identity", "/provenance/version",
          "/provenance/commit", "/provenance/cpu_model", "/provenance/data_hash",
          "/provenance/source", "/provenance/stack", "/provenance/hardware"}) {
      check_text(key);
    }
    check_whole("/repeat", 1, true);
    check_whole("/attempt", 1, true);
    check_whole("/round", 0, false);
    check_flags();
    check_parameters();
    check_layout();
    check_finite(record_, "");
    for (const char* key : {"/timing", "/throughput", "/phases", "/input", "/plan", "/probe"}) {
      if (const Json* value = find(key)) check_not_negative(*value, key);
    }
    check_phases();
    check_straggler();
    check_input();
    if (text("kind") == "collective") check_collective();
    check_results();
  }

 private:
  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    throw Error(ErrorKind::input, what, key.empty() ? where_ : where_ + ", key " + key,
                "mend the record or move it away");
  }

  // Null counts as absent.
  const Json* find(const std::string& key) const {
    const Json::json_pointer path(key);
    if (!record_.contains(path) || record_.at(path).is_null()) return nullptr;
    return &record_.at(path);
  }

  std::string text(const char* key) const { return record_.at(key).get<std::string>(); }

  void check_schema() const {
    const Json* schema = find("/schema");
    if (!schema || !schema->is_number_integer()) fail("/schema", "is not a record: no schema");
    const auto version = schema->get<std::int64_t>();
    if (version > kRecordSchema) {
      throw Error(
          ErrorKind::input,
          fmt::format("has schema {}, newer than this build reads ({})", version, kRecordSchema),
          where_ + ", key /schema", "use a newer paceline");
    }
    if (version != kRecordSchema) fail("/schema", fmt::format("has unknown schema {}", version));
  }

  void check_choice(const std::string& key, std::initializer_list<std::string_view> choices) const {
    const Json* value = find("/" + key);
    if (!value || !value->is_string()) fail("/" + key, fmt::format("has no {}", key));
    for (const std::string_view choice : choices) {
      if (value->get_ref<const std::string&>() == choice) return;
    }
    fail("/" + key, fmt::format("has unknown {} {}", key, value->dump()));
  }

  void check_text(const std::string& key) const {
    const Json* value = find(key);
    if (value && !value->is_string()) fail(key, "should be a text");
  }

  void check_whole(const std::string& key, std::int64_t least, bool required) const {
    const Json* value = find(key);
    if (!value) {
      if (required) fail(key, "is missing");
      return;
    }
    if (!value->is_number_integer() || value->get<double>() < static_cast<double>(least) ||
        value->get<double>() > static_cast<double>(kMostReplicas)) {
      fail(key,
           fmt::format("should be a whole number of at least {}, not {}", least, value->dump()));
    }
  }

  void check_flags() const {
    const Json* flags = find("/flags");
    if (!flags) return;
    if (!flags->is_object()) fail("/flags", "should be an object");
    for (const auto& [name, value] : flags->items()) {
      if (!value.is_boolean()) fail("/flags/" + name, "should be true or false");
    }
  }

  // Types only: a record of another build may hold choices that this one does not know.
  void check_parameters() const {
    const Json* parameters = find("/parameters");
    if (!parameters || !parameters->is_object()) fail("/parameters", "is missing");
    const Json* workload = find("/parameters/workload");
    if (text("kind") != "collective" && (!workload || !workload->is_string())) {
      fail("/parameters/workload", "is missing");
    }
    for (const auto& [name, value] : parameters->items()) {
      const Parameter* parameter = find_parameter(name);
      if (!parameter || value.is_null()) continue;
      const bool fits = parameter->kind == ValueKind::boolean   ? value.is_boolean()
                        : parameter->kind == ValueKind::integer ? value.is_number_integer()
                        : parameter->kind == ValueKind::real    ? value.is_number()
                                                                : value.is_string();
      if (!fits) fail("/parameters/" + name, "has the wrong type");
    }
  }

  // A published page need not say how many CPUs there were.
  void check_layout() const {
    const bool all = text("kind") == "measured";
    if (const Json* layout = find("/layout"); !layout || !layout->is_object()) {
      fail("/layout", "is missing");
    }
    check_whole("/layout/gpus", 1, true);
    check_whole("/layout/nodes", 1, all);
    check_whole("/layout/ntasks", 1, all);
    check_whole("/layout/cpus_per_task", 1, all);
    check_whole("/layout/cpus_per_replica", 0, all);
    check_text("/layout/replicas_are");
  }

  void check_finite(const Json& value, const std::string& key) const {
    if (value.is_number_float() && !std::isfinite(value.get<double>())) {
      fail(key, "is not a finite number");
    }
    visit(value, key,
          [this](const Json& child, const std::string& path) { check_finite(child, path); });
  }

  void check_not_negative(const Json& value, const std::string& key) const {
    if (value.is_number() && value.get<double>() < 0) {
      fail(key, fmt::format("cannot be negative: {}", json_text(value)));
    }
    visit(value, key,
          [this](const Json& child, const std::string& path) { check_not_negative(child, path); });
  }

  template <typename Visitor>
  static void visit(const Json& value, const std::string& key, Visitor visitor) {
    if (!value.is_structured()) return;
    for (const auto& [name, child] : value.items()) {
      if (child.is_structured() || child.is_number()) visitor(child, key + "/" + name);
    }
  }

  void check_phases() const {
    const Json* phases = find("/phases");
    if (!phases) return;
    if (!phases->is_array()) fail("/phases", "should be a list, an object a rank");
    for (const Json& rank : *phases) {
      if (!rank.is_object()) fail("/phases", "should be a list, an object a rank");
    }
  }

  void check_straggler() const {
    const Json* straggler = find("/straggler");
    if (!straggler) return;
    if (!straggler->is_object()) fail("/straggler", "should be an object");
    check_whole("/straggler/rank", 0, true);
    for (const char* key : {"/straggler/host", "/straggler/phase"}) check_text(key);
    for (const char* key : {"/straggler/excess_seconds_per_step", "/straggler/share_of_step"}) {
      check_positive(key);
    }
  }

  void check_input() const {
    const Json* input = find("/input");
    if (!input) return;
    if (!input->is_object()) fail("/input", "should be an object");
    for (const char* key : {"/input/cache", "/input/pixels"}) check_text(key);
    check_share("/input/resident_share");
    for (const char* key : {"/input/decoded_bytes", "/input/decode_seconds", "/input/stage_seconds",
                            "/input/bad_samples", "/input/cache_shared", "/input/lost_records"}) {
      check_number(key);
    }
    if (const Json* cold = find("/input/cold"); cold && !cold->is_boolean()) {
      fail("/input/cold", "should be true or false");
    }
  }

  void check_collective() const {
    const Json* rows = find("/collective/rows");
    if (!rows || !rows->is_array() || rows->empty()) fail("/collective/rows", "is missing");
    check_provenance_of_collective();
    for (const char* key : {"/collective/dtype", "/collective/library", "/collective/note"}) {
      check_text(key);
    }
    for (std::size_t i = 0; i < rows->size(); ++i) {
      const std::string row = fmt::format("/collective/rows/{}", i);
      if (!(*rows)[i].is_object()) fail(row, "should be an object");
      for (const char* key : {"/bytes", "/count", "/seconds"}) {
        if (!find(row + key)) fail(row + key, "is missing");
        check_positive(row + key);
      }
      for (const char* key : {"/seconds_min", "/seconds_p95", "/memcpy_seconds", "/library_seconds",
                              "/algbw_bytes_per_second"}) {
        check_positive(row + key);
      }
      for (const char* key : {"/label", "/first_wrong"}) check_text(row + key);
      for (const char* key : {"/wrong", "/busbw_bytes_per_second"}) check_number(row + key);
      check_not_negative((*rows)[i], row);
    }
  }

  void check_provenance_of_collective() const {
    const Json* provenance = find("/provenance");
    if (!provenance || !provenance->is_object()) fail("/provenance", "is missing");
    for (const char* key : {"/provenance/backend_asked", "/provenance/backend_used"}) {
      check_text(key);
    }
    const Json* hosts = find("/provenance/hosts");
    if (!hosts) return;
    const bool names =
        hosts->is_array() && std::all_of(hosts->begin(), hosts->end(),
                                         [](const Json& host) { return host.is_string(); });
    if (!names) fail("/provenance/hosts", "should be a list of names");
  }

  void check_number(const std::string& key) const {
    const Json* value = find(key);
    if (value && !value->is_number()) fail(key, "should be a number");
  }

  void check_positive(const std::string& key) const {
    const Json* value = find(key);
    if (!value) return;
    if (!value->is_number()) fail(key, "should be a number");
    if (!(value->get<double>() > 0))
      fail(key, fmt::format("must be positive, not {}", value->dump()));
  }

  // What is so small that a rate of it is no number any more.
  void check_quantity(const std::string& key) const {
    constexpr double kLeast = 1e-290;
    check_positive(key);
    const Json* value = find(key);
    if (value && value->get<double>() < kLeast) {
      fail(key, fmt::format("cannot be {}", value->dump()));
    }
  }

  void check_share(const std::string& key) const {
    const Json* value = find(key);
    if (!value) return;
    if (!value->is_number() || value->get<double>() < 0 || value->get<double>() > 1) {
      fail(key, fmt::format("should be from 0 to 1, not {}", value->dump()));
    }
  }

  void check_goal() const {
    const Json* until = find("/quality/until");
    if (!until) return;
    if (!until->is_object()) fail("/quality/until", "should be an object");
    check_text("/quality/until/goal");
    if (const Json* reached = find("/quality/until/reached"); reached && !reached->is_boolean()) {
      fail("/quality/until/reached", "should be true or false");
    }
    for (const char* key : {"/epochs", "/steps", "/fit_seconds", "/seconds_with_evaluation"}) {
      check_positive(std::string("/quality/until") + key);
    }
  }

  void check_machine_load() const {
    const Json* load = find("/provenance/machine_load");
    if (!load) return;
    if (!load->is_object()) fail("/provenance/machine_load", "should be an object");
    const Json* busy = find("/provenance/machine_load/busy");
    if (busy && !busy->is_boolean()) {
      fail("/provenance/machine_load/busy", "should be true or false");
    }
    check_text("/provenance/machine_load/why");
    for (const char* key : {"other_cpu_share", "worst_other_cpu_share", "steal_share"}) {
      check_share(std::string("/provenance/machine_load/") + key);
    }
  }

  void check_results() const {
    for (const char* key : {"/timing/fit_seconds", "/throughput/samples_per_second",
                            "/throughput/samples", "/throughput/steps"}) {
      if (text("status") == "completed") check_quantity(key);
    }
    check_machine_load();
    check_share("/utilization");
    check_share("/quality/test_accuracy");
    check_share("/quality/test_top5");
    check_goal();
    if (text("status") != "completed" || text("kind") == "collective") return;
    const bool rate_will_do = text("kind") != "measured";
    if (!find("/timing/fit_seconds") && !(rate_will_do && find("/throughput/samples_per_second"))) {
      fail("/timing/fit_seconds", "is missing");
    }
  }

  const Json& record_;
  const std::string& where_;
};

}  // namespace

void check_record(const Json& record, const std::string& where) {
  Check(record, where).all();
}

}  // namespace paceline
