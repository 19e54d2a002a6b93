// One page on how a code scales, as computing centres ask for it in applications for time: code,
// machine, base, a table of sizes, the speed-up with its ideal line, and the size to apply for.
#pragma once

#include <vector>

#include "analysis/document/document.h"
#include "analysis/study/comparison.h"

namespace paceline {

struct ProvenanceFact;  // findings/findings.h

// Of the series that reaches the largest size; the page names the others. `base` compares sizes.
// Where base matched finds none, as in studies that begin at several GPUs, the smallest size is it.
// The size to apply for is the largest whose efficiency is at least `least_efficiency` (0.7) with
// its whole 95 % interval, from kFewestRuns or more; else the base. Throws input if no point
// reached its goal. JSON: {"schema": 1, "workload", "precision", "scaling", "series", "base",
// "least_efficiency", "chosen": a size or null, "provenance": {NAME: [{"value", "runs"}]},
// "sizes": [{"size", "nodes", "gpus", "cpus", "runs", "fit_seconds", "samples_per_second",
// "speed_up", "efficiency", "node_hours", "gpu_hours", "core_hours", "verdict"}]}
Document sheet_document(const Study& study, const Base& base, double least_efficiency);

// Its first section: where the rows of a study come from, and what their records lack.
std::vector<ProvenanceFact> list_origins(const Study& study);
Section origin_section(const Study& study, const std::vector<ProvenanceFact>& facts);

// Some rows of a study, with the gaps that are theirs.
Study take_rows(const Study& study, const std::vector<std::size_t>& indices);

}  // namespace paceline
