// submit, status, cancel, collect and element where nothing of Slurm is real: bad input, dry runs.
#include "results/names.h"
#include "tests/integration/cli/paceline.h"
#include "tests/support/has_engine.h"

namespace paceline {
namespace {

using testing::contains;
using testing::Ran;

const std::string kGeneric = "'" PACELINE_SOURCE_DIR "/slurm/sites/generic.json'";
const std::string kGpu = "'" PACELINE_SOURCE_DIR "/slurm/sites/generic-gpu.json'";
const std::string kCassava = "'" PACELINE_SOURCE_DIR "/sweeps/nyu-cassava.json'";

class CliSlurm : public testing::Cli {
 protected:
  void SetUp() override {
    write("s.json", R"({"name": "s", "workload": "mnist-mlp", "repeats": 2,
      "fixed": {"device": "cpu", "cpus_per_task": 1}, "axes": {"gpus": [1], "backend": ["self"]}})");
    // A program of the compute nodes: a build without the engine submits, too.
    write("site.json", R"({"name": "x", "program": "/opt/paceline", "array": {"max_size": 100}})");
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder() / name) << text;
  }

  // The scripts, or the points, that a dry run left in a folder.
  std::string all(const std::string& name, const std::string& ending) const {
    std::string text;
    for (const auto& entry : std::filesystem::directory_iterator(folder() / name)) {
      if (entry.path().extension() == ending) text += text_of(entry.path());
    }
    return text;
  }

  // Programs of Slurm that answer with a line of the shell.
  std::string with(const std::string& programs) const {
    return "mkdir -p bin; play() { printf '#!/bin/sh\\n%s\\n' \"$2\" > bin/$1; chmod +x bin/$1; "
           "}\n" +
           programs + "\nexport PATH=$PWD/bin:$PATH\n";
  }
};

TEST_F(CliSlurm, ADryRunShowsTheCostWritesTheScriptsAndSendsNothing) {
  const Ran ran = shell(with("play sbatch 'touch sent; echo 1'") + "paceline submit " + kCassava +
                        " --site " + kGpu + " --repeats 3 --dry-run --scripts made");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(text_of(folder() / "made/1n4t8c4g.sbatch").starts_with("#!/bin/bash")) << ran.out;
  EXPECT_TRUE(contains(all("made", ".sbatch"), "#SBATCH --gres=gpu:4\n"));
  EXPECT_TRUE(
      contains(text_of(folder() / "made/1n4t8c4g.points"),
               R"(["train","resnet50-cassava","--gpus=4","--nodes=1","--cpus-per-task=8")"));
  EXPECT_TRUE(contains(ran.out, "made/*.sbatch")) << ran.out;
  EXPECT_FALSE(contains(ran.out, "#!/bin/bash"));
  EXPECT_LT(std::count(ran.out.begin(), ran.out.end(), '\n'), 45) << "the table, not the scripts";
  EXPECT_FALSE(std::filesystem::exists(folder() / "sent"));
  EXPECT_FALSE(std::filesystem::exists(folder() / "results"));
  const std::string scripts = all("made", ".sbatch"), points = all("made", ".points");
  const Ran again = shell("paceline submit " + kCassava + " --site " + kGpu +
                          " --repeats 3 --dry-run --scripts made");
  EXPECT_EQ(again.out + all("made", ".sbatch") + all("made", ".points"), ran.out + scripts + points)
      << "the same bytes each time";
  const Ran unnamed =
      shell("export TMPDIR=$PWD; paceline submit s.json --site site.json --dry-run");
  EXPECT_EQ(unnamed.code, 0) << unnamed.err;
  EXPECT_TRUE(contains(unnamed.out, folder().string() + "/paceline-s-")) << unnamed.out;
}

