// A large study, of 20,000 records: every command that reads it takes seconds and little memory.
// PACELINE_LARGE_RUNS: another number, for measurements.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/integration/cli/paceline.h"
#include "tests/support/large_study.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

struct Cost {
  int code = -1;
  double seconds = 0;  // of the processor
  double megabytes = 0;
};

// What a command used.
Cost measure_cost(const std::vector<std::string>& words, const fs::path& folder,
                  const fs::path& out) {
  const pid_t child = fork();
  if (child == 0) {
    const int file = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(file, 1);
    dup2(file, 2);
    if (chdir(folder.c_str()) != 0) _exit(1);
    setenv("PATH", (folder.string() + "/bin:/usr/bin:/bin").c_str(), 1);
    std::vector<char*> arguments = {const_cast<char*>(PACELINE_BINARY)};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execv(PACELINE_BINARY, arguments.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          seconds(usage.ru_utime) + seconds(usage.ru_stime),
          static_cast<double>(usage.ru_maxrss) / 1024};
}

class CliLarge : public Cli {};

TEST_F(CliLarge, EveryCommandTakesSecondsAndLittleMemory) {
  const char* asked = std::getenv("PACELINE_LARGE_RUNS");
  const std::size_t runs = write_large_study(folder() / "large", asked ? std::atoi(asked) : 20000);
  fs::create_directory(folder() / "bin");
  for (const char* program : {"squeue", "sacct", "scontrol"}) {
    std::ofstream(folder() / "bin" / program) << "#!/bin/sh\nexit 0\n";
    fs::permissions(folder() / "bin" / program, fs::perms::owner_all);
  }
  const double scale = std::max(0.25, static_cast<double>(runs) / 100000);
  struct Case {
    std::vector<std::string> words;
    double most_seconds;
  };
  for (const auto& [words, most] : std::vector<Case>{
           {{"status", "large"}, 10},
           {{"report", "large"}, 60},
           {{"report", "large", "--format", "csv"}, 60},
           {{"explain", "large"}, 90},
           {{"best", "large"}, 60},
           {{"export", "large", "--format", "openmetrics"}, 60},
       }) {
    const fs::path out = folder() / "out";
    const Cost cost = measure_cost(words, folder(), out);
    std::string said = file_text(out);
    fmt::print("{:>7} runs  {:<28} code {}  {:6.2f} CPU s  {:6.0f} MB\n", runs,
               words.size() == 4 ? words[0] + " " + words[3] : words[0], cost.code, cost.seconds,
               cost.megabytes);
    EXPECT_LT(cost.code, 3) << said.substr(0, 2000);
    EXPECT_LT(cost.seconds, most * scale) << words[0];
    EXPECT_LT(cost.megabytes, 2000 * scale) << words[0];
    if (words[0] == "status") {
      EXPECT_TRUE(contains(said, fmt::format("{0} of {0} runs done", runs)))
          << said.substr(0, 2000);
      EXPECT_LT(std::count(said.begin(), said.end(), '\n'), 1000);
    }
  }
}

}  // namespace
}  // namespace paceline
