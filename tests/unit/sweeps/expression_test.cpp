#include "sweeps/expression.h"

#include <gtest/gtest.h>

#include "tests/unit/sweeps/samples.h"

namespace paceline {
namespace {

std::optional<Value> lookup(std::string_view name) {
  if (name == "gpus") return std::int64_t{4};
  if (name == "cores") return std::int64_t{8};
  if (name == "cpus_per_task") return std::int64_t{2};
  if (name == "learning_rate") return 0.5;
  if (name == "backend") return std::string("mpi");
  if (name == "overlap") return true;
  return std::nullopt;
}

bool holds(const std::string& text) {
  return Expression(text, "s.json:3").holds(lookup);
}

std::string expression_error(const std::string& text) {
  return catch_error([&] { holds(text); });
}

TEST(Expression, Precedence) {
  for (const char* text :
       {"1 + 2 * 3 == 7", "(1 + 2) * 3 == 9", "10 - 4 - 3 == 3", "48 / 4 / 2 == 6",
        "7 % 4 * 2 == 6", "-2 + 5 == 3", "--2 == 2", "2 - -3 == 5", "1 + 1 == 2 && 3 > 2",
        "true || false && false", "!(false && false)", "!false == true", "3 / 2 == 1.5",
        "-7 % 4 == -3", "1e3 == 1000", "2 * 0.5 == 1"}) {
    EXPECT_TRUE(holds(text)) << text;
  }
  EXPECT_FALSE(holds("!false && false"));
  EXPECT_FALSE(holds("(true || false) && false"));
}

TEST(Expression, NamesAndTexts) {
  for (const char* text : {"gpus * cpus_per_task <= cores", "backend == 'mpi'",
                           "backend != 'mirrored'", "overlap", "backend != ''", " gpus\t+\n1 == 5",
                           "learning_rate * gpus == 2", "gpus >= 4.0", "cores > gpus"}) {
    EXPECT_TRUE(holds(text)) << text;
  }
  EXPECT_FALSE(holds("backend == 'mirrored'"));
  EXPECT_FALSE(holds("gpus < 4"));
}

TEST(Expression, LazyWhereTheAnswerIsKnown) {
  EXPECT_FALSE(holds("false && 1 / 0 == 1"));
  EXPECT_TRUE(holds("true || nodes > 1")) << "nodes has no value";
  EXPECT_TRUE(holds("false && (nodes > 1 || 1 / 0 == 1) || gpus == 4")) << "read on after it";
  EXPECT_TRUE(catch_error([] { Expression("nodes > 1 && -nodes / 0 == 1", "s.json:3"); }).empty())
      << "nothing is computed before there are values";
}

TEST(ExpressionErrors, Values) {
  expect_parts(expression_error("gpus / (cores - 8) > 1"),
               {"division by zero", "s.json:3", "column 6"});
  expect_parts(expression_error("gpus % 0 == 0"), {"division by zero", "column 6"});
  expect_parts(expression_error("1.5 / 0 > 1"), {"division by zero"});
  expect_parts(expression_error("1 / 0.0 > 1"), {"division by zero"});
  expect_parts(expression_error("1e308 * 10 > 1"), {"too large"});
  expect_parts(expression_error("gpus + backend > 1"), {"\"mpi\" is not a number", "s.json:3"});
  expect_parts(expression_error("backend < 'z'"), {"is not a number"});
  expect_parts(expression_error("backend == 4"), {"cannot be compared"});
  expect_parts(expression_error("overlap == 1"), {"cannot be compared"});
  expect_parts(expression_error("gpus && true"), {"\"4\" is neither true nor false", "column 1"});
  expect_parts(expression_error("backend || true"), {"neither true nor false"});
  expect_parts(expression_error("!gpus"), {"neither true nor false"});
  expect_parts(expression_error("nodes > 1"), {"\"nodes\" has no value in this sweep", "column 1"});
  expect_parts(expression_error(" gpus + 1"),
               {"\"5\" is neither true nor false", "s.json:3", "column 2"});
}

TEST(ExpressionErrors, NamesAndSyntax) {
  expect_parts(expression_error("gpu > 1"),
               {"unknown name \"gpu\"", "did you mean \"gpus\"?", "column 1"});
  expect_parts(expression_error("gpus > core"), {"unknown name \"core\"", "\"cores\"", "column 8"});
  expect_parts(expression_error("pow(2, 3)"), {"unknown name \"pow\"", "column 1"});
  expect_parts(catch_error([] { Expression("false && gpu > 1", "s.json:3"); }),
               {"unknown name \"gpu\"", "column 10"});
  for (const char* text :
       {"",          "   ",      "gpus >",  "gpus > 1 2", "(gpus", "gpus)", "gpus ? 1 : 2",
        "'open",     "gpus = 1", "a.b",     "1 < 2 < 3",  "1 & 2", "1.2.3", "12abc",
        "min(1, 2)", "1e999",    "\"mpi\"", "$(id)",      "\xff",  "0x10",  "gpus; exit"}) {
    SCOPED_TRACE(text);
    expect_parts(expression_error(text), {"s.json:3", "column"});
  }
}

TEST(ExpressionErrors, BoundsOnLengthAndDepth) {
  expect_parts(expression_error("true" + std::string(1997, ' ')), {"2001", "too long", "s.json:3"});
  EXPECT_TRUE(holds("true" + std::string(1996, ' ')));
  EXPECT_TRUE(holds(std::string(25, '(') + "true" + std::string(25, ')')));
  expect_parts(expression_error(std::string(900, '(') + "1" + std::string(900, ')')),
               {"nested too deeply"});
  expect_parts(expression_error(std::string(1900, '!') + "true"), {"nested too deeply"});
  expect_parts(expression_error(std::string(1900, '-') + "1"), {"nested too deeply"});
  std::string sum = "0";
  for (int i = 0; i < 900; ++i) sum += "+1";
  EXPECT_TRUE(holds(sum + "== 900"));
}

}  // namespace
}  // namespace paceline