// The published rows take 2.8 GPU-hours; the same row stands for each backend.
TEST_F(CliSlurm, TheCostByPublishedTimesAndAtMost) {
  const Ran ran = paceline("submit " + kCassava + " --site " + kGpu +
                           " --repeats 1 --set backend=mirrored --dry-run --scripts made");
  EXPECT_EQ(ran.code, 0) << ran.err;
  if (!find_name("backend", "self").built) GTEST_SKIP() << "who knows no workloads knows no epochs";
  EXPECT_TRUE(contains(ran.out, "14 elements: about 2.8 GPU-hours")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "(by published times), at most 35.0 and ")) << ran.out;
}

TEST_F(CliSlurm, WhatIsStillToBeFilledInIsRefusedBeforeTheFirstCall) {
  write("xxx.json", R"({"name": "x", "account": "XXX@v100", "program": "/opt/paceline"})");
  const std::string sbatch = with("play sbatch \"touch '$PWD/sent'; echo 1\"; play squeue :");
  const Ran sent = shell(sbatch + "paceline submit s.json --site xxx.json --yes");
  EXPECT_EQ(sent.code, 64);
  EXPECT_TRUE(
      contains(sent.err, "xxx.json: account is XXX@v100; replace each with your centre's value"))
      << sent.err;
  EXPECT_FALSE(std::filesystem::exists(folder() / "sent"));
  EXPECT_FALSE(std::filesystem::exists(folder() / "results"));
  const Ran dry = paceline("submit s.json --site xxx.json --dry-run --scripts made");
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_TRUE(contains(dry.out, "warning: xxx.json: account is XXX@v100; ")) << dry.out;
}

TEST_F(CliSlurm, AMissingDataSetIsRefusedBeforeTheFirstCall) {
  if (!find_name("backend", "self").built) GTEST_SKIP() << "who knows no workloads knows no data";
  write("gpu.json", R"({"name": "x", "program": "/opt/paceline", "gpus": {"form": "gres"}})");
  write("one.json", R"({"name": "one", "workload": "resnet50-cassava",
      "fixed": {"device": "cuda", "backend": "self"}, "axes": {"gpus": [1]}})");
  const std::string submit =
      with("play sbatch \"touch '$PWD/sent'; echo 1\"; play squeue :; unset PACELINE_DATA") +
      "paceline submit one.json --yes --no-collect --site ";
  const Ran absent = shell(submit + "gpu.json");
  EXPECT_EQ(absent.code, 65);
  EXPECT_TRUE(contains(absent.err, "data set cassava was not found")) << absent.err;
  EXPECT_TRUE(contains(absent.err, "or add --data-elsewhere")) << absent.err;
  EXPECT_FALSE(std::filesystem::exists(folder() / "sent"));
  const Ran dry = shell(
      "unset PACELINE_DATA; paceline submit one.json --site gpu.json --dry-run "
      "--scripts made");
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_TRUE(contains(dry.out, ": data set cassava was not found")) << dry.out;
  EXPECT_EQ(shell(submit + "gpu.json --data-elsewhere").code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder() / "sent"));
  // A folder that only the job can name is nobody's to look for.
  write("there.json", R"({"name": "x", "program": "/opt/paceline", "gpus": {"form": "gres"},
                          "data": "$NOT_SET_HERE/data"})");
  const Ran there = shell(submit + "there.json --results other");
  EXPECT_EQ(there.code, 0) << there.err;
}

TEST_F(CliSlurm, AfterARefusalNothingIsUnclear) {
  write("two.json", R"({"name": "two", "workload": "mnist-mlp", "fixed": {"device": "cpu",
      "backend": "mpi", "cpus_per_task": 1}, "axes": {"gpus": [1, 2]}})");
  const std::string refusing =
      with("play sbatch 'echo no such account >&2; exit 1'; play squeue :; play sacct :");
  const Ran refused =
      shell(refusing + "paceline submit two.json --site site.json --yes --data-elsewhere");
  EXPECT_EQ(refused.code, 64) << refused.err;
  const Ran status = shell(refusing + "paceline status results/local/two");
  EXPECT_EQ(status.code, 1) << status.err;
  EXPECT_TRUE(contains(status.out, "2 not submitted")) << status.out;
  EXPECT_TRUE(contains(status.out, "not submitted: submit stopped before its array")) << status.out;
  EXPECT_FALSE(contains(status.out, "not known")) << status.out;
}

