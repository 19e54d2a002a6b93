#include "engine/core/error.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "engine/core/text.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

TEST(Error, LineHoldsWhereWhatAndFix) {
  EXPECT_STREQ(Error(ErrorKind::usage, "batch is 0", "--batch", "give at least 1").what(),
               "--batch: batch is 0; give at least 1");
  EXPECT_STREQ(Error(ErrorKind::usage, "batch is 0").what(), "batch is 0");
}

TEST(Error, RankComesFirstAndLineBreaksGo) {
  Error error(ErrorKind::stall, "rank 1\ndid not come");
  EXPECT_FALSE(error.rank());
  error.on_rank(3);
  EXPECT_STREQ(error.what(), "rank 3: rank 1 did not come");
  EXPECT_EQ(error.rank(), 3);
}

template <typename Thrown>
std::string caught(const Thrown& thrown) {
  try {
    throw thrown;
  } catch (...) {
    const Error error = caught_error();
    return std::to_string(exit_code(error.kind())) + " " + error.what();
  }
}

TEST(Error, WhateverIsThrownBecomesOne) {
  EXPECT_EQ(caught(Error(ErrorKind::usage, "no")), "64 no");
  EXPECT_EQ(caught(std::bad_alloc()),
            "65 out of memory; use smaller data, a smaller batch or more memory");
  EXPECT_EQ(caught(std::system_error(EAGAIN, std::generic_category())),
            "65 the system refuses: Resource temporarily unavailable; check the limits on "
            "processes, memory and open files (ulimit -a)");
  try {
    nlohmann::json::array().at(3);
  } catch (...) {
    const Error error = caught_error();
    EXPECT_EQ(error.kind(), ErrorKind::input);
    expect_parts(error.what(), {"JSON of another form than is expected: array index 3"});
  }
  EXPECT_EQ(caught(std::runtime_error("odd")),
            "70 internal error: odd; please report it with the command");
  const auto denied = std::make_error_code(std::errc::permission_denied);
  EXPECT_EQ(caught(std::filesystem::filesystem_error("status", "/data/x", denied)),
            "65 /data/x: Permission denied; ask its owner for access, or give another path");
}

TEST(FirstError, OneThatExplainsGoesBeforeItsConsequence) {
  FirstError first;
  first.rethrow();  // none yet
  const auto keep = [&](const char* what, bool is_consequence) {
    try {
      throw input_error(what);
    } catch (const Error&) {
      first.keep(is_consequence);
    }
  };
  const auto kept = [&] {
    try {
      first.rethrow();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  keep("released", true);
  keep("released, too", true);
  EXPECT_EQ(kept(), "released");
  keep("the cause", false);
  keep("another", false);
  keep("released later", true);
  EXPECT_EQ(kept(), "the cause");
}

TEST(Error, ExitCodesAreThePromisedOnes) {
  const std::pair<ErrorKind, int> table[] = {{ErrorKind::usage, 64},    {ErrorKind::input, 65},
                                             {ErrorKind::internal, 70}, {ErrorKind::peer_lost, 71},
                                             {ErrorKind::stall, 72},    {ErrorKind::mismatch, 73},
                                             {ErrorKind::preempted, 75}};
  for (const auto& [kind, code] : table) {
    EXPECT_EQ(exit_code(kind), code);
    EXPECT_EQ(kind_of_exit_code(code), kind);
  }
  EXPECT_EQ(kind_of_exit_code(139), ErrorKind::internal);
  EXPECT_EQ(exit_code(ErrorKind::failed), 1);
  EXPECT_EQ(kind_of_exit_code(1), ErrorKind::internal);  // any program's
}

TEST(Error, ALongTextIsShownByItsEnds) {
  std::string euros;
  for (int i = 0; i < 1000; ++i) euros += "\u20ac";
  for (const std::string& body : {std::string(5000, 'a'), euros, "x" + euros, "xy" + euros}) {
    const std::string text = "begin" + body + "end";
    const std::string line =
        Error(ErrorKind::usage, "weights cannot be \"" + text + "\"", "--set " + text, "mend it")
            .what();
    EXPECT_LT(line.size(), 1100U);
    EXPECT_TRUE(line.starts_with("--set begin")) << line;
    expect_parts(line, {"end: weights cannot be \"begin"});
    EXPECT_TRUE(line.ends_with("end\"; mend it")) << line;
    EXPECT_EQ(fault_of_text(line), "");
  }
  const std::string known = "known: " + std::string(5000, 'k');
  EXPECT_LT(std::string(Error(ErrorKind::input, "no column", "", known).what()).size(), 600U);
  const std::string short_text(450, 'a');
  EXPECT_EQ(Error(ErrorKind::usage, short_text).what(), short_text);
}

}  // namespace
}  // namespace paceline
