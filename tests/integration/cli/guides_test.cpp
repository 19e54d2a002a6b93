// The centres' guides: their studies run, and what they get wrong is right here (docs/guides.md).
#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "results/names.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kSmall[] =
    "train mnist-mlp --quiet --json --test-limit 500 --cpus-per-replica 1 --oversubscribe ";

class Guides : public Cli {
 protected:
  json record(const std::string& arguments) const {
    return json::parse(succeed(kSmall + arguments).out, nullptr, false);
  }
  // One small run of each point of a shipped study that can run here.
  void expect_study(const std::string& name, const std::string& smaller, std::size_t points) const {
    SCOPED_TRACE(name);
    expect_success(shell("timeout 300 '" PACELINE_BINARY "' sweep '" PACELINE_SOURCE_DIR
                         "/sweeps/" +
                         name + ".json' --repeats 1 --results out " + smaller));
    std::size_t found = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder() / "out" / name)) {
      if (entry.path().filename() != "1.1.json") continue;
      EXPECT_EQ(json::parse(file_text(entry.path()))["status"], "completed");
      ++found;
    }
    EXPECT_EQ(found, points);
  }
};

constexpr char kFew[] =
    "--set oversubscribe=true --set test_limit=200 --set steps=4 --set gpus=1,2 ";
constexpr char kOneCpu[] = " --set cpus_per_replica=1";

TEST_F(Guides, Sigma2MnistRuns) {
  expect_study("sigma2-mnist", "--set epochs=2", 2);
}

TEST_F(Guides, Sigma2MirroredRuns) {
  expect_study("sigma2-mirrored", std::string(kFew) + "--set cpus_per_task=2", 4);
  std::size_t event_files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder() / "logs" / "fit")) {
    event_files += entry.is_regular_file();
  }
  EXPECT_GE(event_files, 4U) << "of each run";
}

TEST_F(Guides, Sigma2HorovodRuns) {
  if (!find_name("backend", "mpi").built) GTEST_SKIP() << "mpi is not built here";
  expect_study("sigma2-horovod", std::string(kFew) + "--set backend=mpi", 4);
}

TEST_F(Guides, MlDistMnistRuns) {
  expect_study("ml-dist-mnist", std::string(kFew) + "--set backend=gloo --set device=cpu" + kOneCpu,
               2);
}

TEST_F(Guides, NerscAdagradRuns) {
  if (!find_name("backend", "mpi").built) GTEST_SKIP() << "mpi is not built here";
  expect_study("nersc-adagrad", std::string(kFew) + kOneCpu, 4);
}

// A program in the place of Python that writes down the threads it is told.
TEST_F(Guides, NerscThreadsReachTheProgram) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "two CPUs can be divided";
  const Ran ran = shell(R"x(mkdir bin; cat > bin/python3 <<END
#!/bin/sh
[ "\$1" = frameworks/tf_train.py ] || exit 1
echo "\$TF_NUM_INTRAOP_THREADS \$TF_NUM_INTEROP_THREADS \$OMP_NUM_THREADS" >> $PWD/threads
echo '{"throughput": 9, "step_seconds": [1], "parameter_count": 1, "global_batch": 128, "precision": "fp32"}'
END
chmod +x bin/python3
PATH=$PWD/bin:$PATH paceline sweep nersc-threads --set cpus_per_task=2 --repeats 1 --results out
sort threads)x");
  EXPECT_TRUE(ran.out.ends_with("1 2 1\n2 1 2\n")) << ran.out << ran.err;
}

constexpr char kOneStep[] =
    "--set oversubscribe=true --set input=synthetic --set weights=none --set evaluate=none --set "
    "steps=1 --set gpus=1,2 --set backend=mirrored ";

TEST_F(Guides, IdrisCifar10Runs) {
  expect_study(
      "idris-cifar10",
      std::string(kOneStep) + "--set batch_per_replica=2 --set cpus_per_replica=1 --set epochs=1",
      2);
}

TEST_F(Guides, NyuCassavaRuns) {
  expect_study("nyu-cassava",
               std::string(kOneStep) + "--set batch_per_replica=1 --set cpus_per_task=2", 2);
}

