// Logs as common programs print them, read by the presets of their names.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "engine/core/error.h"
#include "engine/facts/timing.h"
#include "results/run_record.h"
#include "run/program_run.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

// `fixed`: parameters of the point.
RunRecord read_log(const std::string& preset, const std::string& log,
                   const std::vector<std::pair<std::string, Value>>& fixed = {
                       {"batch_per_replica", std::int64_t{32}}}) {
  const UserProgram program = parse_program(
      "train", R"({"command": ["true"], "directory": "/", "results": ")" + preset + "\"}");
  ProgramResults results(program.results, std::filesystem::temp_directory_path());
  results.append(log);
  const ProgramReport report = results.finish([](const std::string& file) { return file; }, 2);
  RunRecord record;
  record.layout.gpus = 2;
  for (const auto& [name, value] : fixed) record.parameters.set(name, value);
  set_results(record, report, 100);
  return record;
}

// What a log says: its unit, its rate and its last loss, where it has them.
struct Log {
  const char *preset, *unit;
  std::optional<double> rate, loss;
  const char* text;
};

constexpr char kHuggingFace[] =
    "{'loss': 2.1, 'learning_rate': 1e-05, 'epoch': 0.5}\n"
    "{'train_runtime': 12.5, 'train_samples_per_second': 80.1, 'train_steps_per_second': 10.0, "
    "'train_loss': 1.75, 'epoch': 1.0}\n";

const Log kLogs[] = {
    {"nanogpt", "tokens", 491520 / 0.5, 9.6543,
     "tokens per iteration will be: 491,520\nnumber of parameters: 123.59M\n"
     "iter 0: loss 10.9886, time 1000.00ms, mfu -100.00%\n"
     "iter 10: loss 9.6543, time 500.00ms, mfu 30.50%\n"
     "step 10: train loss 9.6, val loss 9.7\n"},
    {"llm.c", "tokens", 1667000, 10.964,
     "step    1/18865 | loss 11.009 (+nanz)| norm 15.28 (+nanz)| lr 6.00e-07 | 320.12 ms | 53.1% "
     "bf16 MFU | 1637822 tok/s\n"
     "step    2/18865 | loss 10.964 (+nanz)| norm 15.11 (+nanz)| lr 1.20e-06 | 300.00 ms | 54.0% "
     "bf16 MFU | 1667000 tok/s\n"},
    {"megatron-lm", "", 320, 8.1,
     " [2026-01-01 10:00:00] iteration       10/     500 | consumed samples:         2560 | "
     "elapsed time per iteration (ms): 800.0 | throughput per GPU (TFLOP/s/GPU): 220.1 | "
     "learning rate: 1.0E-05 | global batch size:   256 | lm loss: 9.512300E+00 | loss scale: 1.0 "
     "|\n"
     " [2026-01-01 10:00:08] iteration       20/     500 | consumed samples:         5120 | "
     "elapsed time per iteration (ms): 800.0 | throughput per GPU (TFLOP/s/GPU): 220.1 | "
     "learning rate: 2.0E-05 | global batch size:   256 | lm loss: 8.100000E+00 | loss scale: 1.0 "
     "|\n"},
    {"deepspeed",
     "",
     211.5,
     {},
     "[2026-01-01 10:00:00,000] [INFO] [timer.py:215:stop] epoch=0/micro_step=20/global_step=20, "
     "RunningAvgSamplesPerSec=211.5, CurrSamplesPerSec=220.1, MemAllocated=2.1GB, "
     "MaxMemAllocated=4.4GB\n"},
    {"torchtitan", "tokens", 2 * 3456, 7.1234,  // its rate is of one GPU
     "[titan] 2026-01-01 10:00:00,000 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  7.1234  "
     "\x1b[33mmemory: 40.10GiB(50.1%)  \x1b[34mtps: 3,456  \x1b[36mtflops: 200.1\n"
     "[titan] 2026-01-01 10:00:00,000 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  7.1234  "
     "\x1b[33mmemory: 40.10GiB(50.1%)  \x1b[34mtps: 3,456  \x1b[36mtflops: 200.1\n"},
    {"lightning",
     "steps",
     22.5,
     {},
     "Epoch 0:  50%|#####     | 50/100 [00:02<00:02, 20.10it/s, v_num=0]\r"
     "Epoch 0: 100%|##########| 100/100 [00:04<00:00, 22.50it/s, v_num=0]\n"},
    {"huggingface", "", 80.1, 1.75, kHuggingFace},
    {"horovod",
     "images",
     1204.8,
     {},
     "Img/sec per GPU: 301.2 +-1.2\nTotal img/sec on 4 GPU(s): 1204.8 +-4.8\n"},
    {"torch-imagenet",
     "",
     64 / 0.2,
     {},  // 2 replicas of 32
     "Epoch: [0][  1/100]\tTime  0.200 (  0.250)\tData  0.001 (  0.010)\tLoss 6.9e+00 (7.0e+00)\n"
     "Epoch: [0][ 11/100]\tTime  0.200 (  0.210)\tData  0.001 (  0.002)\tLoss 6.8e+00 "
     "(6.9e+00)\n"},
};

