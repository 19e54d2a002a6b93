// submit, status, cancel, collect and element where nothing of Slurm is real: bad input, dry runs.
#include "results/names.h"
#include "tests/integration/cli/slurm_cli.h"
#include "tests/support/has_engine.h"

namespace paceline {
namespace {

TEST_F(CliSlurm, ADryRunShowsTheCostWritesTheScriptsAndSendsNothing) {
  const Ran ran =
      expect_success(shell(with("play sbatch 'touch sent; echo 1'") + "paceline submit " +
                           kCassava + " --site " + kGpu + " --repeats 3 --dry-run --scripts made"));
  EXPECT_TRUE(file_text(folder() / "made/1n4t8c4g.sbatch").starts_with("#!/bin/bash")) << ran.out;
  expect_parts(all("made", ".sbatch"), {"#SBATCH --gres=gpu:4\n"});
  EXPECT_TRUE(
      contains(file_text(folder() / "made/1n4t8c4g.points"),
               R"(["train","resnet50-cassava","--gpus=4","--nodes=1","--cpus-per-task=8")"));
  expect_parts(ran.out, {"made/*.sbatch"});
  expect_no_parts(ran.out, {"#!/bin/bash"});
  EXPECT_LT(std::count(ran.out.begin(), ran.out.end(), '\n'), 45) << "the table, not the scripts";
  EXPECT_FALSE(std::filesystem::exists(folder() / "sent"));
  EXPECT_FALSE(std::filesystem::exists(folder() / "results"));
  const std::string scripts = all("made", ".sbatch"), points = all("made", ".points");
  const Ran again = shell("paceline submit " + kCassava + " --site " + kGpu +
                          " --repeats 3 --dry-run --scripts made");
  EXPECT_EQ(again.out + all("made", ".sbatch") + all("made", ".points"), ran.out + scripts + points)
      << "the same bytes each time";
  const Ran unnamed = expect_success(
      shell("export TMPDIR=$PWD; paceline submit s.json --site site.json --dry-run"));
  expect_parts(unnamed.out, {folder().string() + "/paceline-s-"});
  shell("export TMPDIR=$PWD; paceline submit s.json --site site.json --dry-run");
  EXPECT_EQ(shell("ls -d paceline-s-* | wc -l").out, "1\n") << "the next one takes its place";
}

// As sbatch would run it: the script from a copy, in the folder that it was sent from.
TEST_F(CliSlurm, TheScriptsOfADryRunCanBeSentByHand) {
  PACELINE_NEEDS_ENGINE();
  write("t.json", R"({"name": "t", "workload": "mnist-mlp", "repeats": 1, "fixed": {"device": "cpu",
    "cpus_per_task": 1, "steps": 3, "input": "synthetic", "evaluate": "none"},
    "axes": {"backend": ["self"]}})");
  write("here.json", R"({"name": "x", "reference": false, "array": {"max_size": 100}})");
  succeed("submit t.json --site here.json --results r --dry-run --scripts 'a b'");
  const std::string script = file_text(folder() / "a b/1n1t1c.sbatch");
  const std::string files = folder().string() + "/a b";
  expect_parts(script, {"To send it by hand:\n#   sbatch '" + files + "/1n1t1c.sbatch'\n",
                        "#SBATCH --output=\"" + files + "/1n1t1c.%A_%a.log\"\n"});
  const std::string job =
      with("play srun 'while [ \"${1#--}\" != \"$1\" ]; do shift; done; exec \"$@\"'") +
      "cp 'a b/1n1t1c.sbatch' spooled\n"
      "export SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_JOB_ID=5 SLURM_JOB_ID=5\n";
  expect_success(shell(job + "bash spooled"));
  const std::string record = shell("cat r/t/*/1.1.json").out;
  expect_parts(record, {"\"status\": \"completed\"", "\"session\": \"by-hand-5\""});
  const Ran unseen = shell(job + "rm -r 'a b'; bash spooled");
  EXPECT_EQ(unseen.code, 65);
  expect_parts(unseen.err, {"does not see " + files + "; write the scripts to a folder"});
}

TEST_F(CliSlurm, VariablesOfTheShellAreSetAsideAndReported) {
  const std::string submit = with(
      "play sbatch 'env | grep ^SBATCH_ > variables; echo 5'; play squeue :; "
      "export SBATCH_PARTITION=debug SBATCH_ACCOUNT=me SBATCH_REQUEUE=1");
  write("gpu.json", R"({"name": "x", "program": "/opt/paceline", "partition": "gpu"})");
  const Ran ran = expect_success(
      shell(submit + "paceline submit s.json --site gpu.json --yes --no-collect --data-elsewhere"));
  EXPECT_EQ(file_text(folder() / "variables"), "SBATCH_ACCOUNT=me\n") << "the profile has none";
  expect_parts(ran.out, {"SBATCH_PARTITION, SBATCH_REQUEUE; what shall hold belongs in "
                         "gpu.json\n"});
}