TEST_F(CliSlurm, PointsTooLargeForTheNodesAreRefusedAndRowsWithoutABaseAreSaid) {
  write("small.json", R"({"name": "x", "program": "/opt/paceline", "cores_per_node": 4,
                          "cpus_per_node": 8})");
  write("wide.json", R"({"name": "wide", "workload": "mnist-mlp", "fixed": {"device": "cpu",
      "backend": "mirrored", "cpus_per_replica": 4}, "axes": {"gpus": [2, 4]}})");
  expect_refused("submit wide.json --site small.json --dry-run --scripts made", 64,
                 {"wide.json", "point gpus=4", "needs 16 CPUs on a node, and a node has 8",
                  "(small.json)", "as mirrored/mpi does"});
  const Ran ran =
      paceline("submit wide.json --site small.json --set gpus=2 --dry-run --scripts made");
  EXPECT_EQ(ran.code, 0) << ran.err;
  const Ran two = paceline(
      "submit wide.json --site small.json --set backend=mirrored/mpi --dry-run --scripts made");
  EXPECT_EQ(two.code, 0) << two.err;
  EXPECT_TRUE(contains(two.out, "2n2t8c")) << two.out;
  EXPECT_TRUE(contains(two.out, "warning: no speed-up for gpus=2")) << two.out;
}

// What the profile leaves out, Slurm knows.
TEST_F(CliSlurm, GpusOfANodeAreAskedOfSlurm) {
  write("gpus.json", R"({"name": "x", "program": "/opt/paceline", "gpus": {"form": "gres"},
                         "device": "cuda"})");
  write("eight.json", R"({"name": "e", "workload": "mnist-mlp", "axes": {"gpus": [8],
                          "backend": ["nccl"]}})");
  const std::string sinfo = with("play sinfo \"echo 'p*|2|20|40|gpu:4'\"");
  const Ran ran =
      shell(sinfo + "paceline submit eight.json --site gpus.json --dry-run --scripts made");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(text_of(folder() / "made/2n8t10c8g.sbatch"), "#SBATCH --gres=gpu:4\n"))
      << ran.out;
  EXPECT_TRUE(contains(all("made", ".points"), "\"--nodes=2\"")) << ran.out;
  const Ran smoke = shell(
      sinfo + "paceline submit eight.json --site gpus.json --smoke --dry-run --scripts smoke");
  EXPECT_TRUE(contains(smoke.out, "2n8t10c ")) << "the same shape on CPUs: " << smoke.out;
}

TEST_F(CliSlurm, AGpuProfileWithoutADeviceIsSaid) {
  write("gpus.json", R"({"name": "x", "program": "/opt/paceline", "gpus": {"form": "gres"}})");
  write("one.json", R"({"name": "one", "workload": "mnist-mlp", "axes": {"gpus": [1]}})");
  const Ran ran = paceline("submit one.json --site gpus.json --dry-run --scripts made");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "note: the points are of device cpu, so no GPUs are requested"))
      << ran.out;
  const Ran cuda = paceline("submit one.json --site gpus.json --set device=cuda --dry-run");
  EXPECT_FALSE(contains(cuda.out, "no GPUs are requested")) << cuda.out;
}

