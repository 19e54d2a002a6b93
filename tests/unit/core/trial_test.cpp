#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "engine/core/child.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

void attempt(const std::function<void()>& work, double seconds = 60) {
  run_isolated(work, seconds, "HDF5", "w.h5");
}

TEST(Trial, WhatWorksChangesNothingHere) {
  int value = 1;
  attempt([&] { value = 2; });
  EXPECT_EQ(value, 1);
}

TEST(Trial, ErrorsPassAsTheyAre) {
  const std::string longer(100'000, 'x');  // than a pipe holds
  try {
    attempt([&] { throw Error(ErrorKind::usage, longer, "here", "do that"); });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_STREQ(error.what(), Error(ErrorKind::usage, longer, "here", "do that").what());
  }
  expect_error(ErrorKind::input, {"out of memory"},
               [] { attempt([] { throw std::bad_alloc(); }); });
}

TEST(Trial, ADeathIsOneLine) {
  for (const int number : {SIGSEGV, SIGABRT, SIGKILL}) {
    expect_error(ErrorKind::input, {"is damaged: HDF5 crashed while reading it", "w.h5"},
                 [&] { attempt([number] { kill(getpid(), number); }); });
  }
}

TEST(Trial, WhatHangsIsEnded) {
  expect_error(ErrorKind::input, {"HDF5 did not finish reading it"}, [] {
    attempt(
        [] {
          while (true) pause();
        },
        0.2);
  });
}

}  // namespace
}  // namespace paceline
