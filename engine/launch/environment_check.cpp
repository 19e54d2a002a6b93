#include "engine/launch/environment_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "engine/core/text.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& folder, const std::string& beginning = "") {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(beginning)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// "slurmstepd: [4711.batch]", "slurmstepd: [4711_3.0]", "slurmstepd: [4711.extern]".
std::string job_of_title(const std::string& title) {
  constexpr std::string_view kTitle = "slurmstepd: [";
  if (!title.starts_with(kTitle)) return "";
  const std::string job = title.substr(kTitle.size(), title.find_first_of(".]") - kTitle.size());
  const bool plain = !job.empty() && job.find_first_not_of("0123456789_+") == std::string::npos;
  return plain ? job : "";
}

bool names(const std::string& list, std::string_view wanted) {
  const auto words = split(list, ',');
  return std::find(words.begin(), words.end(), wanted) != words.end();
}

constexpr std::size_t kMostNamed = 4;

void remark_on_proxies(const Environment& environment, std::vector<Warning>& remarks) {
  std::vector<std::string> set;
  for (const char* name :
       {"http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}) {
    if (!environment_value(environment, name).empty()) set.emplace_back(name);
  }
  if (set.empty()) return;
  remarks.push_back({fmt::format("{} {} set: downloads go that way, ranks never do",
                                 join(set, ", "), set.size() == 1 ? "is" : "are"),
                     "unset them in jobs (\"unset\" in the site profile) where a library hangs"});
}

void remark_on_fabric(const Environment& environment, const std::vector<std::string>& fabrics,
                      std::vector<Warning>& remarks) {
  if (fabrics.empty()) return;
  const std::string fast = join_first(kMostNamed, fabrics);
  const std::string btl = environment_value(environment, "OMPI_MCA_btl");
  if (environment_value(environment, "OMPI_MCA_pml") == "ob1" &&
      (btl.empty() || names(btl, "tcp"))) {
    remarks.push_back(
        {fmt::format("OMPI_MCA_pml=ob1: MPI talks TCP beside a fast network ({})", fast),
         "take the setting away, or use pml ucx or cm"});
  }
  if (environment_value(environment, "NCCL_IB_DISABLE") == "1" ||
      environment_value(environment, "NCCL_NET") == "Socket") {
    remarks.push_back({fmt::format("NCCL is set to use sockets beside a fast network ({})", fast),
                       "unset NCCL_IB_DISABLE and NCCL_NET"});
  }
}

void remark_on_gpus(const Environment& environment, int gpus_of_node,
                    std::vector<Warning>& remarks) {
  const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
  const auto tasks = to_integer(environment_value(environment, "SLURM_STEP_NUM_TASKS"));
  const bool one = visible != environment.end() && !trim(visible->second).empty() &&
                   visible->second.find(',') == std::string::npos;
  if (one && gpus_of_node > 1 && tasks && *tasks > 1) {
    remarks.push_back(
        {fmt::format(
             "each task sees one of this node's {} GPUs: where the site isolates them, they cannot "
             "copy to each other directly (P2P)",
             gpus_of_node),
         "ask for GPUs a node with --gpu-bind=none (\"gpus\": \"gpus-per-node\" in the site "
         "profile)"});
  }
  if (environment_value(environment, "NCCL_P2P_DISABLE") == "1") {
    remarks.push_back({"NCCL_P2P_DISABLE=1: GPUs of a node talk through host memory", "unset it"});
  }
}

void remark_on_jobs(const std::set<std::string>& others, std::vector<Warning>& remarks) {
  if (others.empty()) return;
  remarks.push_back({fmt::format("{} on this node may disturb what is measured (job {})",
                                 counted(others.size(), "other job"),
                                 join_first(kMostNamed, {others.begin(), others.end()})),
                     "ask for whole nodes (\"exclusive\" in the site profile)"});
}

// Without those that modules of a site load for every session, under names of their own.
std::set<std::string> modules_in(const std::string& list) {
  std::set<std::string> modules;
  for (const std::string& word : split(list, ':')) {
    if (!trim(word).empty()) modules.emplace(trim(word));
  }
  return modules;
}

std::vector<std::string> without(const std::set<std::string>& all,
                                 const std::set<std::string>& taken) {
  std::vector<std::string> rest;
  std::set_difference(all.begin(), all.end(), taken.begin(), taken.end(), std::back_inserter(rest));
  return rest;
}

}  // namespace

std::optional<std::set<std::string>> jobs_here(const Environment& environment,
                                               const fs::path& root) {
  const std::string own = environment_value(environment, "SLURM_JOB_ID");
  if (own.empty()) return std::nullopt;
  std::set<std::string> jobs;
  for (const std::string& process : names_in(root / "proc")) {
    if (process.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream stream(root / "proc" / process / "cmdline", std::ios::binary);
    std::string title;
    std::getline(stream, title, '\0');
    if (const std::string job = job_of_title(title); !job.empty()) jobs.insert(job);
  }
  if (jobs.count(own) == 0) return std::nullopt;  // so others' are hidden, too
  return jobs;
}

NodeScan scan_node(const Environment& environment, const fs::path& root) {
  NodeScan found;
  for (const char* kind : {"infiniband", "cxi"}) {
    const auto devices = names_in(root / "sys/class" / kind);
    found.fabrics.insert(found.fabrics.end(), devices.begin(), devices.end());
  }
  found.gpus_of_node = static_cast<int>(names_in(root / "proc/driver/nvidia/gpus").size());
  if (auto jobs = jobs_here(environment, root)) {
    jobs->erase(environment_value(environment, "SLURM_JOB_ID"));
    found.other_jobs = std::move(*jobs);
  }
  return found;
}

std::vector<Warning> find_remarks(const Environment& environment, const NodeScan& node) {
  std::vector<Warning> remarks;
  remark_on_proxies(environment, remarks);
  remark_on_fabric(environment, node.fabrics, remarks);
  remark_on_gpus(environment, node.gpus_of_node, remarks);
  remark_on_jobs(node.other_jobs, remarks);
  return remarks;
}

std::vector<Warning> remarks_on_modules(const std::string& at_build, const std::string& now) {
  if (at_build.empty()) return {};
  const auto then = modules_in(at_build), loaded = modules_in(now);
  const auto missing = without(then, loaded), added = without(loaded, then);
  if (missing.empty()) return {};  // more than at the build: a launcher's, an editor's
  return {
      {fmt::format("built with modules that are not loaded: {}{}", join_first(kMostNamed, missing),
                   added.empty() ? "" : "; loaded instead: " + join_first(kMostNamed, added)),
       "load them (\"modules\" in the site profile), or build again with these"}};
}

}  // namespace paceline