TEST_F(CliSlurm, SmokeNeedsNoGpuAndFewSteps) {
  const Ran ran =
      paceline("submit " + kCassava + " --site " + kGpu + " --smoke --dry-run --scripts made");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_FALSE(contains(all("made", ".sbatch"), "#SBATCH --g")) << ran.out;
  EXPECT_TRUE(contains(all("made", ".points"), "--steps=2"));
  EXPECT_TRUE(contains(ran.out, "nyu-cassava.smoke: "));
  EXPECT_TRUE(contains(ran.out, "at most 0.0 GPU-hours"));
  write(
      "nccl.json",
      R"({"name": "n", "workload": "mnist-mlp", "fixed": {"gpus": 4, "nodes": 2, "cpus_per_task": 2},
                         "axes": {"backend": ["nccl", "mirrored/nccl"]}})");
  const Ran nccl =
      paceline("submit nccl.json --site " + kGpu + " --smoke --dry-run --scripts nccl");
  EXPECT_EQ(nccl.code, 0) << nccl.err;
  const std::string points = all("nccl", ".points"), scripts = all("nccl", ".sbatch");
  EXPECT_TRUE(contains(points, "\"--backend=ring\"") &&
              contains(points, "\"--backend=mirrored/ring\""))
      << points;
  EXPECT_FALSE(contains(points, "--backend=nccl") || contains(points, "mirrored/nccl\""));
  EXPECT_TRUE(contains(scripts,
                       "element begin --built=backend=mirrored/nccl --built=backend=nccl "
                       "--built=device=cuda \"${element[@]}\""))
      << scripts;
}

// A login node without a GPU build submits what another program is to run.
TEST_F(CliSlurm, WhatIsNotBuiltHereIsPlannedAllTheSame) {
  PACELINE_NEEDS_ENGINE();
  Name cuda = find_name("device", "cuda");
  const std::string list = paceline("list devices").out, mark = "not built: ";
  if (const auto at = list.find(mark); at != list.npos) {  // of the program, not of this test
    cuda.built = false;
    cuda.reason = list.substr(at + mark.size(), list.find('\n', at) - at - mark.size());
  }
  const std::string not_built = "device cuda is not built here: " + cuda.reason;
  const std::string warning = "warning: " + not_built + "; the jobs run this program";
  const Ran here = paceline("submit " + kCassava + " --site " + kGpu + " --dry-run");
  EXPECT_EQ(here.code, 0) << here.err;
  EXPECT_EQ(contains(here.out, warning), !cuda.built) << here.out;
  write("other.json", R"({"name": "x", "program": "/opt/paceline", "device": "cuda",
                          "gpus": {"form": "gres"}})");
  const Ran other = paceline("submit " + kCassava + " --site other.json --dry-run");
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_FALSE(contains(other.out, "warning: " + not_built)) << other.out;
  EXPECT_EQ(contains(other.out, "note: " + not_built), !cuda.built);
  const Ran sweep = paceline("sweep " + kCassava + " --set device=cuda --dry-run");
  EXPECT_EQ(sweep.code, 0) << sweep.err;
  EXPECT_TRUE(contains(sweep.out, "nyu-cassava: 59 points")) << sweep.out;
  EXPECT_EQ(contains(sweep.out, "note: " + not_built), !cuda.built);
  if (cuda.built) return;
  expect_refused("sweep " + kCassava + " --set device=cuda", 64, {"device cuda is not built here"});
  // What a smoke test asks in its job.
  write("points", R"(["train","mnist-mlp","--gpus=1","--store=s","--context={\"study\": \"s\", )"
                  R"(\"point\": \"gpus=1\", \"point_folder\": \"gpus=1\", \"repeat\": 1, )"
                  R"(\"session\": \"S\", \"round\": 1}"])");
  expect_refused("element begin --built device=cpu --built device=cuda --points points --index 0",
                 64, {"device cuda is not built into the program of this job", cuda.reason});
}

// A millisecond a point would be half a minute.
TEST_F(CliSlurm, AStudyOfManyPointsIsPlannedSoon) {
  PACELINE_NEEDS_ENGINE();
  std::string seeds = "1";
  for (int i = 2; i <= 2000; ++i) seeds += "," + std::to_string(i);
  write("many.json",
        R"({"name": "many", "workload": "mnist-mlp", "fixed": {"gpus": 1, "backend": "self"},
    "axes": {"batch_per_replica": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], "seed": [)" +
            seeds + "]}}");
#ifdef __SANITIZE_ADDRESS__
  const std::string limit = "100";
#else
  const std::string limit = "10";
#endif
  const Ran ran = shell("ulimit -t " + limit + "; paceline sweep many.json --dry-run | tail -n 1");
  EXPECT_TRUE(contains(ran.out, "20000 of 20000 runs to do")) << ran.out << ran.err;
}

