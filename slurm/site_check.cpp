#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "engine/core/text.h"
#include "slurm/cluster_facts.h"
#include "slurm/site.h"

namespace paceline {

namespace {

std::vector<std::string> split_lines(const std::string& text) {
  auto lines = mapped(split(text, '\n'), [](const auto& line) { return std::string(trim(line)); });
  std::erase(lines, "");
  return each_once(lines);
}

class Checker {
 public:
  Checker(const Site& site, const SlurmCommands& slurm) : site_(site), slurm_(slurm) {}

  SiteReport run() {
    fact("profile", fmt::format("{} ({})", site_.name, site_.where));
    const CommandResult version = slurm_.run({"sbatch", "--version"});
    fact("Slurm", version.ok() ? std::string(trim(version.out)) : version.complaint());
    if (version.code == 127) {
      finding("sbatch is not in PATH", "log in to a node where Slurm's commands are", true);
      return std::move(report_);
    }
    check_sizes();
    check_partition();
    check_nodes();
    check_launcher();
    check_files();
    return std::move(report_);
  }

 private:
  void fact(const std::string& name, const std::string& text) {
    report_.facts.emplace_back(name, text);
  }

  void finding(const std::string& what, const std::string& cure, bool blocks) {
    report_.findings.push_back({what, cure, blocks});
  }

  void check_sizes() {
    const std::string configured = slurm_.configured("MaxArraySize");
    if (configured.empty()) return finding("slurmctld does not answer", "try again later", true);
    fact("MaxArraySize", configured);
    const auto size = to_integer(configured);
    if (site_.max_array_size > 0 && size && site_.max_array_size > *size) {
      finding(
          fmt::format("array.max_size is {}, Slurm's MaxArraySize {}", site_.max_array_size, *size),
          "lower it, or leave it out: then Slurm is asked", true);
    }
  }

  // "name|gres" of each partition that this user sees.
  void check_partition() {
    const CommandResult result = slurm_.run({"sinfo", "-h", "-o", "%R|%G"});
    if (!result.ok()) return fact("partitions", result.complaint());
    const auto rows = split_lines(result.out);
    std::vector<std::string> names;
    std::string gres;
    for (const std::string& row : rows) {
      const auto bar = row.find('|');
      const std::string name = row.substr(0, bar);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      if (bar == std::string::npos || (!site_.partition.empty() && name != site_.partition))
        continue;
      gres += (gres.empty() ? "" : ", ") + row.substr(bar + 1);
    }
    fact("partitions", join(names, ", "));
    for (SiteFinding& refusal : find_refusals(site_, slurm_)) {
      report_.findings.push_back(std::move(refusal));
    }
    const bool found = std::none_of(report_.findings.begin(), report_.findings.end(),
                                    [](const SiteFinding& finding) { return finding.blocks; });
    if (site_.gpu_form == GpuForm::none || !found) return;
    fact("GPUs", gres);
    if (gres.find("gpu") == std::string::npos) {
      finding("the partition has no GPUs that Slurm knows of", "choose another partition", true);
    } else if (!site_.gpu_type.empty() && gres.find("gpu:" + site_.gpu_type) == std::string::npos) {
      finding(fmt::format("no GPUs of type {} there: {}", site_.gpu_type, gres),
              "choose a type that is listed, or none", true);
    }
  }

  // A profile that knows fewer spreads points over more nodes than they need; one that knows more
  // makes jobs that never start.
  void check_nodes() {
    const NodeCounts facts = count_nodes(site_, slurm_);
    const auto compare = [&](const char* key, int here, int there) {
      if (here == 0 || there == 0 || here == there) return;
      finding(fmt::format("{} is {}, and Slurm reports {}", key, here, there),
              "correct it, or leave it out: then Slurm is asked", here > there);
    };
    compare("cores_per_node", site_.cores_per_node, facts.cores);
    compare("cpus_per_node", site_.cpus_per_node, facts.cpus);
    compare("gpus_per_node", site_.gpus_per_node, facts.gpus);
  }

  void check_launcher() {
    const bool srun = site_.launcher == JobLauncher::srun;
    if (!slurm_.has(srun ? "srun" : "mpirun")) {
      finding(fmt::format("{} is not in PATH here", srun ? "srun" : "mpirun"),
              "it must be in the jobs: check \"modules\"", false);
      return;
    }
    if (!srun) return;
    const CommandResult result = slurm_.run({"srun", "--mpi=list"});
    if (!result.ok()) return fact("kinds of MPI", result.complaint());
    const std::string kinds = join(split_lines(result.out + result.err), " ");
    fact("kinds of MPI", kinds);
    for (const std::string& option : site_.launcher_options) {
      if (!option.starts_with("--mpi=")) continue;
      const std::string kind = option.substr(6);
      if (kinds.find(kind) == std::string::npos) {
        finding(fmt::format("srun has no MPI of kind {}", kind),
                "choose one that is listed in \"launcher_options\", or \"launcher\": \"mpirun\"",
                true);
      }
    }
  }

  void check_files() {
    const auto look = [&](const char* key, const std::string& path) {
      std::error_code ignored;
      if (!path.starts_with('/') || std::filesystem::exists(path, ignored)) return;
      finding(fmt::format("{} {} is not there, as seen from here", key, path),
              "check it, if the compute nodes see the same", false);
    };
    look("data", site_.data);
    look("program", site_.program);
    if (!site_.container.on) return;
    look("image", site_.container.image);
    const std::string& command = site_.container.command;
    if (command.find('/') == std::string::npos && !slurm_.has(command)) {
      finding(command + " is not in PATH here", "it must be in the jobs: check \"modules\"", false);
    }
  }

  const Site& site_;
  const SlurmCommands& slurm_;
  SiteReport report_;
};

}  // namespace

std::vector<SiteFinding> find_refusals(const Site& site, const SlurmCommands& slurm) {
  std::vector<SiteFinding> findings;
  const auto look = [&](const char* what, const std::string& name,
                        const std::vector<std::string>& known) {
    if (name.empty() || known.empty() || std::ranges::count(known, name) > 0) return;
    findings.push_back(
        {fmt::format("there is no {} {}", what, name), suggestion(name, known), true});
  };
  using Words = std::vector<std::string>;
  const auto first_words = [&](const Words& command) -> Words {
    if (!slurm.has(command.front())) return {};
    const CommandResult result = slurm.run(command);
    if (!result.ok()) return {};
    return mapped(split_lines(result.out),
                  [](const std::string& line) { return line.substr(0, line.find('|')); });
  };
  // Several may be named; Slurm takes the first that can start.
  if (!site.partition.empty()) {
    const auto partitions = first_words({"sinfo", "-h", "-o", "%R"});
    for (const std::string& name : split(site.partition, ',')) look("partition", name, partitions);
  }
  if (!site.account.empty()) {
    look("account of yours", to_lower(site.account),  // as Slurm keeps them
         first_words({"sacctmgr", "-n", "-P", "show", "assoc", "where", "user=" + user_name(),
                      "format=Account,Partition"}));
  }
  return findings;
}

SiteReport check_site(const Site& site, const SlurmCommands& slurm) {
  return Checker(site, slurm).run();
}

}  // namespace paceline
