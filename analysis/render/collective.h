// Records of collectives as tables with the columns of nccl-tests and their meaning: algbw is
// bytes / time, busbw = algbw * 2 (n-1)/n is what each rank must send and receive at least, so that
// it compares with a link's rate whatever n is (github.com/NVIDIA/nccl-tests, PERFORMANCE.md).
#pragma once

#include <string>
#include <vector>

#include "analysis/render/render.h"
#include "results/record.h"

namespace paceline {

// Of html, a fragment for a page (render_html.h).
std::string render_collectives(const std::vector<Record>& records, Format format);

}  // namespace paceline
