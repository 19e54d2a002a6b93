// The #SBATCH lines of a script.
#pragma once

#include <string>
#include <vector>

#include "slurm/job_array.h"
#include "slurm/site.h"

namespace paceline {

struct ScriptSetup;

std::vector<std::string> array_directives(const Site& site, const JobArray& array,
                                          const ScriptSetup& setup);
std::vector<std::string> collect_directives(const Site& site, const ScriptSetup& setup);

// "--gres=gpu:v100:4"; none where the shape has no GPUs. Throws usage where the form is "none", or
// cannot give this shape its GPUs.
std::vector<std::string> gpu_options(const Site& site, const JobShape& shape);

// "--mem=8000M"; none where the site has no form for it. `memory_mb` is of a node.
std::vector<std::string> memory_options(const Site& site, const JobShape& shape,
                                        std::int64_t memory_mb);

std::string time_text(int minutes);  // "1:05:00", "2-00:00:00"

}  // namespace paceline
