// cuDNN offers kernels that it compiles at run time only where there is a driver. Where there is
// none the toolkit's stand-in will do: with it, kernels compile and then cannot be loaded.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "engine/core/error.h"
#include "engine/core/shared_library.h"
#include "engine/device/cuda/dnn/chosen_products.h"
#include "engine/device/cuda/dnn/session.h"
#include "tests/support/described_cards/described_cards.h"

namespace paceline::cuda {

// With a session for a described H200; skips, with the reason, where a library is missing.
class CompilingTest : public testing::Test {
 protected:
  void SetUp() override {
    if (described_cards().empty()) GTEST_SKIP() << "built with a cuDNN that describes no cards";
    const SharedLibrary driver({"libcuda.so.1", PACELINE_CUDA_STUB}, {});
    if (!driver) GTEST_SKIP() << driver.problem();
    std::optional<Libraries> libraries;
    try {
      libraries.emplace(LibraryNames{});
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    if (!libraries->nvrtc) GTEST_SKIP() << libraries->nvrtc.problem();
    session_ = std::make_shared<Session>(libraries->cudnn, card_description("h200"));
  }

  std::shared_ptr<Session> session_;
};

}  // namespace paceline::cuda
