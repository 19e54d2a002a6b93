#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/meter/machine_load.h"
#include "tests/unit/meter/fake_kernel.h"

namespace paceline {
namespace {

class BusyTasks : public ::testing::Test {
 protected:
  void task(int process, const std::string& name, int parent, long ticks, int cpu) const {
    std::string line = std::to_string(process) + " (" + name + ") R " + std::to_string(parent);
    for (int field = 5; field <= 13; ++field) line += " 0";
    line += " " + std::to_string(ticks) + " 0";
    for (int field = 16; field <= 38; ++field) line += " 0";
    kernel_.write("proc/" + std::to_string(process) + "/stat",
                  line + " " + std::to_string(cpu) + " 0\n");
  }

  std::vector<BusyTask> found(const std::function<void()>& meanwhile) const {
    kernel_.stat(1000, 1000);
    return busy_tasks(
        {0},
        [&] {
          kernel_.stat(1020, 1000);
          meanwhile();
        },
        kernel_.roots());
  }

  FakeKernel kernel_;
  const int me_ = static_cast<int>(getpid());
};

TEST_F(BusyTasks, AreNamedByWhatTheyUse) {
  for (const int process : {100001, 100002, 100003, 100004, 100005}) task(process, "x", 1, 500, 0);
  const auto tasks = found([&] {
    task(100001, "a b) (\x1b[2J", 1, 516, 0);
    task(100002, "little", 1, 500, 0);
    task(100003, "elsewhere", 1, 520, 1);
    task(100004, "make", 1, 502, 0);
    task(100005, "make", 1, 502, 0);
    task(100006, "new", 1, 9000, 0);  // since when is not known
  });
  EXPECT_EQ(to_text(tasks), "a b) (?[2J (0.8 CPUs), make (0.2 CPUs)");
}

TEST_F(BusyTasks, AreNotThisRunsOwn) {
  const auto group = [&](long ticks) {
    task(100001, "sh", 1, ticks, 0);
    task(me_, "paceline", 100001, ticks, 0);
    task(100003, "paceline", 100001, ticks, 0);  // another rank
    task(100004, "python3", 100001, ticks, 0);
    task(100005, "paceline", 1, ticks, 0);  // another run
  };
  group(500);
  EXPECT_EQ(to_text(found([&] { group(505); })), "paceline (0.2 CPUs), python3 (0.2 CPUs)");
}

TEST_F(BusyTasks, ManyAreCut) {
  EXPECT_EQ(to_text({{"a", 1}, {"b", 1}, {"c", 0.5}, {"d", 0.2}, {"e", 0.1}}),
            "a (1.0 CPUs), b (1.0 CPUs), c (0.5 CPUs) and 2 more");
}

TEST_F(BusyTasks, AKernelThatDoesNotReportNamesNone) {
  EXPECT_TRUE(busy_tasks(
                  {0}, [] {}, kernel_.roots())
                  .empty());
}

}  // namespace
}  // namespace paceline
