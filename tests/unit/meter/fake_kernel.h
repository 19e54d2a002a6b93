// The kernel's files, as a test wants them.
#pragma once

#include <fstream>
#include <string>

#include "engine/core/file.h"
#include "engine/meter/meter_files.h"
#include "tests/support/scratch.h"

namespace paceline {
inline namespace testing {

class FakeKernel {
 public:
  MeterRoots roots() const { return {scratch_ / "proc", scratch_ / "sys"}; }

  void write(const std::string& name, const std::string& text) const {
    const auto file = scratch_ / name;
    make_folder(file.parent_path());
    std::ofstream(file) << text;
  }

  // Ticks since the start of two CPUs: 0, which the tests ask for, and 1.
  void stat(long user, long idle, long steal = 0, long softirq = 0) const {
    write("proc/stat", "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 " + std::to_string(user) + " 0 0 " +
                           std::to_string(idle) + " 0 0 " + std::to_string(softirq) + " " +
                           std::to_string(steal) +
                           " 0 0\ncpu1 77777 0 0 1 0 0 0 0 0 0\nintr 1 2 3\n");
  }

 private:
  Scratch scratch_;
};

}  // namespace testing
}  // namespace paceline
