// Numbers in what a program prints and writes: whole, all of them, and those that were meant.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <tuple>

#include "engine/core/error.h"
#include "engine/facts/timing.h"
#include "engine/input/formats/tfrecord.h"
#include "engine/train/events/event.pb.h"
#include "results/run_record.h"
#include "run/program_run.h"
#include "tests/support/expect_error.h"
#include "tests/unit/results/sample_record.h"

namespace paceline {
namespace {

ResultSource line(const std::string& pattern, Pick pick = Pick::only,
                  const std::string& name = "samples_per_second", double scale = 1) {
  return {name, ResultFrom::line, pattern, "", pick, scale, "s.json:3", false, scale != 1};
}

ProgramReport make_report(const ResultSource& source, std::string_view output) {
  ProgramResults results({source}, std::filesystem::temp_directory_path());
  while (!output.empty()) {  // in pieces, as pipes give it
    results.append(output.substr(0, 65536));
    output.remove_prefix(std::min<std::size_t>(output.size(), 65536));
  }
  return results.finish([](const std::string& file) { return std::filesystem::path(file); });
}

double number_in(const ResultSource& source, std::string_view output) {
  return make_report(source, output).numbers.at(source.name).front();
}

std::string catch_refusal(const ResultSource& source, std::string_view output) {
  try {
    return "read as " + std::to_string(number_in(source, output));
  } catch (const Error& error) {
    return error.what();
  }
}

// Refused, as what stands beside the number may belong to it.
void expect_part(const std::string& pattern, const std::string& output, const std::string& part) {
  const std::string refusal = catch_refusal(line(pattern), output);
  expect_parts(refusal, {"is \"" + part + "\" (line 1), and \"", "beside it may change"});
}

TEST(ProgramResults, OutputWithoutRoomIsNotSearched) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit little{1 << 20, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &little);
  const std::string refusal =
      catch_refusal(line("rate {number}"), "rate 5\n" + std::string(33 << 20, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  expect_parts(refusal, {"of output cannot be searched", "no room to keep it", "make room"});
}

TEST(ProgramResults, AnIndexThatIsNoneFindsNothing) {
  for (const char* path : {"$.t[99999999999999999999]", "$.t[5]", "$.t[01]", "$.t[-1]", "$.t.x"}) {
    const ResultSource source{"fit_seconds", ResultFrom::json_line, path, "", Pick::only, 1, "s:3"};
    expect_parts(catch_refusal(source, "{\"t\":[1]}\n"), {"fit_seconds"});
  }
}

constexpr char kDigits[] = "rate:? *([0-9.]+)";

TEST(ProgramResults, PartsOfNumbersAreRefused) {
  expect_part(kDigits, "rate: 2.5e-03 it/s", "2.5");
  expect_part(kDigits, "rate 7E5", "7");
  expect_part(kDigits, "rate 3.5D+02", "3.5");
  expect_part(kDigits, "rate 98,765.4/s", "98");
  expect_part(kDigits, "rate 12,5 it/s", "12");
  expect_part(kDigits, "rate 1\u2019234 it/s", "1");
  expect_part(kDigits, "rate 1\u066c234 it/s", "1");
  expect_part(kDigits, "rate 1.234,5 it/s", "1.234");
  expect_part(kDigits, "rate 3'000", "3");
  expect_part(kDigits, "rate 3_000", "3");
  expect_part(kDigits, "rate 3\u00a0000", "3");
  expect_part(kDigits, "rate 4.2M samples", "4.2");
  expect_part(kDigits, "rate 4.2 k samples", "4.2");
  expect_part(kDigits, "rate 1:23.4", "1");
  expect_part(kDigits, "rate 5.8 x 10^3", "5.8");
  expect_part(kDigits, "rate 0x1f", "0");
  expect_part("rate: ([0-9]+)", "rate: 61.9", "61");
  expect_part("rate: ([0-9]+).*", "rate: 61.9 it/s", "61");
}

TEST(ProgramResults, NumbersThatBeginBeforeTheGroupAreRefused) {
  expect_part("([0-9.]+) it/s", "at 98,765.4 it/s", "765.4");
  expect_part("([0-9.]+) it/s", "at 2e+07 it/s", "07");
  expect_part("rate.*([0-9.]+)", "rate 61.9", "9");
  expect_part("rate: .?([0-9.]+)", "rate: -7", "7");
}

TEST(ProgramResults, WhatAPatternInsistsOnIsMeant) {
  EXPECT_EQ(
      number_in(line("rate ([0-9.]+)k it", Pick::only, "samples_per_second", 1000), "rate 4.5k it"),
      4500);
  EXPECT_EQ(number_in(line("([0-9]+)\\.[0-9]"), "7.25 it/s"), 7);
  EXPECT_EQ(number_in(line(",([0-9.]+),end"), "3,12.5,end"), 12.5);
  EXPECT_EQ(number_in(line("step [0-9]+:([0-9]+)"), "step 3:12"), 12);
}

TEST(ProgramResults, ListsDatesAndWordsAreNoPartsOfNumbers) {
  const auto steps =
      make_report(line("([0-9.]+)", Pick::only, "step_seconds"), "0.5,0.25,0.75\n1,2,3,4\n");
  EXPECT_EQ(steps.numbers.at("step_seconds").size(), 7U);
  EXPECT_EQ(number_in(line(kDigits), "2026-11-25 10:00:00 rate 8."), 8);
  EXPECT_EQ(number_in(line(kDigits), "rate 8, loss 2"), 8);
  EXPECT_EQ(number_in(line("epoch-([0-9]+)"), "epoch-12"), 12);
  EXPECT_EQ(number_in(line("([0-9]+) it"), "loading...100 it/s"), 100);
  EXPECT_EQ(number_in(line(kDigits), "rate 81img/s"), 81);
  EXPECT_EQ(number_in(line("step ([0-9]+)"), "step 5/10"), 5);
}

TEST(ProgramResults, TheNumberGroupReadsEveryNumber) {
  for (const auto& [text, number] : {std::pair{"rate 5.80911e+07 infer/sec", 5.80911e7},
                                     {"rate .5", 0.5},
                                     {"rate +12.", 12.0},
                                     {"rate 1E3", 1000.0}}) {
    EXPECT_EQ(number_in(line("rate {number}"), text), number) << text;
  }
  EXPECT_EQ(number_in(line("loss {number}", Pick::last, "train_loss"), "loss 2\nloss -0.5\n"),
            -0.5);
  expect_parts(catch_refusal(line("rate {number}", Pick::last), "rate 5\nrate nan\n"),
               {"not finite"});
  const std::string refusal = catch_refusal(line("rate {number}"), "rate 1,234.5");
  expect_parts(refusal, {"and \",234.5\" beside it"});
  EXPECT_THROW(ProgramResults({line("{number} of {number} ([0-9])")}), Error);
}

TEST(ProgramResults, DurationsAreReadWithTheirUnit) {
  const ResultSource time = line("took {duration}", Pick::only, "fit_seconds");
  for (const auto& [text, seconds] : {std::pair{"took 7 ms", 0.007},
                                      {"took 250us, once", 250e-6},
                                      {"took 1.5min", 90.0},
                                      {"took 12s", 12.0},
                                      {"took 8\xc2\xb5s", 8e-6}}) {
    EXPECT_NEAR(number_in(time, text), seconds, 1e-12) << text;
  }
  for (const char* text : {"took 7 steps", "took 7ms/img"}) {
    expect_parts(catch_refusal(time, text), {"beside it may change"});
  }
  expect_parts(catch_refusal(time, "took 6 min 30 s"), {"was not printed"});
}

TEST(ProgramResults, GroupedNumbersAreReadWhole) {
  EXPECT_EQ(number_in(line("rate: {grouped}"), "rate: 4,321,000.5 it/s, 3 left"), 4321000.5);
  EXPECT_EQ(
      number_in(line("rate: {grouped}k", Pick::only, "samples_per_second", 1000), "rate: 4,321k"),
      4321000);
  for (const char* number : {"4,321M", "4,321e6", "4,3219", "4,321,09", "4,321_098", "43,21,098",
                             "4,321 x 10^2", "4,321.098,7", "4,32,1"}) {
    const std::string refusal =
        catch_refusal(line("rate: {grouped}"), "rate: " + std::string(number) + " it");
    expect_parts(refusal, {"beside it may change"});
  }
  expect_part("{grouped} it/s", "4321,098 it/s", "321,098");
  expect_part("{grouped} it/s", "4,32,109 it/s", "32,109");
  expect_part("{grouped}", "-4,321", "4,321");
}

TEST(ProgramResults, SignsAndSpacesInTheGroupHideNoTail) {
  expect_part("rate: {number}", "rate: +6.5k", "+6.5");
  const std::string refusal = catch_refusal(line("rate:( *[0-9.]+)"), "rate:  6.5k it/s");
  expect_parts(refusal, {"\"k\" beside it"});
}

TEST(ProgramResults, TailsBeyondPlainDigitsAreRefused) {
  for (const char* number : {"61\240098",
                             "61\u2007098",
                             "61\u2003098",
                             "61\u3000098",
                             "61\u00b4098",
                             "61\u2032098",
                             "61\uff0c098",
                             "61\u200b098",
                             "61\uff10\uff19",
                             "61\u0660",
                             "61\u00b2",
                             "61\u00bd",
                             "61\xb2",
                             "61 \u00d7 10\u00b3",
                             "61.5 e+03",
                             "61.5 e07",
                             "61.5 million",
                             "61.5bn",
                             "61.5B",
                             "61.5 B",
                             "61.5\u00a0k",
                             "61\x1b[0mk",
                             "61 kilosamples/s",
                             "61 kSPS",
                             "61 mega",
                             "61 Mio",
                             "61 Tsd.",
                             "61 \u0442\u044b\u0441.",
                             "61\u4e07",
                             "61 098",
                             "6 098 412",
                             "61 img/min",
                             "61 ms/img",
                             "61s/it",
                             "61 GB",
                             "61 samples per hour",
                             "61 samples/s/gpu",
                             "61.5m",
                             "61 thousand",
                             "7,61,098",
                             "61.#INF",
                             "61.5 Ki",
                             "61.5 M"}) {
    const std::string refusal =
        catch_refusal(line("rate: {number}"), std::string("rate: ") + number + " samples");
    EXPECT_NE(refusal.find("beside it may change"), refusal.npos) << number << ": " << refusal;
  }
  const std::string zero = catch_refusal(line("rate: {number}"), std::string("rate: 61\0008", 11));
  expect_parts(zero, {"control characters"});
  expect_part("{number} it/s", "0x3F8 it/s", "8");
  expect_part("{number} it/s", "61\u2009098 it/s", "098");
  expect_part("loss.*?{number}", "loss \u22120.5", "0.5");
}

TEST(ProgramResults, WhatStandsBesideANumberIsNoPartOfIt) {
  for (const std::string beside : {" it/s",
                                   ", loss 0.9",
                                   " of 70",
                                   " (best)",
                                   " 7 8",
                                   "]",
                                   "\x1b[0m",
                                   "\x1b[0m.",
                                   " \x1b[32mloss: 3",
                                   "\u00b12",
                                   "\2612",
                                   "\u25027",
                                   " \u00b7 2",
                                   "\t098",
                                   " tok/s",
                                   " samples per second",
                                   "\u00a0img/s",
                                   " | 3 ms",
                                   " loss=3",
                                   " - 5s",
                                   "/70",
                                   " FPS"}) {
    EXPECT_EQ(catch_refusal(line("rate: {number}"), "rate: 61.5" + beside), "read as 61.500000")
        << beside;
  }
  EXPECT_EQ(number_in(line("{number} it/s"), "[61.5 it/s]"), 61.5);
  EXPECT_EQ(number_in(line("rate: {number}"), "rate: 61.5" + std::string(1 << 20, ' ') + ";"),
            61.5);
  EXPECT_EQ(number_in(line("x{number}"), "30x7 it/s"), 7);
}

TEST(ProgramResults, UnitsOfTimesAreNamed) {
  const auto took = [](const std::string& pattern, double scale, const std::string& output) {
    return catch_refusal(line(pattern, Pick::only, "fit_seconds", scale), output);
  };
  expect_parts(took("took {number}", 1, "took 850 ms"), {"\"850\" (line 1), and \"ms\" beside"});
  expect_parts(took("took {number} ms", 1, "took 850 ms"), {"\"ms\" beside"});
  EXPECT_EQ(took("took {number} ms", 0.001, "took 850 ms"), "read as 0.850000");
  EXPECT_EQ(took("took {number}", 1, "took 850 s"), "read as 850.000000");
  for (const char* unit : {" milliseconds",
                           " msec",
                           " usecs",
                           " \u00b5s",
                           "\u00a0ms",
                           " ns",
                           " minute",
                           " Minutes",
                           " mins",
                           " hrs",
                           " hour",
                           " h",
                           " days",
                           "m 20s",
                           "m",
                           " [ms]",
                           " (ms)",
                           " (h)",
                           " [min]",
                           " \u00b1 3 ms",
                           "\x1b[0m ms",
                           "s 300ms",
                           " cycles",
                           " ms/step",
                           " Minuten",
                           " \u043c\u0438\u043d",
                           "\u6beb\u79d2",
                           " heures",
                           " core-hours",
                           " ksec",
                           "s/it"}) {
    const std::string refusal =
        took("took {number}", 1, std::string("took 6.5") + unit + " in all");
    EXPECT_NE(refusal.find("beside it may change"), refusal.npos) << unit << refusal;
  }
  for (const char* label : {"time [ms]: ", "time (msec) = ", "\"time_ms\": ", "time_us=",
                            "timeElapsedMs=", "time millis=", "time in ms: "}) {
    const std::string refusal = took("time.*[ =]{number}", 1, label + std::string("6.5"));
    EXPECT_NE(refusal.find("beside it may change"), refusal.npos) << label << refusal;
  }
  for (const char* rest :
       {"", " s", " sec", " seconds.", " (min) 7 (max)", " (best)", "s 7ms/step", "s - 7ms/step",
        " of 9", ", 3 ms each", " (d = 3)", " mean", " using 2 GPUs"}) {
    EXPECT_EQ(took("took {number}", 1, std::string("took 6.5") + rest), "read as 6.500000") << rest;
  }
  expect_parts(catch_refusal(line("{number}", Pick::only, "test_accuracy"), "0.5 %"),
               {"\"%\" beside"});
}

TEST(ProgramResults, NoNumberIsLost) {
  std::string many;
  for (int i = 1; i <= 1'200'000; ++i) many += "v " + std::to_string(i) + "\n";
  EXPECT_EQ(number_in(line("v ([0-9]+)", Pick::last), many), 1'200'000);
  EXPECT_EQ(number_in(line("v ([0-9]+)", Pick::median), many), 600'000.5);
  EXPECT_EQ(number_in(line("v ([0-9]+)"), std::string(3 << 20, '.') + "v 7\n"), 7);
  // More than stays in memory.
  EXPECT_EQ(number_in(line("v ([0-9]+)"), std::string(40 << 20, '\n') + "v 7"), 7);
}

TEST(ProgramResults, ALimitOfTheLibraryIsAnError) {
  std::string deep;
  for (int i = 0; i < 40'000; ++i) deep += "xy";
  EXPECT_EQ(number_in(line("^(?:x|y|xy)* ?v ([0-9]+)", Pick::last), "v 1\n" + deep + " v 2\n"), 2);
  const std::string dear = "v 1\n" + std::string(300, 'a') + " 5\n";
  const std::string refusal = catch_refusal(line("(?:a+a+)+b|v ([0-9]+)", Pick::last), dear);
  expect_parts(refusal, {"cannot be searched in line 2", "match limit"});
  // No number can stand there.
  EXPECT_EQ(number_in(line("(?:a+a+)+b|v ([0-9]+)"), std::string(300, 'a') + "\nv 1\n"), 1);
}

TEST(ProgramResults, NumbersThatNoRecordHolds) {
  expect_parts(catch_refusal(line("{number}"), "4e-324"), {"no record can hold"});
  expect_parts(catch_refusal(line("{number}", Pick::only, "train_loss", 1e10), "1e300"),
               {"no record can hold"});
  expect_parts(catch_refusal(line("{number}", Pick::only, "parameter_count"), "1e300"),
               {"more than can be counted"});
}

class ProgramFiles : public ::testing::Test {
 protected:
  std::string refusal(const ResultFrom from, const std::string& what,
                      const std::string& text) const {
    std::ofstream(folder_ / "f", std::ios::binary) << text;
    return catch_refusal(
        {"samples_per_second", from, what, (folder_ / "f").string(), Pick::last, 1, "s.json:3"},
        "");
  }
  Scratch folder_;
};

TEST_F(ProgramFiles, TablesOfSpreadsheets) {
  EXPECT_EQ(refusal(ResultFrom::csv, "rate", "\xef\xbb\xbfrate,x\n8,1\n"), "read as 8.000000");
  expect_parts(refusal(ResultFrom::csv, "rate", "rate;x\n8;1\n"), {"separated by semicolons"});
  expect_parts(refusal(ResultFrom::csv, "rate", "rate,rate\n8,1\n"), {"two columns"});
  expect_parts(refusal(ResultFrom::csv, "rate", "rate,x\n8,\xe9\n"),
               {"f:2: the text is not UTF-8"});
}

TEST_F(ProgramFiles, JsonIsNoDeeperThanADocument) {
  expect_parts(refusal(ResultFrom::json, "$.r", std::string(5 << 20, '[')), {"nested deeper"});
  expect_parts(refusal(ResultFrom::json, "$.r", "{\"r\": 1, \"r\": 2}"), {"given twice"});
  for (const ResultFrom from : {ResultFrom::json_line, ResultFrom::json}) {
    const ResultSource source{"samples_per_second", from, "$.r", "", Pick::only, 1, ""};
    expect_parts(catch_refusal(source, "{\"r\": 1, \"r\": 2}\n"), {"given twice"});
  }
}

TEST(ProgramResults, AJsonLineThatIsNotJsonIsNotPassedOver) {
  const ResultSource source{
      "samples_per_second", ResultFrom::json_line, "$.r", "", Pick::only, 1, ""};
  const std::string good = "{\"r\": 4}\n";
  for (const std::string& last :
       {std::string("{\"r\": 6, \"loss\": NaN}\n"), std::string("{\"r\": 6, \"lo"),
        std::string("{\"r\": Infinity}\n{\"event\": \"end\"}\n"),
        "{" + std::string(5 << 20, '[')}) {
    expect_parts(catch_refusal(source, good + last), {"line 2 (\"{", "which is not JSON"});
  }
  EXPECT_EQ(catch_refusal(source, "{rank 0}\n" + good + "[1, NaN\nend\n{\"event\": 1}\n"),
            "read as 4.000000");
}

TEST(ProgramResults, AJsonObjectBehindOtherTextMakesTheOneBeforeDoubtful) {
  const ResultSource source{
      "samples_per_second", ResultFrom::json_line, "$.r", "", Pick::only, 1, ""};
  for (const char* last : {"INFO {\"r\": 6}", "[{\"r\": 6}]", "[rank0]: {\"r\": 6}"}) {
    expect_parts(catch_refusal(source, std::string("{\"r\": 4}\n") + last + "\n"),
                 {"may be in line 2", "on a line of its own"});
  }
  EXPECT_EQ(catch_refusal(source, "INFO {\"r\": 6}\n\x1b[0m{\"r\": 4}\nsaid \"r\"\n"),
            "read as 4.000000");
}

TEST(ProgramResults, NamesWithOtherUnitsNeedAScale) {
  for (const auto& [name, from, what] :
       {std::tuple{"fit_seconds", ResultFrom::key, "time_ms"},
        {"fit_seconds", ResultFrom::json, "$.trainMillis"},
        {"step_seconds", ResultFrom::csv, "step min"},
        {"samples_per_second", ResultFrom::json_line, "$.samples_per_minute"},
        {"tokens_per_second", ResultFrom::events, "perf/kilotokens"}}) {
    ResultSource source{name, from, what, "f", Pick::last, 1, "s.json:3"};
    expect_error(ErrorKind::usage, {what, "may be another unit", "\"scale\""},
                 [&] { ProgramResults results({source}); });
    source.has_scale = true;
    EXPECT_NO_THROW(ProgramResults({source})) << what;
  }
  for (const char* name : {"train_samples_per_second", "min_rate", "tps", "throughput/mean"}) {
    EXPECT_NO_THROW(ProgramResults({{"samples_per_second", ResultFrom::key, name, "f"}})) << name;
  }
}

TEST_F(ProgramFiles, AByteOrderMarkIsSkipped) {
  const std::string mark = "\xef\xbb\xbf";
  EXPECT_EQ(refusal(ResultFrom::key, "r", mark + "r=4\r\n"), "read as 4.000000");
  EXPECT_EQ(refusal(ResultFrom::json, "$.r", mark + "{\"r\": 4}"), "read as 4.000000");
  for (const auto& [from, what, text] : {std::tuple{ResultFrom::key, "r", "r: 4\n"},
                                         {ResultFrom::json_line, "$.r", "{\"r\": 4}\n"},
                                         {ResultFrom::json, "$.r", "{\"r\": 4}\n"},
                                         {ResultFrom::line, "^r: {number}", "r: 4\n"}}) {
    EXPECT_EQ(catch_refusal({"samples_per_second", from, what, "", Pick::only, 1, ""}, mark + text),
              "read as 4.000000")
        << what;
  }
}

std::string event(std::int64_t step, const std::function<void(wire::Tensor&)>& fill) {
  wire::Event made;
  made.set_step(step);
  wire::Summary::Value& value = *made.mutable_summary()->add_value();
  value.set_tag("r");
  fill(*value.mutable_tensor());
  return framed_record(made.SerializeAsString());
}

TEST_F(ProgramFiles, EventsOfOtherTypesAndDamage) {
  const auto whole = event(1, [](wire::Tensor& tensor) {
    tensor.set_dtype(9);
    tensor.add_int64_val(600);
  });
  const auto half = event(2, [](wire::Tensor& tensor) {
    tensor.set_dtype(19);
    tensor.set_tensor_content(std::string("\x00\x3e", 2));
  });
  const auto text = event(3, [](wire::Tensor& tensor) { tensor.set_dtype(7); });
  EXPECT_EQ(refusal(ResultFrom::events, "r", whole), "read as 600.000000");
  EXPECT_EQ(refusal(ResultFrom::events, "r", whole + half), "read as 1.500000");
  EXPECT_EQ(refusal(ResultFrom::events, "r", whole + half.substr(0, 9)), "read as 600.000000");
  expect_parts(refusal(ResultFrom::events, "r", text), {"a tensor of type 7"});
  std::string damaged = whole + half + whole;
  damaged[whole.size() + 2] ^= 1;
  expect_parts(refusal(ResultFrom::events, "r", damaged), {"what follows is lost"});
}

TEST(ProgramFacts, SamplesGiveSteps) {
  RunRecord record;
  record.parameters.set("batch_per_replica", std::int64_t{32});
  record.layout.gpus = 4;
  ProgramReport report;
  report.numbers["samples"] = {3200};
  set_results(record, report, 2);
  EXPECT_EQ(record.throughput->steps, 25);
  report.numbers["steps"] = {20};
  set_results(record, report, 2);
  EXPECT_EQ(record.throughput->steps, 20);
}

TEST(ProgramFacts, ARateHasTheUnitOfItsName) {
  ProgramReport report;
  report.numbers["tokens_per_second"] = {4096};
  report.numbers["tokens"] = {8192};
  RunRecord record;
  record.parameters.set("batch_per_replica", std::int64_t{4});
  set_results(record, report, 2);
  EXPECT_EQ(record.throughput->samples_per_second, 4096);
  EXPECT_EQ(record.throughput->samples, 8192);
  EXPECT_EQ(record.throughput->unit, "tokens");
  EXPECT_FALSE(record.throughput->steps) << "a batch counts samples, not tokens";
  EXPECT_FALSE(record.timing->fit_seconds) << "a rate will do";
  RunRecord steps;
  report.numbers = {{"steps_per_second", {2}}, {"steps", {100}}};
  set_results(steps, report, 50);
  EXPECT_EQ(steps.throughput->unit, "steps");
  EXPECT_EQ(steps.throughput->samples, 100);
  EXPECT_EQ(steps.throughput->steps, 100);
}

// A spec's results, found in what the program printed.
RunRecord record_of(const std::string& results, std::string_view output) {
  const UserProgram program = parse_program(
      "md", R"({"command": ["true"], "directory": "/", "results": {)" + results + "}}");
  ProgramResults found(program.results, std::filesystem::temp_directory_path());
  found.append(output);
  RunRecord record;
  record.provenance.program.emplace();
  set_results(record, found.finish([](const std::string& file) { return file; }), 1000);
  return record;
}

TEST(ProgramFacts, AResultOfOnesOwnHasAUnit) {
  constexpr char kOutput[] =
      "                 (ns/day)    (hour/ns)\nPerformance:      114.865        0.209\n"
      "speed 12.5 cells/s\n";
  const Throughput day =
      *record_of(R"("performance": {"line": "Performance: +{number}", "unit": "ns/day",
                                   "better": "more"})",
                 kOutput)
           .throughput;
  EXPECT_EQ(std::tuple(day.samples_per_second, day.unit, day.better),
            std::tuple(114.865, "ns/day", "more"));
  EXPECT_THROW(record_of(R"("samples_per_second": {"line": "Performance: +{number}"})", kOutput),
               Error)
      << "the unit above it is another";
  const RunRecord hour =
      record_of(R"("hours": {"line": "Performance: +[0-9.]+ +{number}", "unit": "hour/ns",
                             "better": "less"})",
                kOutput);
  EXPECT_EQ(hour.throughput->samples_per_second, 0.209);
  EXPECT_EQ(hour.provenance.rate_is, "hours, as the program reports it");
  EXPECT_FALSE(hour.timing->fit_seconds) << "a result will do";
  const Throughput cells =
      *record_of(R"("samples_per_second": {"line": "speed {number}", "unit": "cells/s"})", kOutput)
           .throughput;
  EXPECT_EQ(std::tuple(cells.samples_per_second, cells.unit, cells.better),
            std::tuple(12.5, "cells", ""))
      << "a count a second, as of samples and tokens";
}

TEST(ProgramFacts, UnitsThatSayTooLittleAreRefused) {
  const auto refusal = [](const std::string& result) {
    return catch_error(ErrorKind::input, [&] { record_of(result, ""); });
  };
  const std::string line = R"({"line": "x {number}")";
  expect_parts(refusal("\"speed\": " + line + "}"), {"unknown result \"speed\"", "\"unit\""});
  expect_parts(refusal("\"speed\": " + line + R"(, "unit": "ms"})"),
               {"more or less may be better", "add \"better\": \"less\""});
  expect_parts(refusal("\"fit_seconds\": " + line + R"(, "unit": "min"})"), {"unit in its name"});
  expect_parts(refusal("\"speed\": " + line + R"(, "better": "less"})"), {"unknown result"});
  expect_parts(refusal("\"samples_per_second\": " + line + R"(, "better": "less"})"),
               {"needs a short unit"});
  expect_parts(refusal("\"speed\": " + line + R"(, "unit": "ns/day", "better": "high"})"),
               {"better"});
  expect_parts(
      refusal("\"speed\": " + line + R"(, "unit": "GB/s"}, "samples_per_second": )" + line + "}"),
      {"both rates"});
  expect_parts(refusal("\"speed\": " + line + R"(, "unit": "GB/s"}, "samples": )" + line + "}"),
               {"count different things"});
}

TEST(ProgramFacts, ResultsOfTwoUnitsAreRefused) {
  const auto parse = [](const std::string& results) {
    return catch_error(ErrorKind::input, [&] {
      parse_program("train",
                    R"({"command": ["true"], "directory": "/", "results": {)" + results + "}}");
    });
  };
  const std::string source = R"({"line": "x {number}"})";
  expect_parts(parse("\"tokens_per_second\": " + source + ", \"samples\": " + source),
               {"count different things"});
  for (const char* other : {"\"global_batch\": ",
                            "\"step_seconds\": {\"line\": \"t {number}\"}, "
                            "\"tokens_per_second\": "}) {
    const std::string unused = parse(other + source + ", \"tokens_per_step\": " + source);
    EXPECT_NE(unused.find("step_seconds and no rate"), std::string::npos) << other << unused;
  }
  EXPECT_EQ(parse("\"tokens_per_second\": " + source + ", \"tokens\": " + source +
                  ", \"steps\": " + source),
            "");
}

}  // namespace
}  // namespace paceline
