#include "slurm/job_array.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/text.h"

namespace paceline {

namespace {

Need larger(const Need& a, const Need& b) {
  Need both = a;
  both.minutes = std::max(a.minutes, b.minutes);
  both.memory_mb = std::max(a.memory_mb, b.memory_mb);
  both.time_is_known = a.time_is_known && b.time_is_known;
  both.is_cut = a.is_cut || b.is_cut;
  return both;
}

// Parts as equal as can be: a last array of one element would run apart from the others.
std::vector<JobArray> split_array(const JobArray& whole, int most_elements) {
  const std::size_t most = static_cast<std::size_t>(std::max(1, most_elements));
  const std::size_t count = whole.runs.size(), parts = (count + most - 1) / most;
  if (parts <= 1) return {whole};
  std::vector<JobArray> arrays;
  for (std::size_t part = 0; part < parts; ++part) {
    JobArray array = whole;
    array.name = fmt::format("{}-{}of{}", whole.name, part + 1, parts);
    const auto at = [&](std::size_t boundary) {
      return whole.runs.begin() + static_cast<std::ptrdiff_t>(count * boundary / parts);
    };
    array.runs.assign(at(part), at(part + 1));
    arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace

std::string JobShape::name() const {
  return fmt::format("{}n{}t{}c", nodes, ntasks, cpus_per_task) +
         (gpus > 0 ? fmt::format("{}g", gpus) : "");
}

std::string JobShape::text() const {
  return fmt::format("{}, {} of {}", counted(nodes, "node"), counted(ntasks, "task"),
                     counted(cpus_per_task, "CPU")) +
         (gpus > 0 ? ", " + counted(gpus, "GPU") : "");
}

JobShape make_shape(const Layout& layout) {
  return {layout.nodes, layout.replicas_are_cores ? 0 : layout.gpus, layout.ntasks,
          layout.cpus_per_task};
}

std::vector<JobArray> group_runs(const std::vector<PlannedPoint>& points,
                                 const std::vector<ScheduledRun>& runs,
                                 const std::vector<Need>& needs, int most_elements) {
  std::vector<JobArray> wholes;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const JobShape shape = make_shape(points[runs[i].point].layout);
    const auto found = std::find_if(wholes.begin(), wholes.end(),
                                    [&](const JobArray& array) { return array.shape == shape; });
    if (found == wholes.end()) {
      wholes.push_back({shape.name(), shape, {runs[i]}, needs[i]});
    } else {
      found->runs.push_back(runs[i]);
      found->need = larger(found->need, needs[i]);
    }
  }
  std::sort(wholes.begin(), wholes.end(),
            [](const JobArray& a, const JobArray& b) { return a.shape < b.shape; });
  std::vector<JobArray> arrays;
  for (const JobArray& whole : wholes) {
    for (JobArray& part : split_array(whole, most_elements)) arrays.push_back(std::move(part));
  }
  return arrays;
}

}  // namespace paceline