// The published rows take 2.8 GPU-hours; the same row stands for each backend.
TEST_F(CliSlurm, TheCostByPublishedTimesAndAtMost) {
  const Ran ran = succeed("submit " + kCassava + " --site " + kGpu +
                          " --repeats 1 --set backend=mirrored --dry-run --scripts made");
  if (!find_name("backend", "self").built) GTEST_SKIP() << "who knows no workloads knows no epochs";
  expect_parts(ran.out,
               {"14 elements: about 2.8 GPU-hours", "(by published times), at most 35.0 and "});
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
  const Ran dry = succeed("submit s.json --site xxx.json --dry-run --scripts made");
  expect_parts(dry.out, {"warning: xxx.json: account is XXX@v100; "});
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
  expect_parts(absent.err, {"data set cassava was not found", "or add --data-elsewhere",
                            "name its folder by --data, or as \"data\" in gpu.json"});
  write("place.json", R"({"name": "x", "program": "/opt/paceline", "gpus": {"form": "gres"},
                          "data": "/no/such/data"})");
  const Ran place = shell(submit + "place.json");
  EXPECT_EQ(place.code, 65);
  expect_parts(place.err, {"looked in /no/such/data/cassava, ",
                           "; correct \"data\" in place.json; or add --data-elsewhere"});
  EXPECT_FALSE(std::filesystem::exists(folder() / "sent"));
  const Ran dry = expect_success(
      shell("unset PACELINE_DATA; paceline submit one.json --site gpu.json --dry-run "
            "--scripts made"));
  expect_parts(dry.out, {": data set cassava was not found"});
  EXPECT_EQ(shell(submit + "gpu.json --data-elsewhere").code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder() / "sent"));
  // A folder that only the job can name is nobody's to look for.
  write("there.json", R"({"name": "x", "program": "/opt/paceline", "gpus": {"form": "gres"},
                          "data": "$NOT_SET_HERE/data"})");
  const Ran there = expect_success(shell(submit + "there.json --results other"));
  expect_parts(there.out, {"note: data is $NOT_SET_HERE/data in there.json, and NOT_SET_HERE "
                           "is not set here: only the jobs look there\n"});
  const Ran planned = shell(
      "unset PACELINE_DATA; paceline submit one.json --site there.json --dry-run --scripts made");
  expect_no_parts(planned.out, {"warning: data set"});
}

TEST_F(CliSlurm, PointsTooLargeForTheNodesAreRefusedAndRowsWithoutABaseAreReported) {
  write("small.json", R"({"name": "x", "program": "/opt/paceline", "cores_per_node": 4,
                          "cpus_per_node": 8})");
  write("wide.json", R"({"name": "wide", "workload": "mnist-mlp", "fixed": {"device": "cpu",
      "backend": "mirrored", "cpus_per_replica": 4}, "axes": {"gpus": [2, 4]}})");
  expect_refused("submit wide.json --site small.json --dry-run --scripts made", 64,
                 {"wide.json", "point gpus=4", "needs 16 CPUs on a node, and a node has 8",
                  "(small.json)", "as mirrored/mpi does"});
  succeed("submit wide.json --site small.json --set gpus=2 --dry-run --scripts made");
  const Ran two = succeed(
      "submit wide.json --site small.json --set backend=mirrored/mpi --dry-run --scripts made");
  expect_parts(two.out, {"2n2t8c", "warning: no speed-up for gpus=2"});
}

// What the profile leaves out, Slurm knows.
TEST_F(CliSlurm, GpusOfANodeAreAskedOfSlurm) {
  write("gpus.json", R"({"name": "x", "program": "/opt/paceline", "gpus": {"form": "gres"},
                         "device": "cuda"})");
  write("eight.json", R"({"name": "e", "workload": "mnist-mlp", "axes": {"gpus": [8],
                          "backend": ["nccl"]}})");
  const std::string sinfo = with("play sinfo \"echo 'p*|2|20|40|gpu:4'\"");
  const Ran ran = expect_success(
      shell(sinfo + "paceline submit eight.json --site gpus.json --dry-run --scripts made"));
  EXPECT_TRUE(contains(file_text(folder() / "made/2n8t10c8g.sbatch"), "#SBATCH --gres=gpu:4\n"))
      << ran.out;
  EXPECT_TRUE(contains(all("made", ".points"), "\"--nodes=2\"")) << ran.out;
  const Ran smoke = shell(
      sinfo + "paceline submit eight.json --site gpus.json --smoke --dry-run --scripts smoke");
  expect_parts(smoke.out, {"2n8t10c8g "});
  expect_parts(all("smoke", ".sbatch"), {"#SBATCH --gres=gpu:4\n"});
  expect_parts(all("smoke", ".points"), {"\"--backend=nccl\"", "\"--steps=2\""});
}

