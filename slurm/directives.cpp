// The #SBATCH lines of a script.
#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "slurm/script.h"

namespace paceline {

namespace {

// A name that Slurm takes for a pattern.
std::string log_pattern(const JobArray& array, const ScriptSetup& setup, const char* ending) {
  if (setup.by_hand.empty()) return file_of_array(setup.session, array.name, ending).string();
  const std::string folder = setup.by_hand.string();
  if (folder.find_first_of("%\\\"'\n") != std::string::npos) {
    throw usage_error("Slurm cannot take the name of this folder for its logs", folder,
                      "name another: --scripts FOLDER");
  }
  const std::string name = folder + "/" + array.name + ending;
  return name.find(' ') == std::string::npos ? name : '"' + name + '"';
}

constexpr int kCollectMinutes = 10;

class Directives {
 public:
  void add(const std::string& option, const std::string& value) {
    if (!value.empty()) line("--" + option + "=" + value);
  }
  void line(const std::string& option) { lines_.push_back("#SBATCH " + option); }
  void verbatim(const std::vector<std::string>& lines) {
    lines_.insert(lines_.end(), lines.begin(), lines.end());
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

void add_who(Directives& directives, const Site& site) {
  directives.add("account", site.account);
  directives.add("partition", site.partition);
  directives.add("qos", site.qos);
}

std::string with_type(const Site& site, int count) {
  return site.gpu_type.empty() ? std::to_string(count) : fmt::format("{}:{}", site.gpu_type, count);
}

// Who asks for what.
void add_request(Directives& directives, const Site& site, const JobArray& job) {
  const JobShape& shape = job.shape;
  add_who(directives, site);
  directives.add("constraint", site.constraint);
  directives.add("nodes", std::to_string(shape.nodes));
  directives.add("ntasks", std::to_string(shape.ntasks));
  if (site.ntasks_per_node) {
    directives.add("ntasks-per-node", std::to_string(shape.tasks_per_node()));
  }
  directives.add("cpus-per-task", std::to_string(shape.cpus_per_task));
  directives.add("hint", site.hint);
  for (const std::string& option : gpu_options(site, shape)) directives.line(option);
  for (const std::string& option : memory_options(site, shape, job.need.memory_mb)) {
    directives.line(option);
  }
  if (site.exclusive) directives.line("--exclusive");
  directives.add("time", time_text(job.need.minutes));
}

[[noreturn]] void refuse(const Site& site, const std::string& what, const std::string& fix) {
  throw usage_error(what, site.where, fix);
}

std::string memory_text(std::int64_t mb) {
  return mb % 1024 == 0 ? fmt::format("{}G", mb / 1024) : fmt::format("{}M", mb);
}

int even_share(const Site& site, const JobShape& shape, int parts, const char* of_what) {
  if (parts > 0 && shape.gpus % parts == 0) return shape.gpus / parts;
  refuse(site,
         fmt::format("{} cannot be requested as equal GPUs per {} with form {}", shape.text(),
                     of_what, to_string(site.gpu_form)),
         "use form gres or gpus");
}

}  // namespace

std::vector<std::string> gpu_options(const Site& site, const JobShape& shape) {
  if (shape.gpus == 0) return {};
  switch (site.gpu_form) {
    case GpuForm::gres:
      return {"--gres=gpu:" + with_type(site, even_share(site, shape, shape.nodes, "node"))};
    case GpuForm::gpus:
      return {"--gpus=" + with_type(site, shape.gpus)};
    case GpuForm::gpus_per_task:
      return {"--gpus-per-task=" + with_type(site, even_share(site, shape, shape.ntasks, "task"))};
    case GpuForm::gpus_per_node:
      return {"--gpus-per-node=" + with_type(site, even_share(site, shape, shape.nodes, "node")),
              "--gpu-bind=none"};
    case GpuForm::none:
      break;
  }
  refuse(site,
         fmt::format("{} needs GPUs, but the site profile has no form for them", shape.text()),
         "add \"gpus\": {\"form\": \"gres\"}, or run on the cpu device (--set device=cpu)");
}

std::vector<std::string> memory_options(const Site& site, const JobShape& shape,
                                        std::int64_t memory_mb) {
  if (memory_mb <= 0) return {};
  const auto share = [&](std::int64_t parts) { return (memory_mb + parts - 1) / parts; };
  const std::int64_t cpus_of_node = std::int64_t{shape.tasks_per_node()} * shape.cpus_per_task;
  switch (site.memory_form) {
    case MemoryForm::none:
      return {};
    case MemoryForm::mem_per_cpu:
      return {"--mem-per-cpu=" +
              memory_text(std::max(share(cpus_of_node), std::int64_t{site.gb_per_cpu} * 1024))};
    case MemoryForm::mem_per_gpu:
      if (shape.gpus_per_node() > 0) {
        return {"--mem-per-gpu=" + memory_text(share(shape.gpus_per_node()))};
      }
      return {"--mem=" + memory_text(memory_mb)};  // a run without GPUs
    case MemoryForm::mem:
      return {"--mem=" + memory_text(memory_mb)};
  }
  return {};
}

std::string time_text(int minutes) {
  const int days = minutes / (24 * 60), hours = minutes / 60 % 24;
  if (days > 0) return fmt::format("{}-{:02}:{:02}:00", days, hours, minutes % 60);
  return fmt::format("{}:{:02}:00", hours, minutes % 60);
}

std::vector<std::string> array_directives(const Site& site, const JobArray& array,
                                          const ScriptSetup& setup) {
  Directives directives;
  directives.add("job-name", job_name(array.name, setup));
  directives.add("array", fmt::format("0-{}{}", array.runs.size() - 1,
                                      site.throttle > 0 ? fmt::format("%{}", site.throttle) : ""));
  directives.add("output", log_pattern(array, setup, ".%A_%a.log"));
  if (site.error_file) directives.add("error", log_pattern(array, setup, ".%A_%a.err"));
  directives.line("--open-mode=append");
  add_request(directives, site, array);
  if (site.signal_seconds > 0 && array.need.minutes * 60 > 2 * site.signal_seconds) {
    directives.add("signal", fmt::format("B:USR1@{}", site.signal_seconds));
  }
  directives.line(site.requeue ? "--requeue" : "--no-requeue");
  directives.verbatim(site.extra);
  directives.verbatim(site.burst_buffer);
  return directives.take();
}

std::vector<std::string> screen_directives(const Site& site, const JobArray& job,
                                           const ScriptSetup& setup) {
  Directives directives;
  directives.add("job-name", job_name(job.name, setup));
  directives.add("output", job.name + ".%j.log");
  add_request(directives, site, job);
  directives.line("--no-requeue");
  directives.verbatim(site.extra);
  return directives.take();
}
std::vector<std::string> collect_directives(const Site& site, const ScriptSetup& setup) {
  Directives directives;
  directives.add("job-name", job_name("collect", setup));
  directives.add("output", file_of_array(setup.session, "collect", ".%j.log").string());
  if (site.error_file) {
    directives.add("error", file_of_array(setup.session, "collect", ".%j.err").string());
  }
  add_who(directives, site);
  directives.add("nodes", "1");
  directives.add("ntasks", "1");
  directives.add("cpus-per-task", "1");
  directives.add("time", time_text(kCollectMinutes));
  directives.verbatim(site.extra);
  return directives.take();
}

}  // namespace paceline
