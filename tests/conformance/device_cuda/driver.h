// cuDNN offers kernels that it compiles at run time only where there is a driver. Where there is
// none the toolkit's stand-in will do: with it, kernels compile and then cannot be loaded.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/core/error.h"
#include "engine/core/shared_library.h"
#include "engine/device/cuda/products/chosen_products.h"
#include "engine/device/cuda/products/libraries.h"
#include "engine/device/cuda/products/session.h"

namespace paceline::cuda {

// Of a described H200. Throws usage where a library is missing.
inline std::shared_ptr<Session> compiling_session() {
  const SharedLibrary driver({"libcuda.so.1", PACELINE_CUDA_STUB}, {});
  if (!driver) throw Error(ErrorKind::usage, "no driver and no stand-in", driver.problem());
  const Libraries libraries{LibraryNames{}};
  if (!libraries.nvrtc) throw Error(ErrorKind::usage, "no NVRTC", libraries.nvrtc.problem());
  return std::make_shared<Session>(libraries.cudnn, card_description("h200"));
}

class CompilingTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      session_ = compiling_session();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }

  std::shared_ptr<Session> session_;
};

}  // namespace paceline::cuda
