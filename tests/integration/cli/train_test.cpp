// `paceline train` given what it cannot use: one line, the right exit code, nothing left behind.
#include <nlohmann/json.hpp>

#include "results/names.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

const fs::path kMnist = PACELINE_SOURCE_DIR "/data/mnist";
const std::string kRun = "train mnist-mlp --cpus-per-task 1 --steps 3 ";

bool has_mpi() {
  return find_name("backend", "mpi").built;
}

class CliTrain : public Cli {
 protected:
  // The real files by links, so that one of them can be replaced.
  void link_mnist() const {
    for (const auto& entry : fs::directory_iterator(kMnist)) {
      if (entry.path().extension() == ".gz") {
        fs::create_symlink(entry.path(), folder() / entry.path().filename());
      }
    }
  }

  void replace(const std::string& name, const std::string& bytes) const {
    fs::remove(folder() / name);
    std::ofstream(folder() / name, std::ios::binary) << bytes;
  }

  void expect_bad_data(const std::string& bytes, const std::string& part) const {
    replace("train-images-idx3-ubyte.gz", bytes);
    expect_refused(kRun + "--data .", 65, {part, "train-images-idx3-ubyte.gz"});
  }
};

TEST_F(CliTrain, UnknownNames) {
  expect_refused("train mnist-cnn --context-length 5", 64, {"mnist-cnn does not read tokens"});
  expect_refused("train gpt-tiny --data .", 65, {"no sample of 129 tokens"});
  expect_refused("train mnist-cn", 64, {"unknown workload \"mnist-cn\"", "\"mnist-cnn\"?"});
  expect_refused("describe mnist-mpl", 64, {"unknown workload", "\"mnist-mlp\"?"});
  expect_refused("train mnist-cnn --backend mirored", 64, {"unknown backend", "\"mirrored\"?"});
  expect_refused("train mnist-cnn --device cpus", 64, {"unknown device", "\"cpu\"?"});
  expect_refused("train mnist-cnn --gpu 2", 64, {"unknown option --gpu", "--gpus?"});
  expect_refused("train mnist-cnn --epochs", 64, {"--epochs: needs a value"});
  expect_refused("train mnist-cnn --gpus 2 --gpus 3", 64, {"--gpus: is given 2 times"});
  expect_refused("train mnist-cnn --quiet --verbose", 64, {"--quiet", "--verbose"});
  expect_refused("train", 64, {"workload is required"});
  expect_refused("train mnist-mlp --weights imagenet", 64,
                 {"no ImageNet weights for workload mnist-mlp"});
}

// The instruction set follows from the CPU unless a variable names one.
TEST_F(CliTrain, VerboseSaysWhatTheDeviceComputesWith) {
  const std::string run = "train mnist-mlp --cpus-per-task 1 --train-limit 100 --test-limit 100 ";
  const Ran ran = expect_success(shell("PACELINE_ISA=baseline '" PACELINE_BINARY "' " + run +
                                       "--epochs 1 --verbose --record run.json"));
  expect_parts(ran.err, {"device cpu: oneDNN ", ", own loops for baseline, 1 thread"});
  const auto record = nlohmann::json::parse(file_text(folder() / "run.json"));
  expect_parts(record["provenance"]["libraries"], {"own loops for baseline"});
  const Ran other = shell("PACELINE_ISA=sse9 '" PACELINE_BINARY "' " + run + "--epochs 1");
  EXPECT_EQ(other.code, 64) << other.err;
  expect_parts(other.err, {"does not have instruction set sse9", "choose one of: "});
}

TEST_F(CliTrain, ABatchLargerThanTheDataIsReported) {
  const std::string run = "train mnist-mlp --cpus-per-task 1 --train-limit 100 --test-limit 100 ";
  const Ran ran = succeed(run + "--batch-per-replica 101 --epochs 1");
  EXPECT_TRUE(
      contains(ran.err, "a step takes 101 samples and the training set has 100: no batch is full"))
      << ran.err;
  const Ran full = paceline(run + "--batch-per-replica 100 --epochs 1");
  expect_no_parts(full.err, {"no batch is full"});
}

