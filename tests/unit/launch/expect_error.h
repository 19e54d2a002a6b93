// EXPECT_ERROR(call, usage, "part of the line"): the call throws that kind of paceline::Error.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "engine/core/error.h"

#define EXPECT_ERROR(call, error_kind, part)                                            \
  try {                                                                                 \
    static_cast<void>(call);                                                            \
    ADD_FAILURE() << "nothing was thrown";                                              \
  } catch (const paceline::Error& error) {                                              \
    EXPECT_EQ(error.kind(), paceline::ErrorKind::error_kind) << error.what();           \
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what(); \
  }                                                                                     \
  static_assert(true)
