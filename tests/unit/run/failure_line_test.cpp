#include "run/failure_line.h"

#include <gtest/gtest.h>

#include <string>

namespace paceline {
namespace {

void expect_line(std::string_view output, std::string_view text, bool is_last) {
  const FailureLine found = find_failure_line(output);
  EXPECT_EQ(found.text, text);
  EXPECT_EQ(found.is_last, is_last) << text;
}

TEST(FailureLine, IsTheLastOne) {
  expect_line("epoch 1\nno memory\n", "no memory", true);
  expect_line("epoch 1\r\nno memory\r\n\n", "no memory", true);
  expect_line("ValueError: caught\nepoch 2", "epoch 2", true);
  expect_line("Traceback (most recent call last):\nKeyError: 'lr'\n", "KeyError: 'lr'", true);
  expect_line("", "", true);
  EXPECT_EQ(find_failure_line(std::string(1000, 'x')).text.size(), 300U);
}

// As torchrun, mpirun and srun end.
TEST(FailureLine, IsTheErrorOfTheRankWhereALauncherHasTheLastWord) {
  const std::string rank =
      "[rank1]: Traceback (most recent call last):\n"
      "[rank1]:     model = DistributedDataParallel(model, device_ids=[device])\n"
      "[rank1]: ValueError: DistributedDataParallel device_ids and output_device are wrong\n";
  const std::string error =
      "ValueError: DistributedDataParallel device_ids and output_device are wrong";
  const std::string ruler(60, '=');
  expect_line(
      rank + "E1129 21:05:06.813000 3488 api.py:1002] failed (exitcode: 1) local_rank: 0\n" +
          "Traceback (most recent call last):\n    raise ChildFailedError(\n" +
          "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" + ruler +
          "\ntrain.py FAILED\n  traceback : To enable traceback see: https://pytorch.org\n" +
          ruler + "\n",
      error, false);
  expect_line(rank + "srun: error: n1: task 1: Exited with exit code 1\n", error, false);
  expect_line("torch.OutOfMemoryError: CUDA out of memory\n-----\nmpirun detected it\n-----\n",
              "torch.OutOfMemoryError: CUDA out of memory", false);
  expect_line("train.py FAILED\n  traceback : Signal 9 (SIGKILL) received by PID 7\n" + ruler,
              "traceback : Signal 9 (SIGKILL) received by PID 7", true);
  expect_line(
      "ConnectionError: retrying\nstep 9\n  traceback : Signal 9 (SIGKILL) received by PID 7\n" +
          ruler,
      "traceback : Signal 9 (SIGKILL) received by PID 7", true);
  expect_line("ValueError: caught\nsrun: error: n1: task 1: Killed",
              "srun: error: n1: task 1: Killed", true);
  expect_line("1: ValueError: no data\nsrun: error: n1: task 1: Exited with exit code 1",
              "ValueError: no data", false);
  expect_line("loss 1\nsrun: error: n1: task 1: Exited with exit code 1", "loss 1", true);
  expect_line("====\n----", "", true);
}

}  // namespace
}  // namespace paceline