TEST_F(CliTrain, OneThatDivergesIsAFailedCheckWithARecord) {
  expect_refused(kRun + "--learning-rate 1e30 --quiet --record run.json", 1,
                 {"the loss is not finite after epoch 1", "lower the learning rate"});
  EXPECT_EQ(nlohmann::json::parse(file_text(folder() / "run.failed.json")).at("status"), "failed");
}

// The loss of the only step is of the weights before its update, and finite.
TEST_F(CliTrain, OneWhoseParametersAreNoNumbersIsNeverCompleted) {
  expect_refused(
      "train mnist-mlp --cpus-per-task 1 --steps 1 --learning-rate 1e300 --quiet "
      "--record run.json",
      1,
      {"the network is not finite after epoch 1", "that are not numbers",
       "lower the learning rate"});
  EXPECT_FALSE(std::filesystem::exists(folder() / "run.json"));
}

TEST_F(CliTrain, WhatGpusComputeInIsDescribed) {
  for (const char* precision : {"tf32", "fp16"}) {
    succeed(std::string("describe mnist-cnn --precision ") + precision);
  }
}

TEST_F(CliTrain, ValuesOutOfRange) {
  expect_refused(kRun + "--momentum 0.5", 64, {"momentum is for optimizer momentum"});
  expect_refused(kRun + "--batch-per-replica 0", 64, {"batch_per_replica", "\"0\"", "at least 1"});
  expect_refused(kRun + "--batch-per-replica -1", 64, {"batch_per_replica", "at least 1"});
  expect_refused(kRun + "--batch-per-replica 1e99", 64, {"batch_per_replica", "1e99"});
  expect_refused(kRun + "--seed 99999999999999999999", 64, {"seed", "whole number"});
  expect_refused(kRun + "--precision fp8", 64, {"precision", "\"fp8\"", "fp32"});
  expect_refused(kRun + "--precision fp16", 64,
                 {"device cpu computes in fp32, bf16, not in fp16", "--device"});
  expect_refused(kRun + "--learning-rate nan", 64, {"learning_rate", "\"nan\""});
  expect_refused(kRun + "--optimizer adan", 64, {"optimizer", "\"adan\"", "adam"});
  expect_refused("train mnist-mlp --steps 0", 64, {"steps", "at least 1"});
  expect_refused("train mnist-mlp --gpus 2 --backend mirrored --global-batch 65", 64,
                 {"65", "evenly among 2"});
}

TEST_F(CliTrain, WhatOnlyGpusKnow) {
  expect_refused(kRun + "--no-graph", 64, {"graph is for GPUs", "the device is cpu"});
  expect_refused(kRun + "--deterministic", 64, {"deterministic is for GPUs"});
  expect_refused(kRun + "--tune thorough", 64, {"tune is for GPUs", "the device is cpu"});
  if (find_name("device", "cuda").built) {
    expect_refused(kRun + "--device cuda --no-graph --step-graph", 64,
                   {"step_graph, graph", "leave one of --step-graph and --no-graph out"});
    expect_refused(kRun + "--device cuda --tune slow", 64, {"slow", "quick", "thorough"});
    expect_refused(kRun + "--device cuda --gradient-accumulation-steps 600", 64,
                   {"600 batches per step are too many on a GPU", "use at most 512"});
    expect_refused(kRun + "--device cuda --precision fp64", 64,
                   {"device cuda computes in tf32, fp32, bf16, fp16, not in fp64"});
  }
}

// A build for GPUs starts without one, and says what it lacks.
TEST_F(CliTrain, NeedsAGpuForOne) {
  if (!find_name("device", "cuda").built) GTEST_SKIP() << find_name("device", "cuda").reason;
  if (!contains(paceline("list devices").out, "none here: ")) GTEST_SKIP() << "there is a GPU";
  expect_refused(kRun + "--device cuda", 64, {"device cuda needs a GPU", "--device cpu"});
  expect_refused("train mnist-mlp --device cuda --gpus 2 --backend mirrored --steps 3", 64,
                 {"device cuda needs a GPU"});
}

