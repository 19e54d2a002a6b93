// Runs the real `paceline` through a shell, as a user does.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/expect_parts.h"
#include "tests/support/scratch.h"

namespace paceline {
inline namespace testing {

struct Ran {
  int code = -1;
  std::string out, err;
  std::string busy;  // warnings that other processes compute, which tests that run side by side
                     // cannot avoid
};

inline std::string take_busy_warnings(std::string& text) {
  std::string taken, rest;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool busy = line.find("warning: other processes use the CPUs") != line.npos ||
                      line.find("warning: the machine was busy") != line.npos;
    (busy ? taken : rest) += line + '\n';
  }
  text = rest;
  return taken;
}

// Fails at the caller's line unless it ended well.
inline Ran expect_success(Ran ran, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  if (ran.code != 0)
    ADD_FAILURE_AT(file, line) << "code " << ran.code << "\n" << ran.err << ran.out;
  return ran;
}

class Cli : public ::testing::Test {
 protected:
  const std::filesystem::path& folder() const { return scratch_.path(); }

  // A line for the shell, in an empty folder, without OpenMP variables and what its user
  // configured; `paceline` is the program under test, or the one that PACELINE_PROGRAM names.
  Ran shell(const std::string& line) const {
    const char* other = std::getenv("PACELINE_PROGRAM");
    const std::string program = other != nullptr ? other : PACELINE_BINARY;
    std::ofstream(streams_.path() / "script")
        << "paceline() { timeout 300 '" << program << "' \"$@\"; }\n"
        << "unset ${!OMP_@} ${!GOMP_@} ${!KMP_@}\n"
        << "export XDG_CONFIG_HOME='" << (folder() / "configuration").string() << "'\n"
        << "cd '" << folder().string() << "'\n"
        << line << "\n";
    const std::string base = streams_.path().string();
    const int status = std::system(
        ("bash '" + base + "/script' > '" + base + "/out' 2> '" + base + "/err' < /dev/null")
            .c_str());
    Ran ran{WIFEXITED(status) ? WEXITSTATUS(status) : -1, file_text(streams_.path() / "out"),
            file_text(streams_.path() / "err"), ""};
    ran.busy = take_busy_warnings(ran.err);
    return ran;
  }

  // Open MPI 5.0.7's mpirun ends in a segmentation fault where it is to start two programs.
  bool mpirun_starts_two_programs() const {
    return shell(
               "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 60 mpirun -np 1 "
               "true : "
               "-np 1 true")
               .code == 0;
  }

  Ran paceline(const std::string& arguments) const { return shell("paceline " + arguments); }

  // Fails at the caller's line unless it ends well.
  Ran succeed(const std::string& arguments, const char* file = __builtin_FILE(),
              int line = __builtin_LINE()) const {
    return expect_success(paceline(arguments), file, line);
  }

  // Nothing on standard output, and one line on the other that holds every part.
  void expect_refused(const std::string& arguments, int code,
                      const std::vector<std::string>& parts) const {
    SCOPED_TRACE("paceline " + arguments);
    const Ran ran = paceline(arguments);
    EXPECT_EQ(ran.code, code);
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(ran.err.starts_with("paceline: ")) << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    expect_parts(ran.err, parts);
  }

 private:
  Scratch scratch_, streams_;
};

}  // namespace testing
}  // namespace paceline
