#include "run/gpu_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/core/error.h"
#include "engine/core/json_text.h"
#include "engine/core/log.h"
#include "run/gather_text.h"

namespace paceline {

namespace {

constexpr std::size_t kGpuTextBytes = 2048;  // of one GPU, gathered
constexpr std::size_t kFullyDescribed = 8;

GpuFacts collect_facts(const GpuUtilization& gpu) {
  GpuFacts facts;
  facts.name = gpu.name;
  facts.pci = gpu.pci;
  facts.uuid = gpu.uuid;
  facts.driver = gpu.driver;
  facts.samples = gpu.samples;
  facts.seconds = gpu.seconds;
  facts.clock_limits = gpu.clock_limits;
  facts.utilization = gpu.utilization;
  facts.memory_utilization = gpu.memory_utilization;
  facts.sm_mhz = gpu.sm_mhz;
  facts.least_sm_mhz = gpu.least_sm_mhz;
  facts.most_sm_mhz = gpu.most_sm_mhz;
  facts.memory_mhz = gpu.memory_mhz;
  facts.watts = gpu.watts;
  facts.watts_limit = gpu.watts_limit;
  facts.joules = gpu.joules;
  facts.celsius = gpu.celsius;
  facts.memory_bytes = gpu.memory_bytes;
  facts.memory_bytes_total = gpu.memory_bytes_total;
  facts.uncorrected_errors = gpu.uncorrected_errors;
  facts.power_capped_share = gpu.power_capped_share;
  facts.ecc = gpu.ecc;
  facts.mig = gpu.mig;
  facts.mps = gpu.mps;
  facts.compute_mode = gpu.compute_mode.value_or("");
  facts.throttled = gpu.throttled;
  return facts;
}

// A record stays small: of many GPUs but the first only what differs from card to card.
GpuFacts brief(const GpuFacts& gpu) {
  GpuFacts facts;
  facts.pci = gpu.pci;
  facts.utilization = gpu.utilization;
  facts.sm_mhz = gpu.sm_mhz;
  facts.watts = gpu.watts;
  facts.joules = gpu.joules;
  facts.celsius = gpu.celsius;
  facts.memory_bytes = gpu.memory_bytes;
  facts.throttled = gpu.throttled;
  return facts;
}

// As published tables give it.
std::optional<double> mean_utilization(const std::vector<GpuFacts>& gpus) {
  double sum = 0;
  int known = 0;
  for (const GpuFacts& gpu : gpus) {
    if (!gpu.utilization) continue;
    sum += *gpu.utilization;
    ++known;
  }
  return known > 0 ? std::optional(sum / known) : std::nullopt;
}

void summarize(GpuUse& use) {
  use.utilization = mean_utilization(use.each);
  use.throttled = std::any_of(use.each.begin(), use.each.end(),
                              [](const GpuFacts& gpu) { return gpu.throttled.value_or(false); });
  if (use.each.size() > kFullyDescribed) {
    std::transform(use.each.begin() + 1, use.each.end(), use.each.begin() + 1, brief);
  }
}

}  // namespace

GpuReport::GpuReport(const ChosenGpus& gpus) : replicas_(gpus.cards().size()) {
  if (replicas_ == 0) return;
  std::vector<std::string> pcis;
  for (const Gpu& gpu : gpus.cards()) pcis.push_back(gpu.pci);
  try {
    watch_ = gpus.driver().watch(pcis);
  } catch (const Error& error) {
    log::warning("GPU utilization and clocks are unavailable: {}", error.what());
  }
}

std::vector<GpuUtilization> GpuReport::stop() {
  return watch_ ? watch_->stop() : std::vector<GpuUtilization>(replicas_);
}

GpuUse GpuReport::collect_here() {
  GpuUse use;
  for (const GpuUtilization& gpu : stop()) use.each.push_back(collect_facts(gpu));
  summarize(use);
  return use;
}

GpuUse GpuReport::collect(World& world) {
  GpuUse use;
  if (replicas_ == 0) return use;
  std::vector<std::string> mine;
  for (const GpuUtilization& gpu : stop()) mine.push_back(json_text(to_json(collect_facts(gpu))));
  for (const std::string& text : gather_texts(world, mine, kGpuTextBytes)) {
    use.each.push_back(parse_gpu_facts(Json::parse(text), "another rank"));
  }
  summarize(use);
  return use;
}

}  // namespace paceline