// Of 1000 classes five are there.
TEST_F(CliTrain, ResNet50OfImageNetsShapeReadsPhotographsIfAsked) {
  succeed("data make cassava --images 4 --test 2 --out leaves --quiet");
  succeed(
      "train resnet50-imagenet --input data --data leaves --batch-per-replica 2 --epochs 1 --gpus "
      "1 "
      "--backend self --evaluate epoch --quiet --record run.json");
  const Json record = Json::parse(file_text(folder() / "run.json"));
  EXPECT_EQ(record["throughput"]["samples"], 4);
  EXPECT_EQ(record["provenance"]["data_set"], "imagenet");
  EXPECT_EQ(record["input"]["decoded"], 4) << record["input"];
}

TEST_F(CliTrain, WorkloadsRefuseWhatTheyDoNotHave) {
  expect_refused(kRun + "--variant v1", 64, {"mnist-mlp has no variants"});
  expect_refused(kRun + "--bn-stats local", 64, {"mnist-mlp has no batch normalisation"});
  expect_refused("train resnet50-imagenet --input data", 65, {"data set imagenet was not found"});
  expect_refused("train resnet50-cassava --variant v2", 64, {"variant", "v1.5"});
  expect_refused("train resnet50-cifar10 --bn-stats mean", 64, {"bn_stats", "averaged, local"});
  expect_refused("describe mnist-cnn --variant v1", 64, {"mnist-cnn has no variants"});
}

TEST_F(CliTrain, WeightsThatAreNotThere) {
  const std::string run = "train resnet50-cassava --input synthetic --steps 1 --cpus-per-task 1 ";
  expect_refused("train resnet50-cassava --steps 1 --cpus-per-task 1", 65,
                 {"resnet50-imagenet", "paceline data fetch resnet50-imagenet", "--weights none"});
  fs::create_directories(folder() / "data" / "resnet50-imagenet");
  expect_refused(run + "--weights imagenet", 65, {"holds no .h5", "paceline data fetch"});
  expect_refused(run + "--weights absent.h5", 65, {"no such weights file", "absent.h5"});
  std::ofstream(folder() / "page.h5") << "<html>";
  expect_refused(kRun + "--quiet --weights page.h5", 65, {"page.h5", "web page"});
}

TEST_F(CliTrain, ADryRunOfASweepNeedsNoData) {
  const Ran ran = succeed("sweep '" PACELINE_SOURCE_DIR "/sweeps/nyu-cassava.json' --dry-run");
  expect_parts(ran.out, {"59 points", "gpus=4,cpus_per_task=32,backend=mirrored "});
  expect_parts(ran.err, {"data set cassava was not found"});
  expect_refused("sweep '" PACELINE_SOURCE_DIR "/sweeps/idris-cifar10.json'", 65,
                 {"data set cifar10 was not found"});
}

TEST_F(CliTrain, ReplicasThatCannotBePlaced) {
  const std::string one = "train mnist-mlp --steps 3 --cpus-per-replica 1 ";
  expect_refused(one + "--gpus 2 --backend self", 64, {"self", "not 2"});
  expect_refused(one + "--gpus 4096 --backend mirrored", 64, {"4096", "--oversubscribe"});
  if (has_mpi()) {
    expect_refused(one + "--gpus 4096 --backend mpi", 64, {"4096", "--oversubscribe"});
  }
  expect_refused(kRun + "--compute-threads 9", 64, {"9 compute", "1 CPU", "fewer threads"});
}

TEST_F(CliTrain, AMaskOfOneCpuIsNotTwo) {
  const Ran ran =
      shell("taskset -c \"$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')\" '" PACELINE_BINARY
            "' train mnist-mlp --steps 3 --cpus-per-task 2");
  EXPECT_EQ(ran.code, 64) << ran.err;
  expect_parts(ran.err, {"affinity mask has 1 (", "--bind-to none"});
}

