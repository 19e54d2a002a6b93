// A rank one of whose threads hangs, outside any collective, while the others of its process live.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/faults/victim.h"

namespace paceline::faults {
namespace {

std::optional<pid_t> thread_id(pid_t process, const std::string& name) {
  const std::filesystem::path tasks = "/proc/" + std::to_string(process) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::string is;
    std::getline(std::ifstream(task.path() / "comm"), is);
    if (is == name) return std::stoi(task.path().filename());
  }
  return std::nullopt;
}

// Stops one thread for good, as a file system does that never answers; its process goes on. Dead,
// the thread has to be waited for by whoever holds it, or its process would never end.
class Held {
 public:
  explicit Held(pid_t thread) {
    std::promise<std::string> why;
    auto held = why.get_future();
    keeper_ = std::thread([thread, &why] {
      int status = 0;
      const bool stopped = ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) == 0 &&
                           ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0 &&
                           waitpid(thread, &status, __WALL) == thread;
      why.set_value(stopped ? "" : std::strerror(errno));
      if (stopped) waitpid(thread, &status, __WALL);
    });
    why_ = held.get();
  }
  ~Held() { keeper_.join(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  const std::string& why_not() const { return why_; }

 private:
  std::string why_;
  std::thread keeper_;
};

// As training(), with batches made by a thread of their own, and short deadlines.
std::vector<std::string> fed_by_a_thread(const std::string& backend) {
  std::vector<std::string> words = training(backend, Starter::us, deadline(3));
  *(std::find(words.begin(), words.end(), "--cpus-per-task") + 1) = "2";
  for (const char* word :
       {"--compute-threads", "1", "--input-threads", "1", "--record", "run.json"}) {
    words.push_back(word);
  }
  return words;
}

TEST(HungInput, OfALoneReplicaEndsTheRun) {
  Victim run(fed_by_a_thread("self"));
  ASSERT_TRUE(run.trains()) << run.errors();
  const auto reader = thread_id(run.started(), "input 0");
  ASSERT_TRUE(reader);
  const Held held(*reader);
  if (!held.why_not().empty()) GTEST_SKIP() << "a thread cannot be stopped: " << held.why_not();
  EXPECT_TRUE(run.says("its next batch", 30)) << run.errors();
  const End end = run.wait(60);
  EXPECT_TRUE(end.in_time);
  EXPECT_EQ(end.code, 72) << end.err;
  expect_parts(end.last_line, {"its next batch", "file system"});
  EXPECT_TRUE(std::filesystem::exists(run.folder() / "run.failed.json"));
  EXPECT_EQ(run.left(), std::vector<std::string>{});
}

TEST(HungInput, OfOneRankIsReportedToBeThat) {
  Victim run(fed_by_a_thread("ring"));
  ASSERT_TRUE(run.trains()) << run.errors();
  const auto rank = run.rank(1);
  ASSERT_TRUE(rank);
  const auto reader = thread_id(*rank, "input 0");
  ASSERT_TRUE(reader);
  const Held held(*reader);
  if (!held.why_not().empty()) GTEST_SKIP() << "a thread cannot be stopped: " << held.why_not();
  const End end = run.wait(60);
  EXPECT_TRUE(end.in_time);
  EXPECT_EQ(end.code, 72) << end.err;
  expect_parts(end.last_line, {"rank 1", "waiting for its next batch"});
  EXPECT_EQ(run.left(), std::vector<std::string>{});
}

}  // namespace
}  // namespace paceline::faults
