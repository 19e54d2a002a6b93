// The kernels of kernels/all.h as functions that the CUDA runtime launches.
#pragma once

#include <map>
#include <typeindex>

namespace paceline::cuda {

std::map<std::type_index, const void*> device_kernels();

}  // namespace paceline::cuda
