// The programs and studies in docs/examples: what is missing is said, and what is given is used.
#include <nlohmann/json.hpp>

#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kExamples = PACELINE_SOURCE_DIR "/docs/examples";

class Examples : public Cli {
 protected:
  bool has_python() const { return shell("command -v python3").code == 0; }
  Ran in_environment(const std::string& variables, const std::string& words) const {
    return shell("env -u IMAGE -u VENV -u CUDA_PATH -u XLA_FLAGS -u TF_FORCE_GPU_ALLOW_GROWTH " +
                 variables + " '" + kExamples + "/in_environment' " + words);
  }
  void write_program(const std::string& name, const std::string& text) const {
    fs::create_directories((folder() / name).parent_path());
    std::ofstream(folder() / name) << "#!/bin/sh\n" << text << "\n";
    fs::permissions(folder() / name, fs::perms::owner_all);
  }
};

TEST_F(Examples, ArePython) {
  if (!has_python()) GTEST_SKIP() << "no python3 on the PATH";
  int found = 0;
  for (const char* where : {"docs/examples", "docs/recipes", "sweeps/frameworks"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(PACELINE_SOURCE_DIR) / where)) {
      if (entry.path().extension() != ".py") continue;
      const Ran ran = shell("python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' '" +
                            entry.path().string() + "'");
      EXPECT_EQ(ran.code, 0) << entry.path() << "\n" << ran.err;
      ++found;
    }
  }
  EXPECT_GE(found, 5);
}

TEST_F(Examples, AreStudies) {
  for (const char* name : {"horovod", "tensorflow"}) {
    expect_parts(succeed("sweep '" + kExamples + "/" + name + ".json' --dry-run").out,
                 {"program="});
  }
}

// Without site-packages Python has neither of them, whatever is installed.
TEST_F(Examples, HorovodReportsWhatIsMissing) {
  if (!has_python()) GTEST_SKIP() << "no python3 on the PATH";
  const Ran ran = shell("python3 -I -S '" + kExamples + "/horovod_mnist.py'");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  expect_parts(ran.err, {"Python has no numpy", "no tensorflow", "no horovod.tensorflow.keras",
                         "HOROVOD_WITH_TENSORFLOW=1", "pip install horovod"});
}

// With modules that write down how they are called: of two workers, 250 steps an epoch for each.
TEST_F(Examples, HorovodGivesFitItsOwnBatchesUnlessItIsAsWritten) {
  if (!has_python()) GTEST_SKIP() << "no python3 on the PATH";
  std::ofstream(folder() / "play.py") << R"(
import importlib, json, runpy, sys
from unittest.mock import MagicMock
np, tf, hvd = MagicMock(), MagicMock(), MagicMock()
hvd.size.return_value, hvd.rank.return_value, hvd.local_rank.return_value = 2, 0, 1
tf.config.list_physical_devices.return_value = ["gpu 0", "gpu 1"]
x = MagicMock()
x.__len__.return_value = 60000
np.random.default_rng.return_value.random.return_value = x
modules = {"numpy": np, "tensorflow": tf, "horovod.tensorflow.keras": hvd}
importlib.import_module = modules.__getitem__
model = tf.keras.Sequential.return_value
def fit(*given, **how):
    begin = tf.keras.callbacks.LambdaCallback.call_args.kwargs
    for epoch in range(how["epochs"]):
        begin["on_epoch_begin"](epoch, {})
        begin["on_epoch_end"](epoch, {})
    return MagicMock()
model.fit.side_effect = fit
model.count_params.return_value = 407050
sys.argv[0:1] = []
runpy.run_path(sys.argv[0], run_name="__main__")
print(json.dumps({"first is all samples": model.fit.call_args.args[0] is x,
                  "steps": model.fit.call_args.kwargs["steps_per_epoch"],
                  "sums gradients": hvd.DistributedOptimizer.call_count,
                  "shards": [list(c.args) for c in tf.data.Dataset.from_tensor_slices.return_value.shard.call_args_list],
                  "gpu": tf.config.set_visible_devices.call_args.args[0],
                  "grows": tf.config.experimental.set_memory_growth.call_args.args}))
)";
  const auto play = [&](const std::string& more) {
    const Ran ran = expect_success(
        shell("python3 play.py '" + kExamples + "/horovod_mnist.py' --synthetic 60000 " + more));
    std::istringstream lines(ran.out);
    std::string printed, called;
    std::getline(lines, printed);
    std::getline(lines, called);
    return std::pair{json::parse(printed, nullptr, false), json::parse(called, nullptr, false)};
  };
  const auto [meant, how] = play("");
  EXPECT_EQ(how["first is all samples"], false);
  EXPECT_EQ(how["steps"], 250);
  EXPECT_EQ(how["sums gradients"], 1);
  EXPECT_EQ(how["shards"], json::parse("[[2, 0]]"));
  EXPECT_EQ(how["gpu"], "gpu 1");
  EXPECT_EQ(how["grows"], json::parse(R"(["gpu 1", true])"));
  EXPECT_EQ(meant["global_batch"], 256);
  EXPECT_EQ(meant["steps"], 5 * 250);
  const auto [written, how_written] = play("--as-written");
  EXPECT_EQ(how_written["first is all samples"], true);
  EXPECT_EQ(how_written["sums gradients"], 0);
  EXPECT_EQ(written["batch_per_replica"], 240) << "all 60,000 samples in 250 steps, by each worker";
}

TEST_F(Examples, TheVirtualEnvironmentIsActivated) {
  write_program("env/bin/activate", "PATH=$PWD/env/bin:$PATH");
  write_program("env/bin/python3", "echo python of env: $*");
  const Ran ran = expect_success(in_environment("VENV=env", "python3 train.py --batch 64"));
  EXPECT_EQ(ran.out, "python of env: train.py --batch 64\n");
  const Ran none = in_environment("VENV=nowhere", "python3 train.py");
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.err,
            "in_environment: VENV=nowhere is no virtual environment: make it by python3 -m venv "
            "nowhere\n");
}

TEST_F(Examples, TheContainerIsEntered) {
  write_program("bin/apptainer", "echo $*");
  const Ran ran = expect_success(in_environment(
      "PATH=\"$PWD/bin:$PATH\" IMAGE=tf.sif BIND=/scratch VENV=env", "python3 train.py"));
  EXPECT_EQ(ran.out, "exec --nv --bind /scratch tf.sif python3 train.py\n");
}

TEST_F(Examples, XlaFindsItsToolkitAndMemoryGrows) {
  const std::string print = "sh -c 'echo \"$XLA_FLAGS|$TF_FORCE_GPU_ALLOW_GROWTH\"'";
  EXPECT_EQ(in_environment("CUDA_PATH=/opt/cuda XLA_FLAGS=--xla_dump_to=d", print).out,
            "--xla_dump_to=d --xla_gpu_cuda_data_dir=/opt/cuda|true\n");
  EXPECT_EQ(in_environment("TF_FORCE_GPU_ALLOW_GROWTH=false", print).out, "|false\n");
}

// The whole study, on a machine that has Horovod.
TEST_F(Examples, HorovodTrains) {
  if (shell("python3 -c 'import tensorflow, horovod.tensorflow.keras'").code != 0) {
    GTEST_SKIP() << "python3 has no tensorflow and horovod";
  }
  const Ran ran = expect_success(
      shell("python3 '" + kExamples + "/horovod_mnist.py' --synthetic 2000 --steps 10 --epochs 2"));
  EXPECT_EQ(json::parse(ran.out)["steps"], 20);
}

}  // namespace
}  // namespace paceline