// What the guides run, as figures: their scripts' job requests, and the points of their studies.
class GuideTable : public Cli {
 protected:
  // Makes the scripts of a study for a site.
  void plan(const std::string& study, const std::string& site,
            const std::string& options = "") const {
    fs::remove_all(folder() / "made");
    succeed("submit " + source("sweeps/" + study) + " --site " + source("slurm/sites/" + site) +
            " --dry-run --scripts made " + options);
  }

  std::string script(const std::string& shape) const {
    return file_text(folder() / "made" / (shape + ".sbatch"));
  }

  // Whether each line stands in the script of this shape, as a line of its own.
  void expect_lines(const std::string& shape, const std::vector<std::string>& lines) const {
    const std::string text = script(shape);
    ASSERT_FALSE(text.empty()) << "no array " << shape;
    for (const std::string& line : lines)
      EXPECT_TRUE(contains(text, line + "\n")) << line << "\n" << text;
  }

  // "8 968 0 true" for each point of a study: the values of these parameters, "-" where it has
  // none.
  std::vector<std::string> points(const std::string& study,
                                  const std::vector<std::string>& names) const {
    const Ran ran = succeed("sweep " + source("sweeps/" + study) + " --dry-run --json");
    const json plan = json::parse(ran.out, nullptr, false);
    std::vector<std::string> rows;
    for (const json& point : plan["points"]) {
      std::string row;
      for (const std::string& name : names) {
        const json value = point["parameters"].value(name, json("-"));
        row += (row.empty() ? "" : " ") +
               (value.is_string() ? value.get<std::string>() : value.dump());
      }
      if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
    }
    return sorted(rows);
  }

  static std::vector<std::string> sorted(std::vector<std::string> rows) {
    std::sort(rows.begin(), rows.end());
    return rows;
  }

  static std::string source(const std::string& file) {
    return std::string("'" PACELINE_SOURCE_DIR "/") + file + ".json'";
  }
};

using Rows = std::vector<std::string>;

TEST_F(GuideTable, Sigma2FirstExample) {
  EXPECT_EQ(points("sigma2-mnist", {"gpus", "batch_per_replica", "epochs", "train_limit",
                                    "test_limit", "optimizer", "learning_rate", "evaluate",
                                    "checkpoint_every", "save_weights_only", "double_softmax"}),
            (Rows{"1 32 50 1000 1000 adam 0.001 epoch 1epoch true false",
                  "1 32 50 1000 1000 adam 0.001 epoch 1epoch true true"}));
  EXPECT_TRUE(contains(file_text(PACELINE_SOURCE_DIR "/docs/guides.md"),
                       "first two jobs say `--gpus=1` and `--gpus=2`"));
  plan("sigma2-mnist", "saga");
  expect_lines("1n1t1c1g",
               {"#SBATCH --ntasks=1", "#SBATCH --mem-per-cpu=8G", "#SBATCH --partition=accel",
                "#SBATCH --gpus-per-task=1", "#SBATCH --time=0:30:00", "module purge"});
}

TEST_F(GuideTable, Sigma2MirroredStrategy) {
  Rows rows;
  for (const char* reading : {"false", "true"}) {
    for (const char* place : {"1 1", "1 2", "1 4", "2 2", "4 4"}) {
      rows.push_back(std::string(place) + " mirrored 64 60000 50 70 none logs/fit 1 1epoch " +
                     reading);
    }
  }
  EXPECT_EQ(points("sigma2-mirrored",
                   {"gpus", "cpus_per_task", "backend", "batch_per_replica", "shuffle_buffer",
                    "epochs", "steps_per_epoch", "learning_rate_rule", "tensorboard",
                    "histogram_freq", "checkpoint_every", "double_softmax"}),
            sorted(rows));
  plan("sigma2-mirrored", "saga");
  // One task of two GPUs; each has a CPU here, where the guide gives both one.
  expect_lines("1n1t2c2g", {"#SBATCH --nodes=1", "#SBATCH --ntasks=1", "#SBATCH --gpus-per-task=2",
                            "#SBATCH --mem-per-cpu=8G", "#SBATCH --partition=accel"});
}

