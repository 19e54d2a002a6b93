#include "run/gpu_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/core/error.h"
#include "engine/core/json_text.h"
#include "engine/core/log.h"
#include "run/record_parts.h"

namespace paceline {

namespace {

constexpr std::size_t kTextBytes = 2048;  // of one GPU, gathered
constexpr std::size_t kFullyDescribed = 8;

Json json_of(const GpuUtilization& gpu) {
  Json json = {{"name", gpu.name},
               {"pci", gpu.pci},
               {"uuid", gpu.uuid},
               {"driver", gpu.driver},
               {"samples", gpu.samples},
               {"seconds", round_digits(gpu.seconds)},
               {"clock_limits", gpu.clock_limits}};
  put_known(json, "utilization", gpu.utilization);
  put_known(json, "memory_utilization", gpu.memory_utilization);
  put_known(json, "sm_mhz", gpu.sm_mhz);
  put_known(json, "least_sm_mhz", gpu.least_sm_mhz);
  put_known(json, "most_sm_mhz", gpu.most_sm_mhz);
  put_known(json, "memory_mhz", gpu.memory_mhz);
  put_known(json, "watts", gpu.watts);
  put_known(json, "watts_limit", gpu.watts_limit);
  put_known(json, "joules", gpu.joules);
  put_known(json, "celsius", gpu.celsius);
  put_known(json, "memory_bytes", gpu.memory_bytes);
  put_known(json, "memory_bytes_total", gpu.memory_bytes_total);
  put_known(json, "uncorrected_errors", gpu.uncorrected_errors);
  put_known(json, "power_capped_share", gpu.power_capped_share);
  put_known(json, "ecc", gpu.ecc);
  put_known(json, "mig", gpu.mig);
  put_known(json, "mps", gpu.mps);
  put_known(json, "compute_mode", gpu.compute_mode);
  put_known(json, "throttled", gpu.throttled);
  return json;
}

// A record stays small: of many GPUs but the first only what differs from card to card.
Json brief(const Json& gpu) {
  Json json;
  for (const char* key : {"pci", "utilization", "sm_mhz", "watts", "celsius", "throttled"}) {
    if (gpu.contains(key)) json[key] = gpu[key];
  }
  return json;
}

// The mean over GPUs that know theirs, as published tables give it.
Json mean_utilization(const Json& gpus) {
  double sum = 0;
  int known = 0;
  for (const Json& gpu : gpus) {
    if (!gpu.contains("utilization") || !gpu["utilization"].is_number()) continue;
    sum += gpu["utilization"].get<double>();
    ++known;
  }
  return known ? Json(round_digits(sum / known)) : Json(nullptr);
}

}  // namespace

GpuReport::GpuReport(const ChosenGpus& gpus) : replicas_(gpus.cards().size()) {
  if (replicas_ == 0) return;
  std::vector<std::string> pcis;
  for (const Gpu& gpu : gpus.cards()) pcis.push_back(gpu.pci);
  try {
    watch_ = gpus.driver().watch(pcis);
  } catch (const Error& error) {
    log::warning("utilization and clocks of GPUs are not known: {}", error.what());
  }
}

Json GpuReport::collect(World& world) {
  Json report = {{"gpus", Json::array()}, {"utilization", nullptr}, {"throttled", false}};
  if (replicas_ == 0) return report;
  std::vector<GpuUtilization> mine(replicas_);
  if (watch_) mine = watch_->stop();
  std::string all;
  on_every_replica(world.communicators(), [&](Communicator& communicator, std::size_t i) {
    std::string text = json_text(json_of(mine[i]));
    if (text.size() > kTextBytes) text = "{}";
    text.resize(kTextBytes, ' ');
    std::string gathered(kTextBytes * static_cast<std::size_t>(communicator.size()), ' ');
    communicator.all_gather(text.data(), kTextBytes, gathered.data());
    if (i == 0) all = std::move(gathered);
  });
  for (std::size_t at = 0; at < all.size(); at += kTextBytes) {
    report["gpus"].push_back(Json::parse(all.substr(at, kTextBytes)));
  }
  report["utilization"] = mean_utilization(report["gpus"]);
  report["throttled"] = std::any_of(
      report["gpus"].begin(), report["gpus"].end(),
      [](const Json& gpu) { return gpu.contains("throttled") && gpu["throttled"] == Json(true); });
  if (report["gpus"].size() > kFullyDescribed) {
    for (std::size_t i = 1; i < report["gpus"].size(); ++i) {
      report["gpus"][i] = brief(report["gpus"][i]);
    }
  }
  return report;
}

}  // namespace paceline
