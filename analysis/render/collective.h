// Renders records of collectives as tables with the columns of nccl-tests: algbw is bytes / time;
// busbw = algbw * 2 (n-1)/n is what each rank must at least send and receive. So busbw compares
// with a link's rate for any n (github.com/NVIDIA/nccl-tests, PERFORMANCE.md).
#pragma once

#include <string>
#include <vector>

#include "analysis/render/render.h"
#include "results/record.h"

namespace paceline {

// For html: a fragment of a page (render_html.h).
std::string render_collectives(const std::vector<Record>& records, Format format);

}  // namespace paceline