TEST_F(GuideTable, Sigma2Horovod) {
  Rows rows;
  for (const char* reading : {"as written", "as meant"}) {
    const bool written = reading == std::string("as written");
    for (const int gpus : {1, 2, 4, 8}) {
      const int steps = 500 / gpus, batch = written ? (60000 + steps - 1) / steps : 128;
      rows.push_back(std::to_string(gpus) + " " + std::to_string(batch) +
                     (written ? " 0 true" : " 10000 false") +
                     " 500/replicas 100 adam 0.001 linear 3.0 logs/fit 1 1epoch");
    }
  }
  EXPECT_TRUE(contains(rows[0], "1 120 ") && contains(rows[3], "8 968 ")) << "as Keras takes it";
  EXPECT_EQ(points("sigma2-horovod",
                   {"gpus", "batch_per_replica", "shuffle_buffer", "double_softmax",
                    "steps_per_epoch", "epochs", "optimizer", "learning_rate", "learning_rate_rule",
                    "warmup_epochs", "tensorboard", "histogram_freq", "checkpoint_every"}),
            sorted(rows));
  EXPECT_TRUE(contains(file_text(PACELINE_SOURCE_DIR "/sweeps/sigma2-horovod.json"),
                       "no worker sums gradients: here all do"));
  plan("sigma2-horovod", "saga");
  // Two whole nodes, of four GPUs each.
  expect_lines("2n8t1c8g",
               {"#SBATCH --nodes=2", "#SBATCH --ntasks=8", "#SBATCH --ntasks-per-node=4",
                "#SBATCH --gpus-per-task=1", "#SBATCH --mem-per-cpu=8G",
                "#SBATCH --partition=accel", "#SBATCH --time=0:30:00", "export OMPI_MCA_pml=ob1",
                "export HOROVOD_MPI_THREADS_DISABLE=1"});
}

TEST_F(GuideTable, NyuCassava) {
  EXPECT_EQ(points("nyu-cassava", {"cache_type"}), Rows{"fp32"}) << ".cache() after / 255";
  Rows rows = points("nyu-cassava", {"backend", "gpus", "cpus_per_task"});
  std::erase_if(rows, [](const std::string& row) { return !row.starts_with("mirrored "); });
  EXPECT_EQ(rows, sorted({"mirrored 1 2", "mirrored 1 4", "mirrored 1 8", "mirrored 1 16",
                          "mirrored 2 4", "mirrored 2 8", "mirrored 2 16", "mirrored 3 4",
                          "mirrored 3 8", "mirrored 3 16", "mirrored 4 4", "mirrored 4 8",
                          "mirrored 4 16", "mirrored 4 32"}));
  plan("nyu-cassava", "nyu");
  expect_lines("1n1t16c2g", {"#SBATCH --nodes=1", "#SBATCH --ntasks=1",
                             "#SBATCH --cpus-per-task=16", "#SBATCH --mem=64G",
                             "#SBATCH --gres=gpu:2", "#SBATCH --time=0:20:00", "module purge"});
  EXPECT_TRUE(contains(script("1n1t16c2g"), "paceline=(singularity exec --nv "));
}

TEST_F(GuideTable, NerscAdagrad) {
  Rows rows;
  for (const char* gpus : {"1", "2", "4", "8"}) {
    for (const char* steps : {"500", "500/replicas"}) {
      rows.push_back(std::string(gpus) + " " + steps + " 8 adagrad 0.01 linear 10minutes");
    }
  }
  EXPECT_EQ(points("nersc-adagrad", {"gpus", "steps_per_epoch", "epochs", "optimizer",
                                     "learning_rate", "learning_rate_rule", "checkpoint_every"}),
            sorted(rows));
  plan("nersc-adagrad", "nersc-cpu");
  expect_lines("1n8t16c", {"#SBATCH --nodes=1", "#SBATCH --ntasks=8", "#SBATCH --constraint=cpu"});
  EXPECT_FALSE(contains(script("1n8t16c"), "#SBATCH --g"));
  plan("nersc-adagrad", "nersc");
  expect_lines("2n8t16c8g", {"#SBATCH --gpus-per-node=4", "#SBATCH --gpu-bind=none"});
}