TEST_F(CliSlurm, AControlIsAnElementAndASmokeRunHasNone) {
  const Ran ran = paceline("submit s.json --site site.json --control --dry-run --scripts made");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(all("made", ".points"), "\"--control=true\"")) << ran.out;
  const Ran smoke =
      paceline("submit s.json --site site.json --control --smoke --dry-run --scripts smoke");
  EXPECT_EQ(smoke.code, 0) << smoke.err;
  EXPECT_FALSE(contains(all("smoke", ".points"), "--control"));
}

TEST_F(CliSlurm, AContainerSeesTheFolderOfASpecsWeights) {
  write("box.json", R"({"name": "x", "container": {"on": true, "image": "i.sif"}})");
  write("w.json", R"({"name": "w", "workload": "resnet50-cassava",
    "fixed": {"device": "cpu", "weights": "/some/where/w.h5"}, "axes": {"gpus": [1]}})");
  const Ran ran = paceline("submit w.json --site box.json --dry-run --scripts made");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(all("made", ".sbatch"), " --bind /some/where ")) << ran.out;
}

TEST_F(CliSlurm, BadInputIsOneLine) {
  expect_refused("submit s.json", 64, {"--site", "see paceline submit --help"});
  expect_refused("submit s.json --site none.json", 65, {"none.json"});
  expect_refused("submit none.json --site site.json", 65, {"none.json"});
  write("bad.json", "{\"name\": \"b\",\n\"acount\": \"a\"}");
  expect_refused("submit s.json --site bad.json", 65,
                 {"bad.json:2: unknown key \"acount\"", "did you mean \"account\"?"});
  write("cut.json", "{\"name\": \"b\",\n");
  expect_refused("submit s.json --site cut.json", 65, {"cut.json"});
  expect_refused("submit s.json --site site.json --max-gpu-hours x", 64, {"--max-gpu-hours"});
  expect_refused("submit s.json --site site.json --results \"$(printf 'a\\nb')\" --dry-run", 64,
                 {"control character (U+000A)", "--results"});
  for (const char* verb : {"submit s.json --site site.json --dry-run", "sweep s.json --dry-run"}) {
    expect_refused(std::string(verb) + " --set weights=\"$(printf 'x\\n$(id)\\n#')\"", 64,
                   {"the text of weights has a control character (U+000A)", "--set"});
    expect_refused(std::string(verb) + " --set \"tensorboard=$(printf 'a\\302\\233b')\"", 64,
                   {"control character (U+009B)"});
    expect_refused(std::string(verb) + " --set \"weights=$(printf '\\377')\"", 64, {"not UTF-8"});
  }
  for (const char* verb : {"status", "cancel", "collect"}) {
    expect_refused(std::string(verb) + " no/such", 65, {"no such study", "no/such"});
    shell("mkdir -p empty");
    expect_refused(std::string(verb) + " empty", 65,
                   {"was not submitted to Slurm", "paceline submit"});
  }
  expect_refused("status empty --every 1", 64, {"--every"});
  expect_refused("submit s.json --site site.json --every 60", 64, {"--every", "--wait"});
  expect_refused("element begin -- train mnist-mlp --gpus=1", 64,
                 {"no points file", "another version", "submit the study again"});
  write("points",
        "[\"nonsense\"]\ntrain mnist-mlp --gpus=1\n[\"train\", 1]\n"
        R"(["train", "mnist-mlp", "--store=s", "--context={}"])"
        "\n");
  const std::string end = "element end --exit-code 3 --points points --index ";
  expect_refused(end + "0", 64, {"does not describe a run", "submit the study again"});
  expect_refused(end + "1", 65, {"points:2: not a list of a run's words", "submit again"});
  expect_refused(end + "2", 65, {"points:3: not a list of a run's words"});
  expect_refused(end + "3", 64, {"--context is incomplete"});
  expect_refused(end + "4", 65, {"points:5: the points file has no such line", "submit again"});
  expect_refused(end + "-1", 64, {"--index"});
}

