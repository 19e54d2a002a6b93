#include "slurm/job_energy.h"

#include <fmt/format.h>

#include "engine/core/text.h"
#include "slurm/array_id.h"

namespace paceline {

namespace {

constexpr double kWattHour = 3600;
// Slurm's word for "not known" in 32 and 64 bits, which accounting shows as a number.
constexpr double kUnknown = 4294967294, kUnknown64 = 1.8e19;

// "pm_counters" of "acct_gather_energy/pm_counters"; empty: none.
std::string find_plugin(const std::string& type) {
  const auto slash = type.rfind('/');
  const std::string name = slash == std::string::npos ? type : type.substr(slash + 1);
  return name == "none" || name == "(null)" ? "" : name;
}

}  // namespace

std::string JobEnergy::text() const {
  return fmt::format(
      "energy by Slurm ({}): {:.4g} Wh of {} job{}, with setup, and with other jobs on shared "
      "nodes",
      plugin, joules / kWattHour, elements, elements == 1 ? "" : "s");
}

std::optional<JobEnergy> ask_energy(const SlurmCommands& slurm,
                                    const std::vector<std::int64_t>& jobs) {
  if (jobs.empty()) return std::nullopt;
  JobEnergy energy;
  energy.plugin = find_plugin(slurm.configured("AcctGatherEnergyType"));
  if (energy.plugin.empty()) return std::nullopt;
  std::vector<std::string> ids;
  for (const std::int64_t job : jobs) ids.push_back(std::to_string(job));
  const CommandResult result =
      slurm.run({"sacct", "-n", "-P", "-X", "-j", join(ids, ","), "-o", "JobID,ConsumedEnergyRaw"});
  for (const std::string& line : split(result.out, '\n')) {
    const auto columns = split(line, '|');
    if (columns.size() != 2 || !parse_array_id(columns[0])) continue;
    const double joules = to_real(columns[1]).value_or(0);
    if (joules <= 0 || joules == kUnknown || joules >= kUnknown64) continue;
    energy.joules += joules;
    ++energy.elements;
  }
  return energy.elements > 0 ? std::optional(energy) : std::nullopt;
}

}  // namespace paceline
