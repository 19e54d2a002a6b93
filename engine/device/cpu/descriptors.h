// oneDNN's primitive descriptors, which its versions 2 and 3 make in unlike ways: two steps or one,
// other orders of arguments. CMake takes descriptors_v2.cpp or descriptors_v3.cpp by the version
// that it finds; all else of oneDNN that Paceline uses is the same in both.
//
// Planes, weights and biases are as oneDNN's documentation of each primitive has them; padding is
// the same before and behind. An empty `bias` means none. All throw dnnl::error.
#pragma once

#include <dnnl.hpp>

namespace paceline::cpu::descriptors {

using dnnl::memory;

// What all three primitives of one convolution share.
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
