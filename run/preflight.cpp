#include <fmt/format.h>

#include <algorithm>
#include <iterator>
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
#include "results/names.h"
#include "run/resolve.h"
#include "run/training_run.h"
#include "run/version.h"
#include "run/world.h"

namespace paceline {

namespace {

constexpr char kBetween = '\t';

std::string format_card(const RankCard& card) {
  return fmt::format("{}{}{}{}{}", card.host, kBetween, card.cpus, kBetween, card.other_jobs);
}

RankCard card_in(const std::string& text) {
  std::vector<std::string> parts = split(text, kBetween);
  parts.resize(3);
  return {parts[0], parts[1], static_cast<int>(to_integer(parts[2]).value_or(-1))};
}

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
  throw Error(ErrorKind::usage, "no CPU device of this build computes in " + precision, "",
              "give another --precision");
}

}  // namespace

CpuSet list_cpus(const RankCard& card) {
  return parse_numbers(card.cpus);
}

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
  const auto size = static_cast<std::size_t>(communicators.front()->size());
  std::vector<RankCard> cards;
  const RankCard here{host_name(), "", count_other_jobs()};
  const auto describe_card = [&](const CpuSet& set) {
    return RankCard{here.host, format_cpus(set), here.other_jobs};
  };
  if (communicators.size() == size) {
    std::transform(cpus.begin(), cpus.end(), std::back_inserter(cards), describe_card);
    return cards;
  }
  on_every_replica(communicators, [&](Communicator& communicator, std::size_t i) {
    const auto texts = check_same_config(communicator, rows, format_card(describe_card(cpus[i])));
    if (i == 0) std::transform(texts.begin(), texts.end(), std::back_inserter(cards), card_in);
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
    for (const int cpu : list_cpus(cards[r])) {
      const auto [owner, is_free] = owners.try_emplace({cards[r].host, cpu}, r);
      if (is_free || owner->second == r) continue;
      if (oversubscribe) return true;
      const RankCard& other = cards[owner->second];
      throw Error(ErrorKind::usage,
                  fmt::format("replicas {} and {} would share CPUs ({} and {}) of {}",
                              owner->second, r, other.cpus, cards[r].cpus, cards[r].host),
                  "", "use fewer replicas or CPUs each, bind the tasks, or give --oversubscribe");
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
