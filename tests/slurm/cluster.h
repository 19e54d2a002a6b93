// A real Slurm cluster for the tests of a suite, and a folder for the studies of each.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include "engine/facts/timing.h"
#include "results/run_record.h"
#include "results/store.h"
#include "tests/support/expect_parts.h"
#include "tests/support/scratch.h"

namespace paceline {
inline namespace testing {

struct Ran {
  int code = -1;
  std::string out;  // and errors
};

// Fails at the caller's line unless it ended well.
inline Ran expect_success(Ran ran, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  if (ran.code != 0) ADD_FAILURE_AT(file, line) << "code " << ran.code << "\n" << ran.out;
  return ran;
}

class Cluster {
 public:
  // `options` of "cluster start"; `environment`: assignments before it.
  explicit Cluster(const std::string& options = "", const std::string& environment = "") {
    const Ran started = run(environment + " '" + kScript + "' start '" + folder() + "' " + options);
    is_up_ = started.code == 0;
    why_ = started.out;
  }
  ~Cluster() { run(std::string("'") + kScript + "' stop '" + folder() + "'"); }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  bool is_up() const { return is_up_; }
  const std::string& why() const { return why_; }
  bool has_several_hosts() const {
    std::string kind;
    std::ifstream(folder() + "/kind") >> kind;
    return kind == "namespaces";
  }

  // A line for the shell where Slurm's commands work; `paceline` is the program under test.
  Ran shell(const std::string& line) const {
    std::ofstream(folder() + "/script")
        << "paceline() { timeout 300 '" PACELINE_BINARY "' \"$@\"; }\ncd '" << work() << "'\n"
        << line << "\n";
    return run(std::string("'") + kScript + "' enter '" + folder() + "' bash '" + folder() +
               "/script'");
  }

  // A verb of the script, as "link" with "n1 20mbit".
  Ran call(const std::string& verb, const std::string& words) const {
    return run(std::string("'") + kScript + "' " + verb + " '" + folder() + "' " + words);
  }

  std::string work() const { return work_.path().string(); }
  std::string folder() const { return cluster_.path().string(); }

 private:
  static constexpr char kScript[] = PACELINE_SOURCE_DIR "/tests/slurm/cluster";

  Ran run(const std::string& line) const {
    const std::string out = folder() + "/out";
    const int status = std::system(("{ " + line + "\n} > '" + out + "' 2>&1 < /dev/null").c_str());
    std::ostringstream text;
    text << std::ifstream(out).rdbuf();
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text.str()};
  }

  Scratch cluster_, work_;
  bool is_up_ = false;
  std::string why_;
};

// A suite with one cluster: derive, and start it in SetUpTestSuite.
class OnCluster : public ::testing::Test {
 protected:
  static void TearDownTestSuite() { cluster_.reset(); }

  void SetUp() override {
    if (!cluster_->is_up()) GTEST_SKIP() << cluster_->why();
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(cluster_->work() + "/" + name) << text;
  }

  // A profile for these nodes; a key in `keys` stands in for one here. Its limit is far above what
  // runs take. Open MPI otherwise takes whatever interface it likes.
  void write_site(const std::string& name, const std::string& keys = "") const {
    const std::string interface = cluster_->has_several_hosts() ? "eth0" : "lo";
    write(name, R"({"name": "virtual", "device": "cpu", "cores_per_node": 2, )" +
                    std::string(contains(keys, "\"time\"") ? "" : R"("time": {"minutes": 30}, )") +
                    R"("environment": {"OMPI_ALLOW_RUN_AS_ROOT": "1",
      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl_tcp_if_include": ")" +
                    interface + R"(", "OMPI_MCA_oob_tcp_if_include": ")" + interface + "\"}" +
                    (keys.empty() ? "" : ", " + keys) + "}");
  }

  // The limit is for what never comes, on the slowest machine.
  static bool soon(const std::function<bool()>& condition, int seconds = 300) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
    return true;
  }

  Ran shell(const std::string& line) const { return cluster_->shell(line); }

  void wait_for_the_queue() const {
    const bool empty = soon([&] { return shell("squeue -h").out.empty(); }, 600);
    EXPECT_TRUE(empty) << shell("squeue; tail -n 5 results/*/slurm/*/*.log").out;
  }

  // Whether all elements of a study that left a status folder have begun their first step.
  bool trains(const std::string& name) const {
    return soon([&] {
      return shell("for status in results/" + name +
                   "/slurm/*/*.status; do paceline doctor --post-mortem $status --json | "
                   "grep -q '\"step\": [1-9]' || exit; done")
                 .code == 0;
    });
  }

  // How many steps of mnist-mlp two ranks make in so many seconds here, by a first run.
  std::string steps_in(double seconds) const {
    constexpr int kSteps = 200;
    const std::string first = cluster_->work() + "/first.json";
    const Ran ran = shell(
        "rm -f first.* && paceline train mnist-mlp --input synthetic --gpus 2 "
        "--backend ring --cpus-per-task 1 --evaluate none --quiet --steps " +
        std::to_string(kSteps) + " --record first.json");
    EXPECT_EQ(ran.code, 0) << ran.out;
    if (ran.code != 0) return "1";
    const double took = *load_store(first).records.at(0)->timing->fit_seconds;
    return std::to_string(static_cast<int>(std::ceil(kSteps * seconds / took)));
  }

  std::filesystem::path study(const std::string& name, const std::string& in = "results") const {
    return std::filesystem::path(cluster_->work()) / in / name;
  }

  // Completed records by point and repeat: how many each has.
  std::map<std::string, int> completed(const std::filesystem::path& study) const {
    std::map<std::string, int> counts;
    for (const Record& record : load_store(study).records) {
      if (record->completed()) ++counts[record->point + " " + std::to_string(record->repeat)];
    }
    return counts;
  }

  void expect_all_once(const std::filesystem::path& study, std::size_t runs) const {
    const auto counts = completed(study);
    EXPECT_EQ(counts.size(), runs)
        << shell("tail -n 20 '" + study.string() + "'/slurm/*/*.log").out;
    for (const auto& [run, count] : counts) EXPECT_EQ(count, 1) << run;
  }

  static std::unique_ptr<Cluster> cluster_;
};

inline std::unique_ptr<Cluster> OnCluster::cluster_;

}  // namespace testing
}  // namespace paceline