// Two loops on the one CPU of a run: it is told who they are, and its record says that it was busy.
TEST_F(CliTrain, ABusyMachineIsNoticed) {
  const Ran ran = expect_success(
      shell("cpu=$(taskset -pc $$ | sed 's/.*: *//; s/[-,].*//')\n"
            "for i in 1 2; do taskset -c $cpu bash -c 'while :; do :; done' & done\n"
            "sleep 0.3\n"
            "timeout 120 taskset -c $cpu '" PACELINE_BINARY
            "' train mnist-mlp --cpus-per-task 1 --steps 300 --record r.json --data '" +
            kMnist.string() + "'\ncode=$?\nkill %1 %2\nexit $code"));
  expect_parts(ran.busy, {"other processes use the CPUs of this run: ", "the machine was busy: "});
  const auto record = nlohmann::json::parse(std::ifstream(folder() / "r.json"));
  const auto& load = record.at("provenance").at("machine_load");
  EXPECT_EQ(load.at("busy"), true) << load;
  EXPECT_GT(load.at("other_cpu_share").get<double>(), 0.3) << load;
  EXPECT_GT(load.at("involuntary_switches").get<int>(), 0) << load;
  EXPECT_GE(load.at("runnable_tasks_before").get<int>(), 2) << load;
  EXPECT_TRUE(contains(load.at("why"), "went to other processes")) << load;
  EXPECT_GT(record.at("provenance").at("machine").at("cpus").get<int>(), 0);
  expect_parts(paceline("report r.json").out, {"\nWarning: the machine was busy in 1 of 1 run"});
}

TEST_F(CliTrain, TasksThatDoNotMatchTheReplicas) {
  if (!has_mpi()) GTEST_SKIP() << "this build has no mpi";
  const Ran ran = shell(
      "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=0 "
      "OMPI_COMM_WORLD_LOCAL_SIZE=2 paceline train mnist-mlp --gpus 4 --backend mpi");
  EXPECT_EQ(ran.code, 64);
  expect_parts(ran.err, {"2 tasks were started", "--gpus"});
}

TEST_F(CliTrain, BadFilesOfTheDataSet) {
  link_mnist();
  const std::string images = file_text(kMnist / "train-images-idx3-ubyte.gz");
  const std::string labels = file_text(kMnist / "train-labels-idx1-ubyte.gz");
  expect_bad_data(images.substr(0, 1000000), "cut short");
  expect_bad_data("<!DOCTYPE html><html><body>404</body></html>\n", "web page");
  expect_bad_data(labels, "no images");
  expect_bad_data("", "empty");
  replace("train-images-idx3-ubyte.gz", images);
  replace("train-labels-idx1-ubyte.gz", file_text(kMnist / "t10k-labels-idx1-ubyte.gz"));
  expect_refused(kRun + "--data .", 65, {"60000 images but 10000 labels"});
}

TEST_F(CliTrain, AWrongMagicNumber) {
  link_mnist();
  fs::remove(folder() / "t10k-labels-idx1-ubyte.gz");
  replace("t10k-labels-idx1-ubyte", std::string("\x89PNG\r\n\x1a\n and more", 17));
  expect_refused(kRun + "--data .", 65, {"IDX", "t10k-labels-idx1-ubyte"});
}

TEST_F(CliTrain, MissingData) {
  expect_refused(kRun + "--data no/such", 65, {"no/such", "--data"});
  expect_refused(kRun + "--data .", 65, {"train-images-idx3-ubyte", "missing"});
}

TEST_F(CliTrain, BadDataIsOneLineOfAllRanks) {
  const std::string two = "train mnist-mlp --steps 3 --gpus 2 --oversubscribe --data . ";
  expect_refused(two + "--cpus-per-replica 1 --backend mirrored", 65, {"missing"});
  if (has_mpi()) expect_refused(two + "--cpus-per-task 1 --backend mpi", 65, {"missing"});
}

TEST_F(CliTrain, RecordsThatCannotBeWritten) {
  std::ofstream(folder() / "there.json") << "mine";
  expect_refused(kRun + "--record there.json", 65,
                 {"there.json", "the file exists already", "give another name"});
  EXPECT_EQ(file_text(folder() / "there.json"), "mine");
  expect_refused(kRun + "--record no/such/run.json", 65, {"no/such/run.json"});
  EXPECT_EQ(std::distance(fs::directory_iterator(folder()), {}), 1) << "something was left behind";
  std::ofstream(folder() / "run.steps.gz") << "of a run that was killed";
  expect_refused(kRun + "--record run.json", 65, {"run.steps.gz", "without their record"});
}