TEST_F(CliSlurm, DoctorComparesAProfileWithTheCluster) {
  write("nope.json", R"({"name": "x", "partition": "gpus", "launcher_options": []})");
  const Ran ran = shell(with("play sbatch 'echo slurm 1.0'; play sinfo 'echo \"gpu|(null)\"'; "
                             "play scontrol 'echo MaxArraySize = 5'; play srun :") +
                        "paceline doctor --site nope.json");
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(contains(ran.out, "MaxArraySize       5\n")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "failed: there is no partition gpus; did you mean \"gpu\"?"))
      << ran.out;
  expect_refused("doctor --site none.json", 65, {"none.json"});
}

TEST_F(CliSlurm, WhatIsForScriptsIsNotShownToPeople) {
  EXPECT_FALSE(contains(paceline("--help").out, "element"));
  EXPECT_FALSE(contains(paceline("completion bash").out, "element"));
  EXPECT_TRUE(contains(paceline("completion bash").out, "submit"));
}

TEST_F(CliSlurm, WithoutSlurmNothingIsHalfDone) {
  const std::string without = "ln -s /usr/bin/timeout /usr/bin/bash .; PATH=$PWD\n";
  const Ran ran = shell(without + "paceline submit s.json --site site.json --yes");
  EXPECT_EQ(ran.code, 64);
  EXPECT_TRUE(contains(ran.err, "sbatch is not in PATH; log in to a node")) << ran.err;
  const Ran again = shell(with("play sbatch 'echo 7'; play squeue :") +
                          "paceline submit s.json --site site.json --yes --no-collect");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(contains(again.out, "1 arrays, 2 elements")) << again.out;
}

TEST_F(CliSlurm, CoresThatTheProfileDoesNotTellAreThoseOfSlurmOrSaid) {
  write("half.json", R"({"name": "half", "workload": "mnist-mlp", "fixed": {"device": "cpu",
      "backend": "self", "gpus": 1}, "derived": {"cpus_per_task": "cores / 2"}})");
  const std::string submit =
      "paceline submit half.json --site site.json --dry-run --scripts made; ls made";
  const Ran asked = shell(with("play sinfo 'echo \"main*|2|48\"'") + submit);
  EXPECT_EQ(asked.code, 0) << asked.err;
  EXPECT_TRUE(contains(asked.out, "1n1t48c.sbatch")) << asked.out;
  EXPECT_FALSE(contains(asked.out, "cores_per_node")) << asked.out;
  const Ran assumed = shell(with("play sinfo 'exit 1'") + submit);
  EXPECT_TRUE(contains(assumed.out, "warning: site.json: \"cores_per_node\" is missing"))
      << assumed.out;
  EXPECT_TRUE(contains(assumed.out, ", as on this machine; add")) << assumed.out;
}

TEST_F(CliSlurm, TheBudgetAndTheConfirmation) {
  const Ran over = paceline("submit " + kCassava + " --site " + kGpu +
                            " --set device=cuda --max-gpu-hours 1 --yes --data-elsewhere");
  if (!contains(over.err, "this build has no engine")) {
    EXPECT_EQ(over.code, 64);
    EXPECT_TRUE(contains(over.err, "GPU-hours are more than --max-gpu-hours 1")) << over.err;
    const Ran dry = paceline("submit " + kCassava + " --site " + kGpu +
                             " --set device=cuda --max-gpu-hours 1 --dry-run");
    EXPECT_EQ(dry.code, 0) << dry.err;
    EXPECT_TRUE(contains(dry.out, "warning: more than --max-gpu-hours 1: submit will refuse"))
        << dry.out;
  }
  const Ran nobody = paceline("submit s.json --site site.json");
  EXPECT_EQ(nobody.code, 64);
  EXPECT_TRUE(contains(nobody.err, "there is no terminal to confirm the cost on; add --yes"))
      << nobody.err;
}