TEST_F(CliSlurm, AGpuProfileWithoutADeviceIsReported) {
  write("gpus.json", R"({"name": "x", "program": "/opt/paceline", "gpus": {"form": "gres"}})");
  write("one.json", R"({"name": "one", "workload": "mnist-mlp", "axes": {"gpus": [1]}})");
  const Ran ran = succeed("submit one.json --site gpus.json --dry-run --scripts made");
  expect_parts(ran.out, {"note: the points are of device cpu, so no GPUs are requested"});
  const Ran cuda = paceline("submit one.json --site gpus.json --set device=cuda --dry-run");
  expect_no_parts(cuda.out, {"no GPUs are requested"});
}

TEST_F(CliSlurm, SmokeNeedsNoGpuWhereTheProfileHasNoneAndFewSteps) {
  write("none.json", R"({"name": "x", "program": "/opt/paceline", "device": "cuda"})");
  const Ran ran =
      succeed("submit " + kCassava + " --site none.json --smoke --dry-run --scripts made");
  EXPECT_FALSE(contains(all("made", ".sbatch"), "#SBATCH --g")) << ran.out;
  expect_parts(all("made", ".points"), {"--steps=2"});
  expect_parts(ran.out, {"nyu-cassava.smoke: ", "at most 0.0 GPU-hours"});
  write(
      "nccl.json",
      R"({"name": "n", "workload": "mnist-mlp", "fixed": {"gpus": 4, "nodes": 2, "cpus_per_task": 2},
                         "axes": {"backend": ["nccl", "mirrored/nccl"]}})");
  const Ran nccl = succeed("submit nccl.json --site none.json --smoke --dry-run --scripts nccl");
  const std::string points = all("nccl", ".points"), scripts = all("nccl", ".sbatch");
  expect_parts(points, {"\"--backend=ring\"", "\"--backend=mirrored/ring\""});
  EXPECT_FALSE(contains(points, "--backend=nccl") || contains(points, "mirrored/nccl\""));
  expect_parts(scripts, {"element begin --built=backend=mirrored/nccl --built=backend=nccl "
                         "--built=device=cuda \"${element[@]}\""});
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
  const Ran here = succeed("submit " + kCassava + " --site " + kGpu + " --dry-run");
  EXPECT_EQ(contains(here.out, warning), !cuda.built) << here.out;
  write("other.json", R"({"name": "x", "program": "/opt/paceline", "device": "cuda",
                          "gpus": {"form": "gres"}})");
  const Ran other = succeed("submit " + kCassava + " --site other.json --dry-run");
  expect_no_parts(other.out, {"warning: " + not_built});
  EXPECT_EQ(contains(other.out, "note: " + not_built), !cuda.built);
  const Ran sweep = succeed("sweep " + kCassava + " --set device=cuda --dry-run");
  expect_parts(sweep.out, {"nyu-cassava: 59 points"});
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
  const Ran ran = succeed("submit s.json --site site.json --control --dry-run --scripts made");
  EXPECT_TRUE(contains(all("made", ".points"), "\"--control=true\"")) << ran.out;
  const Ran smoke =
      succeed("submit s.json --site site.json --control --smoke --dry-run --scripts smoke");
  expect_no_parts(all("smoke", ".points"), {"--control"});
}

TEST_F(CliSlurm, AContainerSeesTheFolderOfASpecsWeights) {
  write("box.json", R"({"name": "x", "container": {"on": true, "image": "i.sif"}})");
  write("w.json", R"({"name": "w", "workload": "resnet50-cassava",
    "fixed": {"device": "cpu", "weights": "/some/where/w.h5"}, "axes": {"gpus": [1]}})");
  const Ran ran = succeed("submit w.json --site box.json --dry-run --scripts made");
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
  expect_refused("element begin", 64, {"--points is required"});
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
  expect_parts(ran.out, {"MaxArraySize       5\n",
                         "failed: there is no partition gpus; did you mean \"gpu\"?"});
  expect_refused("doctor --site none.json", 65, {"none.json"});
}

TEST_F(CliSlurm, WhatIsForScriptsIsNotShownToPeople) {
  expect_no_parts(paceline("--help").out, {"element"});
  expect_no_parts(paceline("completion bash").out, {"element"});
  expect_parts(paceline("completion bash").out, {"submit"});
}

TEST_F(CliSlurm, CoresThatTheProfileDoesNotReportAreThoseOfSlurmOrReported) {
  write("half.json", R"({"name": "half", "workload": "mnist-mlp", "fixed": {"device": "cpu",
      "backend": "self", "gpus": 1}, "axes": {"cpus_per_task": [1, 48]},
      "where": "cpus_per_task == 1 || cpus_per_task * 2 == cores"})");
  const std::string submit =
      "paceline submit half.json --site site.json --dry-run --scripts made; ls made";
  const Ran asked = expect_success(shell(with("play sinfo 'echo \"main*|2|48\"'") + submit));
  expect_parts(asked.out, {"1n1t48c.sbatch"});
  expect_no_parts(asked.out, {"cores_per_node"});
  expect_parts(shell(with("play sinfo 'exit 1'") + submit).out,
               {"warning: site.json: \"cores_per_node\" is missing", ", as on this machine; add"});
}

}  // namespace
}  // namespace paceline
