#include "engine/core/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace paceline {
namespace {

TEST(Text, DecimalsForSoManyDigits) {
  EXPECT_EQ(decimals_for(0.000173, 3), 6);
  EXPECT_EQ(decimals_for(-12.3, 3), 1);
  EXPECT_EQ(decimals_for(123456, 3), 0);
  EXPECT_EQ(decimals_for(1e-300, 3), 9);
  for (const double value :
       {0.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(decimals_for(value, 3), 0);
  }
}

TEST(Text, NearestFindsTyposAndBeginnings) {
  const std::vector<std::string> names = {"gpus", "cpus_per_task", "backend", "device"};
  EXPECT_EQ(nearest("cpu_per_task", names), "cpus_per_task");
  EXPECT_EQ(nearest("bakend", names), "backend");
  EXPECT_EQ(nearest("cpus_", names), "cpus_per_task");
  EXPECT_EQ(nearest("temperature", names), std::nullopt);
  EXPECT_EQ(nearest("gif", {"svg", "png", "pdf"}), std::nullopt);
  EXPECT_EQ(nearest("mip", {"gloo", "mpi"}), "mpi");
  EXPECT_EQ(nearest(std::string(10000, 'g'), names), std::nullopt);
  EXPECT_EQ(suggestion("bakend", names), "did you mean \"backend\"?");
  EXPECT_EQ(suggestion("temperature", {"a", "b"}), "known: a, b");
  EXPECT_TRUE(
      suggestion("temperature", std::vector<std::string>(100, "b")).ends_with("b and 76 more"));
}

TEST(Text, SplitKeepsEmptyPartsAndJoinInvertsIt) {
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string>{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), std::vector<std::string>{""});
  EXPECT_EQ(join(split("a,,b,", ','), ","), "a,,b,");
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim("  "), "");
}

TEST(Text, KeysOfDifferentPartsDiffer) {
  const auto key = [](const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) add_to_key(text, part);
    return text;
  };
  EXPECT_EQ(key({"a", "b"}), key({"a", "b"}));
  EXPECT_NE(key({"a", "b"}), key({"ab"}));
  EXPECT_NE(key({"a", ""}), key({"", "a"}));
  EXPECT_NE(key({key({"a"}), "b"}), key({"a", key({"b"})}));
  EXPECT_NE(key({"1:a1:b"}), key({"a", "b"}));
}

TEST(Text, NumbersAreTheWholeTextOrNothing) {
  EXPECT_EQ(to_integer("-42"), -42);
  EXPECT_EQ(to_integer("9223372036854775807"), INT64_MAX);
  for (const char* bad : {"", " 1", "1 ", "1x", "0x10", "1.0", "9223372036854775808", "+1"}) {
    EXPECT_EQ(to_integer(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(to_real("1e-3"), 1e-3);
  EXPECT_EQ(to_real("7"), 7.0);
  for (const char* bad : {"", "nan", "inf", "-inf", "1e999", "1,5", "1.0 "}) {
    EXPECT_EQ(to_real(bad), std::nullopt) << bad;
  }
}

TEST(Text, RatesKeepThreeDigits) {
  EXPECT_EQ(format_rate(2.309), "2.31");
  EXPECT_EQ(format_rate(0.0421), "0.0421");
  EXPECT_EQ(format_rate(99.96), "100");
  EXPECT_EQ(format_rate(54229.4), "54,229");
  EXPECT_EQ(format_rate(1234567), "1,234,567");
  EXPECT_EQ(format_rate(0), "0");
}

TEST(Text, SecondsToCompareHaveFourDigitsOrAllBeforeThePoint) {
  EXPECT_EQ(seconds_text(0.012345), "0.01235 s");
  EXPECT_EQ(seconds_text(9971.4), "9971 s");
  EXPECT_EQ(seconds_text(129686), "129,686 s");
  EXPECT_EQ(seconds_text(1e300), "1e+300 s");
}

TEST(Text, UnitsForPeople) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(11594722), "11.6 MB");
  EXPECT_EQ(format_bytes(2.5e11), "250 GB");
  EXPECT_EQ(format_seconds(0.00085), "850 us");
  EXPECT_EQ(format_seconds(0.0000123456), "12.3 us");
  EXPECT_EQ(format_seconds(2.5e-8), "25 ns");
  EXPECT_EQ(format_seconds(0), "0 us");
  EXPECT_EQ(format_seconds(0.02), "20 ms");
  EXPECT_EQ(format_seconds(0.001114), "1.11 ms");
  EXPECT_EQ(format_seconds(0.0999), "99.9 ms");
  EXPECT_EQ(format_seconds(1.239), "1.24 s");
  EXPECT_EQ(format_seconds(200), "3 min 20 s");
  EXPECT_EQ(format_seconds(7260), "2 h 1 min");
  EXPECT_EQ(format_seconds(-2), "-2.00 s");
  EXPECT_EQ(decimal(-12.5, 2), "-12.50");
  EXPECT_EQ(decimal(1e308, 0), "1e+308");
  EXPECT_EQ(format_bytes(1e308), "1e+293 PB");
  EXPECT_EQ(format_seconds(3.6e8), "1e+05 h");
  EXPECT_EQ(format_seconds(1e308), "2.78e+304 h");
}

TEST(Text, UnitsRoundUpIntoTheNextUnit) {
  EXPECT_EQ(format_seconds(0.0009999), "1 ms");
  EXPECT_EQ(format_seconds(0.9999), "1.00 s");
  EXPECT_EQ(format_seconds(59.999), "1 min 0 s");
  EXPECT_EQ(format_bytes(999'960), "1.0 MB");
}

TEST(Text, LinesKeepNumbersWithTheirPercentAndIntervalsWhole) {
  EXPECT_EQ(wrapped("it sees 3.8 % of it", 12, "", 0), "it sees\n3.8 % of it\n");
  EXPECT_EQ(wrapped("a loss of 3.67 [3.58, 4.09] s", 22, "", 0),
            "a loss of 3.67\n[3.58, 4.09] s\n");
  EXPECT_EQ(wrapped("one two", 3, "- ", 2), "- one\n  two\n");
}

TEST(Text, FlattenedKeepsTheOrderOfListsThatAFunctionOrAMemberSays) {
  struct Group {
    std::vector<int> members;
  };
  const std::vector<Group> groups = {{{1, 2}}, {{}}, {{3}}};
  EXPECT_EQ(flattened(groups, &Group::members), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(flattened(groups, [](const Group& each) { return std::vector{each.members.size()}; }),
            (std::vector<std::size_t>{2, 0, 1}));
}

TEST(Text, ShellQuoteSurvivesTheShell) {
  EXPECT_EQ(shell_quote("--gpus=2"), "--gpus=2");
  EXPECT_EQ(shell_quote(""), "''");
  for (const std::string word : {"a b", "it's", "$HOME", "`id`", "a\"b\\c", "*", "x;y", "-n\n"}) {
    const std::string command = "printf %s " + shell_quote(word);
    FILE* pipe = popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    char buffer[64] = {};
    const std::size_t read = fread(buffer, 1, sizeof buffer, pipe);
    pclose(pipe);
    EXPECT_EQ(std::string(buffer, read), word);
  }
}

}  // namespace
}  // namespace paceline