// 32 KB are not enough for 300 epochs one by one.
TEST_F(CliTrain, ALongRunKeepsItsRecord) {
  succeed(
      "train mnist-mlp --cpus-per-task 1 --epochs 300 --train-limit 64 --test-limit 32 --evaluate "
      "epoch --record run.json --quiet");
  const auto record = nlohmann::json::parse(file_text(folder() / "run.json"));
  EXPECT_EQ(record.at("thinned").at("quality/epochs"), 300);
  EXPECT_EQ(record.at("quality").at("epochs").back().at("epoch"), 300);
  EXPECT_GT(record.at("timing").at("compile_seconds").get<double>(), 0);
}

TEST_F(CliTrain, JsonIsARecordAndNothingElse) {
  const Ran ran = succeed(kRun + "--json --record run.json");
  const auto printed = nlohmann::json::parse(ran.out);
  EXPECT_EQ(printed.at("status"), "completed");
  EXPECT_EQ(printed.at("throughput").at("steps"), 3);
  EXPECT_EQ(printed.at("throughput").at("warmup_steps_excluded"), 0);
  const auto& timing = printed.at("timing");
  const double epoch = timing.at("epoch_seconds").at(0), compile = timing.at("compile_seconds");
  EXPECT_NEAR(timing.at("fit_seconds").get<double>(), epoch + compile, 1e-6 + 1e-4 * epoch);
  EXPECT_GT(compile, 0);
  auto written = nlohmann::json::parse(file_text(folder() / "run.json"));
  EXPECT_EQ(written.at("samples").at("file"), "run.steps.gz");
  written.erase("samples");  // the file beside the record
  EXPECT_EQ(printed, written);
  EXPECT_EQ(ran.err.find('\033'), std::string::npos) << "no colours in a pipe";
  EXPECT_EQ(ran.err.find('\r'), std::string::npos);
  std::istringstream lines(paceline(kRun + "--json --quiet").err);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(line.starts_with("warning: ")) << line;  // of a busy machine
  }
}

TEST_F(CliTrain, WorksFromAnotherFolderWithSpaces) {
  expect_success(shell("mkdir 'a folder' && cd 'a folder' && ln -s '" + kMnist.string() +
                       "' 'my data' && paceline " + kRun + "--data 'my data' --record 'r 1.json'"));
  EXPECT_TRUE(fs::exists(folder() / "a folder" / "r 1.json"));
}

TEST_F(CliTrain, StacksThatDoNotFit) {
  const std::string mlp = "train mnist-mlp --steps 3 ";
  expect_refused(mlp + "--backend mpi+bf16 --device reference", 64,
                 {"casts fp32 gradients", "precision is fp64", "leave +bf16 out"});
  expect_refused(mlp + "--backend mpi+flat", 64, {"unknown wrapper \"flat\"", "bf16"});
  expect_refused(mlp + "--backend mirrored+fp16", 64, {"unknown wrapper \"fp16\"", "\"bf16\"?"});
  expect_refused(mlp + "--backend mirrored/gloo", 64, {"mirrored/gloo cannot be stacked"});
  expect_refused(mlp + "--backend mirrored/", 64, {"\"mirrored/\" is not a backend"});
}