// Intra-op x inter-op threads are the CPUs of a task, up to the node's hardware threads.
TEST_F(GuideTable, NerscThreads) {
  for (const std::string& row :
       points("nersc-threads", {"compute_threads", "input_threads", "cpus_per_task", "device"})) {
    int intra = 0, inter = 0, cpus = 0;
    ASSERT_EQ(std::sscanf(row.c_str(), "%d %d %d cpu", &intra, &inter, &cpus), 3) << row;
    EXPECT_EQ(intra * inter, cpus);
  }
  plan("nersc-threads", "nersc-cpu");
  expect_lines("1n1t256c", {"#SBATCH --cpus-per-task=256", "#SBATCH --constraint=cpu"});
}

TEST_F(GuideTable, MlDistMnist) {
  Rows rows;
  for (const char* gpus : {"1", "2", "4"}) {
    for (const char* how : {"gloo cuda", "nccl cuda", "gloo cpu"}) {
      rows.push_back(std::string(gpus) + " " + how + " adam 0.001 linear");
    }
  }
  EXPECT_EQ(points("ml-dist-mnist", {"gpus", "backend", "device", "optimizer", "learning_rate",
                                     "learning_rate_rule"}),
            sorted(rows));
  plan("ml-dist-mnist", "princeton");
  // A task a GPU.
  expect_lines("1n4t12c4g",
               {"#SBATCH --nodes=1", "#SBATCH --ntasks-per-node=4", "#SBATCH --gres=gpu:4"});
}

TEST_F(GuideTable, IdrisCifar10) {
  const Rows rows =
      points("idris-cifar10",
             {"gpus", "backend", "gpus_per_task", "batch_per_replica", "epochs", "evaluate",
              "steps_per_epoch", "optimizer", "learning_rate", "learning_rate_rule"});
  for (const char* gpus : {"1", "2", "4", "8"}) {
    for (const char* length : {"10 end", "3 epoch"}) {
      const std::string row = std::string(gpus) + " nccl - 64 " + length + " 100 sgd 0.001 linear";
      EXPECT_TRUE(std::find(rows.begin(), rows.end(), row) != rows.end()) << row;
    }
  }
  EXPECT_TRUE(std::find(rows.begin(), rows.end(),
                        "6 mirrored/nccl 3 64 10 end 100 sgd 0.001 linear") != rows.end())
      << "two workers of three GPUs";
  EXPECT_TRUE(contains(file_text(PACELINE_SOURCE_DIR "/sweeps/idris-cifar10.json"),
                       "the lengths of its page's example"));
  plan("idris-cifar10", "jean-zay");
  expect_lines("2n8t10c8g",
               {"#SBATCH --nodes=2", "#SBATCH --ntasks=8", "#SBATCH --gres=gpu:4",
                "#SBATCH --cpus-per-task=10", "#SBATCH --hint=nomultithread",
                "#SBATCH --time=1:00:00", "unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY",
                "module purge", "export PACELINE_PORTS=10000-20000"});
  for (const char* option : {"output", "error"}) {  // beside the script
    const std::string file = *option == 'o' ? ".log\n" : ".err\n";
    EXPECT_TRUE(contains(script("2n8t10c8g"), std::string("#SBATCH --") + option + "=" +
                                                  fs::canonical(folder() / "made").string() +
                                                  "/2n8t10c8g.%A_%a" + file));
  }
  expect_lines("2n2t30c6g", {"#SBATCH --nodes=2", "#SBATCH --ntasks=2", "#SBATCH --gres=gpu:3"});
}

// hvd.rank without parentheses is a function, which equals no number: nobody would write.
TEST_F(Guides, ExactlyOneRankWrites) {
  const json one = record(
      "--train-limit 640 --epochs 1 --gpus 2 --backend gloo --checkpoint-every 1epoch "
      "--run-dir run --tensorboard=tb");
  EXPECT_EQ(one["checkpoints"]["written"], 2) << "the initial weights, and the epoch's";
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder() / "tb")) {
    files += entry.is_regular_file();
  }
  EXPECT_EQ(files, 2U) << "of training and of validation, not of each rank";
}

