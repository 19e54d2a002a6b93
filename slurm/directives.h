// Generates the #SBATCH lines of a script.
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

// "--gres=gpu:v100:4". Empty for shapes without GPUs. Throws usage if the form is "none" or cannot
// express this shape.
std::vector<std::string> gpu_options(const Site& site, const JobShape& shape);

// "--mem=8000M", "--mem=8G". Empty if the site has no form for memory. `memory_mb` is per node.
std::vector<std::string> memory_options(const Site& site, const JobShape& shape,
                                        std::int64_t memory_mb);

std::string time_text(int minutes);  // "1:05:00", "2-00:00:00"

}  // namespace paceline