// Two workers of three GPUs, as replicas on cores.
TEST_F(CliTrain, SeveralTasksOfANodeHaveSeveralReplicasEach) {
  if (!find_name("backend", "mpi").built) GTEST_SKIP() << "mpi is not built here";
  const auto record = [&](const std::string& place) {
    const Ran ran = succeed(
        "train mnist-mlp --train-limit 960 --batch-per-replica 16 --steps 10 --evaluate none "
        "--cpus-per-replica 1 --oversubscribe --quiet --json --gpus 6 " +
        place);
    return nlohmann::json::parse(ran.out, nullptr, false);
  };
  const auto two = record("--backend mirrored/mpi --gpus-per-task 3");
  const nlohmann::json& layout = two["layout"];
  EXPECT_EQ(layout["nodes"], 1);
  EXPECT_EQ(layout["ntasks"], 2);
  EXPECT_EQ(layout["gpus"], 6);
  EXPECT_EQ(layout["cpus_per_task"], 3);
  EXPECT_EQ(two["parameters"]["gpus_per_task"], 3);
  EXPECT_EQ(two["timing"]["step_seconds"].size(), 6U) << "of every replica";
  const auto one = record("--backend mirrored");
  EXPECT_EQ(one["layout"]["ntasks"], 1);
  const auto loss = [](const nlohmann::json& run) {
    return run["quality"]["epochs"].back()["train_loss"].get<double>();
  };
  EXPECT_NEAR(loss(two), loss(one), 1e-4) << "the same samples and sums";
  expect_refused("train mnist-mlp --gpus 6 --backend mpi --gpus-per-task 3", 64,
                 {"backend mpi has one replica in a task, not 3", "mirrored/mpi"});
}

// Open MPI 5 puts line breaks into what passes through mpirun.
TEST_F(CliTrain, WhatRankZeroPrintsDoesNotPassThroughMpirun) {
  if (!has_mpi()) GTEST_SKIP() << "this build has no mpi";
  fs::create_directory(folder() / "bin");
  std::ofstream(folder() / "bin/mpirun")
      << "#!/bin/bash\n"
         "set -o pipefail\n"
         "[ \"$1\" = --version ] && PATH=${PATH#*:} exec mpirun --version\n"
         "PATH=${PATH#*:} mpirun \"$@\" 2> >(fold -b -w 7 >&2) | fold -b -w 7\n";
  fs::permissions(folder() / "bin/mpirun", fs::perms::owner_all);
  const Ran ran = expect_success(shell("PATH=$PWD/bin:$PATH paceline " + kRun +
                                       "--gpus 2 --backend mpi --oversubscribe --json"));
  ASSERT_TRUE(nlohmann::json::accept(ran.out)) << ran.out;
  EXPECT_EQ(nlohmann::json::parse(ran.out).at("layout").at("ntasks"), 2);
  expect_parts(ran.err, {"samples/s"});
}

TEST_F(CliTrain, TheRecordNamesOpenMpisComponent) {
  if (!has_mpi()) GTEST_SKIP() << "this build has no mpi";
  if (!contains(shell("mpirun --version").out, "Open MPI")) GTEST_SKIP() << "this is not Open MPI";
  const Ran ran = succeed(kRun + "--gpus 2 --backend mpi --oversubscribe --json");
  const std::string used =
      nlohmann::json::parse(ran.out).at("provenance").at("backend_used").get<std::string>();
  const std::size_t at = used.find("component ");
  ASSERT_NE(at, std::string::npos) << used;
  const std::string component = used.substr(at + 10, used.find_first_of(",;) ", at + 10) - at - 10);
  EXPECT_EQ(shell("ompi_info | grep -w 'MCA coll: " + component + "'").code, 0) << used;
}

// As `srun -n 2` without any PMI would start them; the port is another than a busy site's.
TEST_F(CliTrain, GlooUnderASlurmStep) {
  const Ran ran = expect_success(shell(
      "export SLURM_JOB_ID=$$ SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2 SLURM_NODEID=0 "
      "SLURM_STEP_NUM_NODES=1 SLURM_NNODES=1 SLURM_STEP_TASKS_PER_NODE=2 "
      "SLURM_STEP_NODELIST=127.0.0.1 PACELINE_PORTS=21100-21999\n"
      "SLURM_PROCID=1 SLURM_LOCALID=1 paceline " +
      kRun + "--gpus 2 --backend ring --oversubscribe &\n" +
      "SLURM_PROCID=0 SLURM_LOCALID=0 paceline " + kRun +
      "--gpus 2 --backend ring --oversubscribe --json; code=$?; wait; exit $code"));
  const auto record = nlohmann::json::parse(ran.out);
  EXPECT_EQ(record.at("layout").at("ntasks"), 2);
  expect_parts(record.at("provenance").at("backend_used"), {"shared memory of 2 ranks"});
}

}  // namespace
}  // namespace paceline
