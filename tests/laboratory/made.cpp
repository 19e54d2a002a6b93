#include "tests/laboratory/made.h"

#include <nlohmann/json.hpp>

namespace paceline::laboratory {

std::vector<Json> Made::records(std::uint32_t seed) const {
  const Law law{"made", scaling, [this](int n) { return parts(n); }};
  return make_records(law, design, noise, seed);
}

Records made(const Made& each) {
  return [each](std::uint32_t seed) { return each.records(seed); };
}

Records together(const std::vector<Records>& parts) {
  return [parts](std::uint32_t seed) {
    std::vector<Json> all;
    for (std::uint32_t i = 0; i < parts.size(); ++i) {
      const auto own = parts[i](static_cast<std::uint32_t>(parts.size()) * seed + i);
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  };
}

Records changed(const Made& each, Change change) {
  return [each, change = std::move(change)](std::uint32_t seed) {
    std::vector<Json> all = each.records(seed);
    for (Json& record : all) change(record, record["layout"]["gpus"], record["round"]);
    return all;
  };
}

Parts ideal_parts(double n) {
  return {.compute = kOne / n};
}

std::function<Parts(double)> communicating(std::function<double(double)> share) {
  return [share = std::move(share)](double n) {
    return Parts{.compute = kOne / n, .communication = n > 1 ? kOne / n * share(n) : 0};
  };
}

Noise with_event(double run, std::function<double(const Place&)> event) {
  Noise noise{.run = run};
  noise.event = std::move(event);
  return noise;
}

void fail(Json& record) {
  record["status"] = "failed";
  record["reason"] = "rank 3 on node01: out of memory";
  for (const char* key : {"timing", "throughput", "phases", "quality"}) record.erase(key);
}

void set_program(Json& record, const std::string& name) {
  record["point"] =
      "gpus=" + std::to_string(record["layout"]["gpus"].get<int>()) + ",program=" + name;
  record["provenance"]["program"] = {{"name", name}};
  Json& parameters = record["parameters"];
  parameters["workload"] = "command";
  parameters["program"] = name;
  for (const char* key : {"backend", "epochs", "learning_rate", "precision"}) parameters.erase(key);
  record.erase("phases");
}

void add(std::vector<NamedSet>& all, const std::string& name, const std::string& truth,
         const Records& records, const std::vector<std::string>& must,
         const std::vector<std::string>& never, const std::string& unless) {
  all.push_back({name, truth, records, must, never, unless});
}

}  // namespace paceline::laboratory