TEST_F(CliSlurm, SubmittedAgainOnlyWhatIsInNoQueue) {
  const std::string programs = with(
      "play sbatch 'echo x >> calls; echo 5'; play squeue \"cat '$PWD/queue' 2>/dev/null; exit "
      "0\"; "
      "play sacct \"cat '$PWD/history' 2>/dev/null; exit 0\"; play scontrol 'exit 1'; "
      "play scancel \"echo \\\"\\$*\\\" > '$PWD/cancelled'\"");
  const std::string submit = "paceline submit s.json --site site.json --yes --no-collect\n";
  ASSERT_EQ(shell(programs + submit).code, 0);
  write("queue", "5_[0-1%2]|PENDING|Resources\n");
  const Ran waiting = shell(programs + submit);
  EXPECT_TRUE(contains(waiting.out, "0 arrays, 0 elements")) << waiting.out;
  EXPECT_TRUE(contains(waiting.out, "2 in the queue")) << waiting.out;
  Ran status = shell(programs + "paceline status results/local/s");
  EXPECT_EQ(status.code, 0);
  EXPECT_TRUE(contains(status.out, "gpus=1,backend=self  [..] 0 of 2 done")) << status.out;
  EXPECT_EQ(shell(programs + "paceline cancel results/local/s").code, 0);
  EXPECT_EQ(text_of(folder() / "cancelled"), "5\n");
  write("queue", "");
  write("history", "5_0|TIMEOUT|0:0|n1\n5_1|CANCELLED by 0|0:15|n1\n");
  status = shell(programs + "paceline status results/local/s");
  EXPECT_EQ(status.code, 1);
  EXPECT_TRUE(contains(status.out, "TIMEOUT after 60 min")) << status.out;
  const Ran again = shell(programs + submit);
  EXPECT_TRUE(contains(again.out, "again: gpus=1,backend=self repeat 1: TIMEOUT")) << again.out;
  EXPECT_TRUE(contains(again.out, "2:00:00")) << "twice the time\n" << again.out;
  EXPECT_EQ(text_of(folder() / "calls"), "x\nx\n");
}

TEST_F(CliSlurm, AnElementAroundItsRun) {
  write("points",
        R"(["train","mnist-mlp","--gpus=1","--backend=self","--device=cpu","--quiet","--store=)" +
            (folder() / "study").string() +
            R"(","--context={\"study\": \"s\", \"point\": \"gpus=1\", )"
            R"(\"point_folder\": \"gpus=1\", \"repeat\": 1, \"session\": \"S\", \"round\": 1}"])");
  const std::string element = " --points points --index 0";
  const Ran begun = paceline("element begin" + element);
  EXPECT_EQ(begun.code, 0) << begun.err;
  EXPECT_EQ(begun.out, "run\n");
  write("log", "something\npaceline: rank 1 was killed (here); do this\nsrun: error: n1: task 1\n");
  const Ran ended = paceline("element end --exit-code 71 --log log" + element);
  EXPECT_EQ(ended.code, 71);
  const std::string record = text_of(folder() / "study" / "gpus=1" / "1.1.json");
  EXPECT_TRUE(contains(record, "rank 1 was killed (here); do this (exit code 71)")) << record;
  EXPECT_TRUE(contains(record, "\"status\": \"failed\"")) << record;
  // Its job has two nodes and a mask of one CPU: refused before anything runs.
  const Ran refused = shell(
      "SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2 SLURMD_NODENAME=n1 "
      "paceline element begin" +
      element);
  EXPECT_EQ(refused.code, 64);
  EXPECT_TRUE(contains(refused.err, "job 7: the job has 2 nodes, its run needs 1")) << refused.err;
  EXPECT_EQ(refused.out, "");
}