TEST(ResultPresets, ReadLogsOfCommonPrograms) {
  for (const Log& log : kLogs) {
    SCOPED_TRACE(log.preset);
    const RunRecord record = read_log(log.preset, log.text);
    EXPECT_EQ(record.throughput->unit, log.unit);
    ASSERT_TRUE(record.throughput->samples_per_second);
    EXPECT_NEAR(*record.throughput->samples_per_second, *log.rate, 1e-6);
    if (log.loss) {
      EXPECT_EQ(record.quality.epochs.back().train_loss, log.loss);
    }
  }
}

double rate_of(const std::string& preset, const std::string& log) {
  return read_log(preset, log).throughput->samples_per_second.value_or(0);
}

std::string iterations(const std::vector<double>& times) {
  std::string log = "tokens per iteration will be: 1,000\n";
  for (std::size_t i = 0; i < times.size(); ++i) {
    log += fmt::format("iter {}: loss 4.1, time {:.2f}ms, mfu 0.05%\n", i, times[i]);
  }
  return log;
}

TEST(ResultPresets, WarmUpAndStepsThatEvaluateAreLeftOut) {
  EXPECT_NEAR(rate_of("nanogpt", iterations({9000, 300, 20, 21, 20, 19, 20})), 50'000, 1);
  EXPECT_NEAR(rate_of("nanogpt", iterations({500, 20, 20, 20, 400, 20, 20, 20})), 50'000, 1);
  std::vector<double> many(10, 30);
  many.insert(many.end(), 15, 20);
  const RunRecord record = read_log("nanogpt", iterations(many));
  EXPECT_NEAR(*record.throughput->samples_per_second, 50'000, 1);
  EXPECT_EQ(
      record.provenance.rate_is,
      "tokens of a step over the mean of 15 of the 25 steps that it prints, without the first "
      "10 (warm-up)");
  many = {9000, 300, 23, 26, 20, 21, 24, 20, 27, 20, 20, 20, 20};
  EXPECT_NEAR(rate_of("nanogpt", iterations(many)), 50'000, 1);
  many.assign(50, 20);
  for (std::size_t i = 13; i < many.size(); i += 8) many[i] = 400;  // 8 loaders that are too slow
  EXPECT_NEAR(rate_of("nanogpt", iterations(many)), 40e6 / (35 * 20 + 5 * 400), 1)
      << "of many steps an eighth are no exceptions";
  EXPECT_NEAR(rate_of("nanogpt", iterations({20, 60, 20, 60, 20, 60})), 25'000, 1)
      << "half of the steps are no exceptions";
}

std::string megatron(int batch, double milliseconds,
                     const char* label = "elapsed time per iteration") {
  return fmt::format(
      " [now] iteration       10/     500 | {} (ms): {:.1f} | global batch size: {:5} | "
      "lm loss: 9.5E+00 |\n",
      label, milliseconds, batch);
}

TEST(ResultPresets, AStepIsPairedWithItsOwnBatch) {
  EXPECT_NEAR(rate_of("megatron-lm", megatron(32, 1000) + megatron(32, 1000) + megatron(64, 2000) +
                                         megatron(128, 4000)),
              32, 0.01);
}

TEST(ResultPresets, ALineOfAnotherFormIsNamed) {
  const auto refuse = [](const char* preset, const std::string& log) {
    return catch_error(ErrorKind::input, [&] { read_log(preset, log); });
  };
  expect_parts(refuse("megatron-lm", megatron(32, 1000) + megatron(32, 900, "time an iteration")),
               {"line 2", "time an iteration (ms): 900"});
  const std::string bar = "Epoch 3:  20%|##        | 2/10 [00:08<00:33, ";
  expect_parts(refuse("lightning", bar + "4.14s/it]\n"), {"4.14s/it"});
  expect_parts(refuse("lightning", bar + "?it/s]\n"), {"?it/s"});
}

TEST(ResultPresets, ValidationAndTestAreOtherPhases) {
  EXPECT_NEAR(rate_of("torchtitan",
                      "[titan] - step: 10  loss:  7.1  tps: 1,000  mfu: 3%\n"
                      "[titan] - validate step: 10  loss:  7.0  tps: 9,000\n"),
              2000, 1e-9);
  const std::string epoch = "Epoch 0: 100%|####| 100/100 [00:53<00:00,  0.88it/s, v_num=7]\n";
  const std::string phases =
      "Validation DataLoader 0: 50%|####| 50/100 [00:02<00:00, 40.10it/s]\r"
      "Epoch 0: 100%|####| 100/100 [01:23<00:00,  0.52it/s, v_num=7]\r"
      "Testing DataLoader 0: 100%|####| 100/100 [00:02<00:00, 41.20it/s]\n";
  EXPECT_NEAR(rate_of("lightning", epoch + phases), 0.88, 1e-9)
      << "after a validation the bar's rate is of both";
  EXPECT_NEAR(rate_of("lightning", epoch + phases +
                                       "Epoch 1:   0%|    | 0/100 [00:00<?, ?it/s, v_num=7]\r"
                                       "Epoch 1:  50%|##  | 50/100 [00:40<00:40, 1.25it/s]\r"),
              1.25, 1e-9);
  const std::string rich =
      "Epoch 0/0  \xe2\x94\x81\xe2\x94\x81 300/300 0:00:04 \xe2\x80\xa2 0:00:00 ";
  EXPECT_NEAR(
      rate_of("lightning",
              rich + "71.67it/s v_num: 0.000\n"
                     "Testing \xe2\x94\x81\xe2\x94\x81 157/157 0:00:00 \xe2\x80\xa2 0:00:00 "
                     "206.03it/s \n"),
      71.67, 1e-9);
}

TEST(ResultPresets, AnIterationThatEvaluatesIsNoStep) {
  std::string log = "tokens per iteration will be: 1,000\n";
  for (int i = 0; i < 5; ++i) {
    log += fmt::format(
        "step {0}0: train loss 4.1, val loss 4.2\nsaving checkpoint to out\n"
        "iter {0}0: loss 4.1, time 900.00ms, mfu 0.05%\niter {0}5: loss 4.1, time 20.00ms\n",
        i);
  }
  const RunRecord record = read_log("nanogpt", log);
  EXPECT_NEAR(*record.throughput->samples_per_second, 50'000, 1);
  EXPECT_EQ(record.provenance.rate_is,
            "tokens of a step over the mean of 5 of the 10 steps that it prints, without 5 that "
            "evaluate (not_between)");
  expect_error(ErrorKind::input, {"only where not_between leaves it out", "more often"}, [] {
    read_log("nanogpt",
             "tokens per iteration will be: 1,000\nstep 0: train loss 4.1, val loss 4.2\n"
             "iter 0: loss 4.1, time 900.00ms, mfu 0.05%\n");
  });
}

// Seconds of a step by Keras' bar, or by verbose=2; the unit is Keras' choice.
TEST(ResultPresets, KerasTimesOfStepsAreReadInAnyUnit) {
  const auto update = [](int step, int steps, const std::string& time) {
    return fmt::format(
        "\r\x1b[1m{:2}/{}\x1b[0m \x1b[32m\xe2\x94\x81\x1b[0m\x1b[37m\x1b[0m \x1b[1m3s\x1b[0m "
        "{}/step - "
        "loss: 2.3\b\b\b",
        step, steps, time);
  };
  const auto bar = [&](const std::string& step, const std::string& whole) {
    return "Epoch 1/2\n" + update(1, 43, "218ms") + update(42, 43, step) + update(43, 43, whole) +
           "\n" + update(1, 32, "9ms") + update(32, 32, "9ms") + "\n";
  };
  EXPECT_NEAR(rate_of("keras", bar("80ms", "95ms")), 64 / 0.08, 1e-6)
      << "neither of the validation nor of evaluate()";
  EXPECT_NEAR(rate_of("keras", bar("2s", "3s")), 32, 1e-6);
  EXPECT_NEAR(rate_of("keras", bar("800us", "850us")), 80'000, 1e-3);
  const std::string plain = "Epoch 1/1\n469/469 - 3s - 8ms/step - accuracy: 0.90 - loss: 0.30\n";
  EXPECT_NEAR(rate_of("keras", plain + "79/79 - 1s - 1ms/step - loss: 0.4\n"), 8'000, 1e-6);
  EXPECT_NEAR(rate_of("keras", "Epoch 1/1\n469/469 [======] - 3s 8ms/step - loss: 0.30\n"), 8'000,
              1e-6);
}

TEST(ResultPresets, TimesOfStepsOfAnUnknownSizeAreARateOfSteps) {
  const RunRecord record = read_log("keras", "9/9 - 3s - 40ms/step - loss: 0.3\n", {});
  EXPECT_EQ(record.throughput->unit, "steps");
  EXPECT_NEAR(*record.throughput->samples_per_second, 25, 1e-9);
  EXPECT_EQ(record.provenance.rate_is, "one over the mean of the steps that it prints");
}

TEST(ResultPresets, ARateThatItsStepsContradictIsAnError) {
  ProgramReport report;
  report.numbers = {
      {"samples_per_second", {1000}}, {"global_batch", {32}}, {"step_seconds", {0.5, 0.5}}};
  RunRecord record;
  expect_error(ErrorKind::input, {"1000 samples/s, and by its steps it is 64"},
               [&] { set_results(record, report, 2); });
  report.numbers["samples_per_second"] = {70};
  EXPECT_NO_THROW(set_results(record, report, 2));
}

TEST(ResultPresets, ReadTimesOfWholeRuns) {
  EXPECT_EQ(read_log("huggingface", kHuggingFace).timing->fit_seconds, 12.5);
}

TEST(ResultPresets, AnotherNameIsRefusedWithTheNearest) {
  expect_error(ErrorKind::input, {"nanogpt"}, [] { read_log("nanogp", ""); });
}

}  // namespace
}  // namespace paceline
