// EXPECT_ERROR(call, usage, "part of the line"): the call throws that kind of paceline::Error.
#pragma once

#include "tests/support/expect_error.h"

#define EXPECT_ERROR(call, error_kind, part) \
  paceline::expect_error(paceline::ErrorKind::error_kind, {part}, [&] { static_cast<void>(call); })
