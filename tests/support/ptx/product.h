// The PTX of our kernels, as the build makes it of the tables (kernels/table_*.cu)
// with the program's own flags.
#pragma once

#include <string>

#include "tests/support/ptx/module.h"

namespace paceline::ptx {

const std::string& product_text();
const PtxModule& product_module();

}  // namespace paceline::ptx