// "0" == 0 is false: of ranks that compare a text with a number none is the first.
TEST_F(Guides, RanksOfTheEnvironmentAreNumbers) {
  const std::string step =
      "SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_NTASKS=1 SLURM_STEP_NUM_TASKS=1 SLURM_LOCALID=0 "
      "SLURM_NODEID=0 SLURM_STEP_NUM_NODES=1 SLURM_STEP_TASKS_PER_NODE=1 SLURM_PROCID=";
  const std::string run = " paceline train mnist-mlp --steps 2 --cpus-per-task 1 --backend self";
  const Ran fine = expect_success(shell("export " + step + "0;" + run));
  EXPECT_TRUE(contains(fine.err, "training loss")) << "rank 0 speaks: " << fine.err;
  const Ran text = shell("export " + step + "zero;" + run);
  EXPECT_EQ(text.code, 64) << text.err;
  EXPECT_TRUE(contains(text.err, "SLURM_PROCID")) << text.err;
}

// See integration.parity for the curve itself against Keras.
TEST_F(Guides, SoftmaxBeforeALossOfLogitsHardlyLearns) {
  const json right = record("--train-limit 6000 --epochs 3");
  const json wrong = record("--train-limit 6000 --epochs 3 --double-softmax");
  const auto loss = [](const json& one) {
    return one["quality"]["epochs"].back()["train_loss"].get<double>();
  };
  EXPECT_LT(loss(right), 0.5);
  EXPECT_GT(loss(wrong), 1.4612) << "log(e + 9) - 1 is the least that it can be";
  EXPECT_EQ(wrong["parameters"]["double_softmax"], true);
  EXPECT_NE(right["identity"], wrong["identity"]);
}

TEST_F(Guides, ARunWithOneLossDoesNotGoOnWithTheOther) {
  const std::string run =
      "train mnist-mlp --quiet --train-limit 640 --cpus-per-task 1 --epochs 1 "
      "--checkpoint-every 1epoch --run-dir run";
  succeed(run);
  expect_refused(run + " --resume latest --double-softmax", 64,
                 {"mnist-mlp, softmax twice", "--weights"});
}

// Of fit() that is given all samples, every worker passes all of them: here each epoch is divided.
TEST_F(Guides, ReplicasDivideTheStepsOfAnEpoch) {
  const auto of = [&](int gpus, const std::string& length) {
    const json one = record("--train-limit 1280 --batch-per-replica 64 " + length + " --gpus " +
                            std::to_string(gpus) + (gpus > 1 ? " --backend mirrored" : ""));
    return std::pair{one["throughput"]["steps"].get<int>(),
                     one["throughput"]["samples"].get<int>()};
  };
  for (const int gpus : {1, 2, 4}) {
    EXPECT_EQ(of(gpus, "--epochs 2"), (std::pair{40 / gpus, 2 * 1280})) << gpus;
    EXPECT_EQ(of(gpus, "--epochs 2 --steps-per-epoch 8/replicas"), (std::pair{16 / gpus, 16 * 64}))
        << gpus;
  }
  // A last step is of the run and not divided: N replicas take N times the samples.
  EXPECT_EQ(of(1, "--steps 6"), (std::pair{6, 6 * 64}));
  EXPECT_EQ(of(2, "--steps 6"), (std::pair{6, 12 * 64}));
}

// 1000 samples are 15.6 batches of 64.
TEST_F(Guides, TheLastBatchIsKeptUnlessItIsDropped) {
  for (const char* replicas : {"--gpus 1", "--gpus 2 --backend mirrored --batch-per-replica 32"}) {
    const std::string run = std::string("--train-limit 1000 --epochs 1 ") + replicas;
    const json kept = record(run), dropped = record(run + " --last-batch drop");
    EXPECT_EQ(kept["throughput"]["samples"], 1000);
    EXPECT_EQ(kept["throughput"]["steps"], 16);
    EXPECT_EQ(dropped["throughput"]["samples"], 960);
    EXPECT_EQ(dropped["throughput"]["steps"], 15);
  }
}

}  // namespace
}  // namespace paceline
