// Creates oneDNN's primitive descriptors, whose API differs between versions 2 and 3. CMake selects
// descriptors_v2.cpp or descriptors_v3.cpp. The rest of the oneDNN API that Paceline uses is the
// same in both.
//
// Planes, weights and biases follow oneDNN's documentation of each primitive. Padding is symmetric.
// An empty `bias` means none. All functions throw dnnl::error.
#pragma once

#include <dnnl.hpp>

namespace paceline::cpu::descriptors {

using dnnl::memory;

// Parameters that the three primitives of a convolution share.
struct Window {
  dnnl::algorithm algorithm;
  memory::dims strides, padding;
};

dnnl::matmul::primitive_desc matmul(const dnnl::engine& engine, const memory::desc& left,
                                    const memory::desc& right, const memory::desc& out,
                                    const dnnl::primitive_attr& attributes);

dnnl::convolution_forward::primitive_desc forward(const dnnl::engine& engine, const Window& window,
                                                  const memory::desc& x,
                                                  const memory::desc& weights,
                                                  const memory::desc& bias, const memory::desc& y,
                                                  const dnnl::primitive_attr& attributes);

dnnl::convolution_backward_data::primitive_desc backward_data(
    const dnnl::engine& engine, const Window& window, const memory::desc& dx,
    const memory::desc& weights, const memory::desc& dy, const dnnl::primitive_attr& attributes,
    const dnnl::convolution_forward::primitive_desc& forward);

dnnl::convolution_backward_weights::primitive_desc backward_weights(
    const dnnl::engine& engine, const Window& window, const memory::desc& x,
    const memory::desc& dweights, const memory::desc& dbias, const memory::desc& dy,
    const dnnl::primitive_attr& attributes,
    const dnnl::convolution_forward::primitive_desc& forward);

}  // namespace paceline::cpu::descriptors