TEST_F(CliSlurm, RunsOfTheLoginNodeAreNotDone) {
  if (!find_name("device", "cpu").built) GTEST_SKIP() << "this build has no engine";
  write("t.json", R"({"name": "t", "workload": "mnist-mlp", "repeats": 2, "fixed": {"device": "cpu",
    "cpus_per_task": 1, "steps": 3, "input": "synthetic"}, "axes": {"backend": ["self"]}})");
  const std::string results = " --results r";
  ASSERT_EQ(paceline("sweep t.json --no-report" + results).code, 0);
  const Ran ran = paceline("submit t.json --dry-run --site site.json" + results);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "note: 2 runs of another machine (")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "1 arrays, 2 elements")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "0 runs are done")) << ran.out;
  EXPECT_FALSE(contains(ran.out, "again: ")) << ran.out;
  // A profile whose nodes are like this machine: they count.
  write("like.json", R"({"name": "x", "node": {"cpus": )" +
                         shell("grep -c ^processor /proc/cpuinfo | tr -d '\\n'").out + "}}");
  const Ran like = paceline("submit t.json --dry-run --site like.json" + results);
  EXPECT_TRUE(contains(like.out, "2 runs are done")) << like.out << like.err;
  write("unlike.json", R"({"name": "x", "node": {"cpu": "Z80", "gpus": 1}})");
  expect_refused("submit t.json --site unlike.json", 65,
                 {"unknown key \"gpus\"", "did you mean \"cpus\"?"});
}

class CliBundle : public testing::Cli {};

TEST_F(CliBundle, HoldsWhatHelpsAndNoSecrets) {
  const Ran ran = shell(
      "mkdir -p study/slurm/s; printf 'step 3 failed\\nexport MY_API_KEY=hushhush\\n' > "
      "study/slurm/s/a.log\n"
      "echo hushhush > study/notes.bin; ln -s /etc/passwd study/p.log\n"
      "export HF_TOKEN=hushhush SLURM_JWT_TOKEN=hushhush OMPI_MCA_pml=ob1 HOBBY=chess\n"
      "export NCCL_SOCKET_IFNAME=eth0 https_proxy=http://me:hushhush@proxy:3128\n"
      "paceline doctor --bundle b.tar.gz --about study && tar xzf b.tar.gz && cd paceline-support "
      "&& cat "
      "environment.txt about/slurm/s/a.log doctor.txt machine/meminfo.txt && find . -type f | sort "
      "&& ! grep -r "
      "hushhush .");
  EXPECT_EQ(ran.code, 0) << ran.err << ran.out;
  for (const char* part :
       {"look at it before you send it", "OMPI_MCA_pml=ob1", "NCCL_SOCKET_IFNAME=eth0",
        "SLURM_JWT_TOKEN=[removed]", "step 3 failed", "export MY_API_KEY=[removed]", "compiler",
        "MemTotal", "https_proxy is set", "./doctor.json"}) {
    EXPECT_TRUE(contains(ran.out, part)) << part << " is not in\n" << ran.out;
  }
  for (const char* part : {"HF_TOKEN", "chess", "notes.bin", "p.log"}) {
    EXPECT_FALSE(contains(ran.out, part)) << part << " is in\n" << ran.out;
  }
}

TEST_F(CliBundle, RefusalsLeaveNothingBehind) {
  shell("echo mine > b.tar.gz");
  expect_refused("doctor --bundle b.tar.gz", 65, {"the file exists already", "b.tar.gz"});
  expect_refused("doctor --bundle no/b.tar.gz", 65, {"No such file", "no/b.tar.gz"});
  expect_refused("doctor --bundle c.tar.gz --about nowhere", 65, {"no such folder", "nowhere"});
  expect_refused("doctor --about study", 64, {"--bundle"});
  const Ran ran = shell("cat b.tar.gz; ls -A");
  EXPECT_EQ(ran.out, "mine\nb.tar.gz\n");
  shell("mkdir bin; ln -s \"$(command -v ls)\" bin/");
  const Ran no_tar = shell("env PATH=bin '" PACELINE_BINARY "' doctor --bundle c.tar.gz; ls -A");
  EXPECT_TRUE(contains(no_tar.err, "is tar in PATH")) << no_tar.err;
  EXPECT_EQ(no_tar.out, "b.tar.gz\nbin\n");
}

}  // namespace
}  // namespace paceline
