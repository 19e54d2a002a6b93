#include "sweeps/expression.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/sweeps/samples.h"

namespace paceline {
namespace {

using testing::catch_error;
using testing::expect_parts;

std::optional<Value> lookup(std::string_view name) {
  if (name == "gpus") return std::int64_t{4};
  if (name == "cores") return std::int64_t{8};
  if (name == "cpus_per_task") return std::int64_t{2};
  if (name == "learning_rate") return 0.5;
  if (name == "backend") return std::string("mpi");
  if (name == "overlap") return true;
  return std::nullopt;
}

Value environment_value(const std::string& text) {
  return Expression(text, "s.json:3").evaluate(lookup);
}

std::string expression_error(const std::string& text) {
  return catch_error([&] { environment_value(text); });
}

Value whole(std::int64_t number) {
  return number;
}

TEST(Expression, Precedence) {
  EXPECT_EQ(environment_value("1 + 2 * 3"), whole(7));
  EXPECT_EQ(environment_value("(1 + 2) * 3"), whole(9));
  EXPECT_EQ(environment_value("10 - 4 - 3"), whole(3));
  EXPECT_EQ(environment_value("48 / 4 / 2"), whole(6));
  EXPECT_EQ(environment_value("7 % 4 * 2"), whole(6));
  EXPECT_EQ(environment_value("-2 + 5"), whole(3));
  EXPECT_EQ(environment_value("--2"), whole(2));
  EXPECT_EQ(environment_value("2 - -3"), whole(5));
  EXPECT_EQ(environment_value("1 + 1 == 2 && 3 > 2"), Value(true));
  EXPECT_EQ(environment_value("true || false && false"), Value(true));
  EXPECT_EQ(environment_value("!false && false"), Value(false));
  EXPECT_EQ(environment_value("!(false && false)"), Value(true));
  EXPECT_EQ(environment_value("gpus > 2 ? 1 : gpus > 1 ? 2 : 3"), whole(1));
  EXPECT_EQ(environment_value("false ? 1 : false ? 2 : 3"), whole(3));
}

TEST(Expression, NamesTextsAndFunctions) {
  EXPECT_EQ(environment_value("gpus * cpus_per_task <= cores"), Value(true));
  EXPECT_EQ(environment_value("backend == 'mpi'"), Value(true));
  EXPECT_EQ(environment_value("backend != 'mirrored'"), Value(true));
  EXPECT_EQ(environment_value("overlap"), Value(true));
  EXPECT_EQ(environment_value("min(gpus, cores)"), whole(4));
  EXPECT_EQ(environment_value("max(gpus, min(2, 9)) + 1"), whole(5));
  EXPECT_EQ(environment_value("''"), Value(std::string()));
  EXPECT_EQ(environment_value(" gpus\t+\n1 "), whole(5));
}

TEST(Expression, WholeNumbersStayWholeWhereExact) {
  EXPECT_EQ(environment_value("4 / 2"), whole(2));
  EXPECT_EQ(environment_value("3 / 2"), Value(1.5));
  EXPECT_EQ(environment_value("2 * 0.5"), Value(1.0));
  EXPECT_EQ(environment_value("-7 % 4"), whole(-3));
  EXPECT_EQ(environment_value("1e3"), Value(1000.0));
  EXPECT_EQ(environment_value("2 == 2.0"), Value(true));
  EXPECT_EQ(environment_value("learning_rate * gpus"), Value(2.0));
  EXPECT_EQ(environment_value("9007199254740993 > 9007199254740992"), Value(true))
      << "not compared as reals";
}

TEST(Expression, LazyWhereTheAnswerIsKnown) {
  EXPECT_EQ(environment_value("false && 1 / 0 == 1"), Value(false));
  EXPECT_EQ(environment_value("true || nodes > 1"), Value(true)) << "nodes has no value";
  EXPECT_EQ(environment_value("gpus > 0 ? 1 : 1 / 0"), whole(1));
  EXPECT_EQ(environment_value("gpus < 0 ? 1 / 0 : 2"), whole(2));
}

TEST(ExpressionErrors, Values) {
  expect_parts(expression_error("gpus / (cores - 8)"),
               {"division by zero", "s.json:3", "column 6"});
  expect_parts(expression_error("gpus % 0"), {"division by zero", "column 6"});
  expect_parts(expression_error("1.5 / 0"), {"division by zero"});
  expect_parts(expression_error("1 / 0.0"), {"division by zero"});
  expect_parts(expression_error("9223372036854775807 + 1"), {"too large", "column 21"});
  expect_parts(expression_error("4000000000 * 4000000000"), {"too large"});
  expect_parts(expression_error("-9223372036854775807 - 2"), {"too large"});
  expect_parts(expression_error("-(-9223372036854775807 - 1)"), {"too large"});
  expect_parts(expression_error("(-9223372036854775807 - 1) / -1"), {"too large"});
  expect_parts(expression_error("(-9223372036854775807 - 1) % -1"), {"too large"});
  expect_parts(expression_error("1e308 * 10"), {"too large"});
  expect_parts(expression_error("gpus + backend"), {"\"mpi\" is not a number", "s.json:3"});
  expect_parts(expression_error("backend < 'z'"), {"is not a number"});
  expect_parts(expression_error("backend == 4"), {"cannot be compared"});
  expect_parts(expression_error("overlap == 1"), {"cannot be compared"});
  expect_parts(expression_error("gpus && true"), {"\"4\" is neither true nor false", "column 1"});
  expect_parts(expression_error("backend ? 1 : 2"), {"neither true nor false"});
  expect_parts(expression_error("!gpus"), {"neither true nor false"});
  expect_parts(expression_error("nodes > 1"), {"\"nodes\" has no value in this sweep", "column 1"});
  expect_parts(catch_error([] { Expression("gpus + 1", "s.json:3").holds(lookup); }),
               {"\"5\" is neither true nor false", "s.json:3"});
}

TEST(ExpressionErrors, NamesAndSyntax) {
  expect_parts(expression_error("gpu > 1"),
               {"unknown name \"gpu\"", "did you mean \"gpus\"?", "column 1"});
  expect_parts(expression_error("gpus > core"), {"unknown name \"core\"", "\"cores\"", "column 8"});
  expect_parts(expression_error("pow(2, 3)"), {"unknown function pow", "min, max"});
  for (const char* text : {"",      "   ",     "gpus >",       "gpus > 1 2", "(gpus",     "gpus)",
                           "1 ? 2", "1 ? : 2", "'open",        "gpus = 1",   "1 < 2 < 3", "a.b",
                           "1 & 2", "min(1)",  "min(1, 2, 3)", "min 1",      "1.2.3",     "12abc",
                           "1e999", "\"mpi\"", "gpus; exit",   "$(id)",      "\xff",      "0x10"}) {
    SCOPED_TRACE(text);
    expect_parts(expression_error(text), {"s.json:3", "column"});
  }
}

TEST(ExpressionErrors, BoundsOnLengthAndDepth) {
  expect_parts(expression_error("1" + std::string(2000, ' ')), {"2001", "too long", "s.json:3"});
  EXPECT_EQ(environment_value("1" + std::string(1999, ' ')), whole(1));
  EXPECT_EQ(environment_value(std::string(25, '(') + "1" + std::string(25, ')')), whole(1));
  expect_parts(expression_error(std::string(900, '(') + "1" + std::string(900, ')')),
               {"nested too deeply"});
  expect_parts(expression_error(std::string(1900, '!') + "true"), {"nested too deeply"});
  expect_parts(expression_error(std::string(1900, '-') + "1"), {"nested too deeply"});
  std::string choices;
  for (int i = 0; i < 150; ++i) choices += "true ? 1 : ";
  expect_parts(expression_error(choices + "1"), {"nested too deeply"});
  std::string sum = "0";
  for (int i = 0; i < 900; ++i) sum += "+1";
  EXPECT_EQ(environment_value(sum), whole(900));
}

}  // namespace
}  // namespace paceline
