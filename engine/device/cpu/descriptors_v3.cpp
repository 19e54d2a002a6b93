#include "engine/device/cpu/descriptors.h"

namespace paceline::cpu::descriptors {

dnnl::matmul::primitive_desc matmul(const dnnl::engine& engine, const memory::desc& left,
                                    const memory::desc& right, const memory::desc& out,
                                    const dnnl::primitive_attr& attributes) {
  return {engine, left, right, out, attributes};
}

dnnl::convolution_forward::primitive_desc forward(const dnnl::engine& engine, const Window& window,
                                                  const memory::desc& x,
                                                  const memory::desc& weights,
                                                  const memory::desc& bias, const memory::desc& y,
                                                  const dnnl::primitive_attr& attributes) {
  return {engine,
          dnnl::prop_kind::forward_training,
          window.algorithm,
          x,
          weights,
          bias,
          y,
          window.strides,
          window.padding,
          window.padding,
          attributes};
}

dnnl::convolution_backward_data::primitive_desc backward_data(
    const dnnl::engine& engine, const Window& window, const memory::desc& dx,
    const memory::desc& weights, const memory::desc& dy, const dnnl::primitive_attr& attributes,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {engine,         window.algorithm, dx,      weights,   dy, window.strides,
          window.padding, window.padding,   forward, attributes};
}

dnnl::convolution_backward_weights::primitive_desc backward_weights(
    const dnnl::engine& engine, const Window& window, const memory::desc& x,
    const memory::desc& dweights, const memory::desc& dbias, const memory::desc& dy,
    const dnnl::primitive_attr& attributes,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {engine,         window.algorithm, x,       dweights,  dbias, dy, window.strides,
          window.padding, window.padding,   forward, attributes};
}

}  // namespace paceline::cpu::descriptors
