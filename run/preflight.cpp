#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "engine/core/backend_stack.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/device/device.h"
#include "engine/launch/environment_check.h"
#include "engine/launch/process_rank.h"
#include "engine/launch/topology.h"
#include "engine/plan/plan.h"
#include "engine/train/gather.h"
#include "results/names.h"
#include "run/resolve.h"
#include "run/training_run.h"
#include "run/version.h"
#include "run/world.h"

namespace paceline {

namespace {

// On CPUs, in the precision of as many bytes: tf32 and fp16 are of GPUs.
std::unique_ptr<Device> make_device(const std::string& precision) {
  DeviceOptions options;
  options.precision = precision == "tf32" ? "fp32" : precision == "fp16" ? "bf16" : precision;
  for (const Name& device : known_names().devices) {
    const auto* row = find_factory(device_table(), device.name);
    const auto& known = device.precisions;
    const bool computes = std::find(known.begin(), known.end(), options.precision) != known.end();
    if (row && computes && !device.gpus) return row->make(options);
  }
  throw usage_error("no CPU device of this build computes in " + precision, "",
                    "give another --precision");
}

}  // namespace

std::vector<ConfigRow> rows_of_build() {
  const Build b = build();
  return {{"build", build_id()},
          {"compiler", b.compiler},
          {"compiler flags", b.compiler_flags},
          {"build type", b.build_type}};
}

std::vector<ConfigRow> make_rows(const Point& parameters) {
  std::vector<ConfigRow> rows;
  for (const auto& [name, value] : parameters.values()) {
    const Parameter& parameter = *find_parameter(name);
    if (parameter.identity() && !parameter.is_file) rows.push_back({name, to_text(value)});
  }
  return rows;
}

std::vector<RankCard> exchange_rank_cards(std::vector<std::unique_ptr<Communicator>>& communicators,
                                          const std::vector<CpuSet>& cpus,
                                          const std::vector<ConfigRow>& rows) {
  std::vector<RankCard> cards;
  const std::string host = host_name();
  const int other_jobs = count_other_jobs();
  on_every_replica(communicators, [&](Communicator& communicator, std::size_t i) {
    check_same_config(communicator, rows);
    const RankCard mine{host, format_cpus(cpus[i]), other_jobs};
    std::vector<RankCard> gathered = gather(communicator, mine);
    if (i == 0) cards = std::move(gathered);
  });
  return cards;
}

int count_other_jobs() {
  const auto jobs = jobs_here(environment_of_process());
  return jobs ? static_cast<int>(jobs->size()) - 1 : -1;
}

bool check_rank_cards(const std::vector<RankCard>& cards, bool oversubscribe) {
  std::map<std::pair<std::string, int>, std::size_t> owners;  // of CPUs of hosts
  for (std::size_t r = 0; r < cards.size(); ++r) {
    for (const int cpu : parse_numbers(cards[r].cpus)) {
      const auto [owner, is_free] = owners.try_emplace({cards[r].host, cpu}, r);
      if (is_free || owner->second == r) continue;
      if (oversubscribe) return true;
      const RankCard& other = cards[owner->second];
      throw usage_error(fmt::format("replicas {} and {} would share CPUs ({} and {}) of {}",
                                    owner->second, r, other.cpus, cards[r].cpus, cards[r].host),
                        "",
                        "use fewer replicas or CPUs each, bind the tasks, or give --oversubscribe");
    }
  }
  return false;
}

MemoryUse planned_memory(const Workload& workload, const Point& parameters) {
  Point p = parameters;
  for (const auto& [name, value] : workload.defaults.values()) p.set_default(name, value);
  p.set_default("precision", std::string("fp32"));
  const Settings given(p);
  const auto device = make_device(given.text("precision"));
  const Plan plan =
      make_plan(make_network(workload, make_network_config(p)),
                static_cast<int>(given.integer("batch_per_replica")), device->precision(),
                [&](const Operation& op) { return device->supports(op); });
  return memory_use(plan, parse_optimizer(given.text("optimizer")), 0);
}

double planned_replica_bytes(const std::string& workload, const Point& parameters) {
  return static_cast<double>(planned_memory(make_workload(workload), parameters).total());
}

}  // namespace paceline
