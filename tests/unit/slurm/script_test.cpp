#include "slurm/script.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>

#include "engine/core/text.h"
#include "slurm/job_array.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"
#include "tests/unit/slurm/samples.h"

namespace paceline {
namespace {

using Lines = std::vector<std::string>;

JobShape shape(int nodes, int ntasks, int cpus, int gpus) {
  return {nodes, gpus, ntasks, cpus};
}

JobArray make_array(const JobShape& shape) {
  return {shape.name(), shape, {{0, 1}, {0, 2}}, {90, 8000, false}};
}

ScriptSetup setup() {
  return {"study", "/r/study", "S", "/bin/paceline", "cpu"};
}

Lines gpus(const std::string& form, const JobShape& shape, const std::string& type = "") {
  const std::string typed = type.empty() ? "" : ", \"type\": \"" + type + "\"";
  return gpu_options(site_with("\"gpus\": {\"form\": \"" + form + "\"" + typed + "}"), shape);
}

TEST(Script, EachFormOfGpus) {
  const JobShape four = shape(2, 4, 4, 4), one_task = shape(1, 1, 16, 4);
  EXPECT_EQ(gpus("gres", four), Lines{"--gres=gpu:2"});
  EXPECT_EQ(gpus("gres", one_task, "v100"), Lines{"--gres=gpu:v100:4"});
  EXPECT_EQ(gpus("gpus", four), Lines{"--gpus=4"});
  EXPECT_EQ(gpus("gpus", four, "a100"), Lines{"--gpus=a100:4"});
  EXPECT_EQ(gpus("gpus-per-task", four), Lines{"--gpus-per-task=1"});
  EXPECT_EQ(gpus("gpus-per-task", one_task), Lines{"--gpus-per-task=4"});
  EXPECT_EQ(gpus("gpus-per-node", four), (Lines{"--gpus-per-node=2", "--gpu-bind=none"}));
  for (const char* form : {"none", "gres", "gpus-per-task"}) {
    EXPECT_EQ(gpus(form, shape(1, 2, 4, 0)), Lines{}) << "replicas are cores";
  }
  expect_error(ErrorKind::usage, {"needs GPUs", "no form", "site.json"},
               [&] { gpus("none", four); });
}

TEST(Script, EachFormOfMemory) {
  const auto memory = [](const std::string& form, const JobShape& shape) {
    return memory_options(site_with("\"memory\": {\"form\": \"" + form + "\"}"), shape, 8000);
  };
  EXPECT_EQ(memory("mem", shape(1, 2, 4, 2)), Lines{"--mem=8000M"});
  EXPECT_EQ(memory("mem-per-cpu", shape(1, 2, 4, 2)), Lines{"--mem-per-cpu=1000M"});
  EXPECT_EQ(memory("mem-per-cpu", shape(2, 2, 3, 2)), Lines{"--mem-per-cpu=2667M"});
  EXPECT_EQ(memory("mem-per-gpu", shape(1, 2, 4, 2)), Lines{"--mem-per-gpu=4000M"});
  EXPECT_EQ(memory("mem-per-gpu", shape(1, 2, 4, 0)), Lines{"--mem=8000M"});
  EXPECT_EQ(memory("none", shape(1, 2, 4, 2)), Lines{});
  const Site least = site_with(R"("memory": {"form": "mem-per-cpu", "gb_per_cpu": 8})");
  EXPECT_EQ(memory_options(least, shape(1, 2, 1, 2), 8192), Lines{"--mem-per-cpu=8G"});
  EXPECT_EQ(memory_options(least, shape(1, 2, 1, 2), 20000), Lines{"--mem-per-cpu=10000M"});
}

TEST(Script, TheRequestOfAnArray) {
  const Site site =
      site_with(R"("account": "abc", "partition": "gpu", "qos": "q", "constraint": "x&y",
    "hint": "nomultithread", "exclusive": true, "array": {"throttle": 3}, "requeue": true,
    "extra": ["#SBATCH --mail-type=FAIL"], "burst_buffer": ["#DW jobdw capacity=1GB"])");
  const std::string text = script_text(site, make_array(shape(2, 4, 8, 0)), setup());
  for (const char* line :
       {"#SBATCH --job-name=2n4t8c.study.S", "#SBATCH --array=0-1%3",
        "#SBATCH --output=slurm/S/2n4t8c.%A_%a.log", "#SBATCH --account=abc",
        "#SBATCH --partition=gpu", "#SBATCH --qos=q", "#SBATCH --constraint=x&y",
        "#SBATCH --nodes=2", "#SBATCH --ntasks=4", "#SBATCH --ntasks-per-node=2",
        "#SBATCH --cpus-per-task=8", "#SBATCH --hint=nomultithread", "#SBATCH --exclusive",
        "#SBATCH --time=1:30:00", "#SBATCH --signal=B:USR1@120", "#SBATCH --requeue",
        "#SBATCH --mail-type=FAIL", "#DW jobdw capacity=1GB",
        "launch=(srun --nodes=2 --ntasks=4 --cpus-per-task=8 --wait=120 --mpi=pmix)"}) {
    EXPECT_TRUE(contains(text, std::string(line) + "\n")) << line << "\n" << text;
  }
  expect_parts(text, {"scontrol requeue"});
  expect_no_parts(text, {"{{"});
}

TEST(Script, ErrorsHaveAFileOfTheirOwnIfTheProfileAsksForIt) {
  const std::string one = script_text(site_with(""), make_array(shape(1, 2, 1, 0)), setup());
  expect_no_parts(one, {"--error"});
  expect_parts(one, {"element end --exit-code \"$code\" --log \"$log\""});
  const Site site = site_with("\"error_file\": true");
  const std::string two = script_text(site, make_array(shape(1, 2, 1, 0)), setup());
  expect_parts(two, {"#SBATCH --error=slurm/S/1n2t1c.%A_%a.err\n"});
  EXPECT_TRUE(contains(two, "element end --exit-code \"$code\" --log \"${log%.log}.err\""))
      << "that is where a run says why it failed";
  expect_parts(collect_script_text(site, setup()), {"#SBATCH --error=slurm/S/collect.%j.err"});
}

// It starts its ranks itself, on several nodes by the job's launcher.
TEST(Script, AProgramOfTheUsersOwnIsStartedOnce) {
  ScriptSetup own = setup();
  const Site site = site_with("");
  expect_parts(script_text(site, make_array(shape(2, 4, 8, 0)), own),
               {"  \"${launch[@]}\" \"${paceline[@]}\" element run"});
  own.own_program = true;
  expect_parts(script_text(site, make_array(shape(1, 4, 8, 0)), own),
               {"  \"${paceline[@]}\" element run"});
  expect_parts(script_text(site, make_array(shape(2, 4, 8, 0)), own),
               {"  PACELINE_PROGRAM_LAUNCHER=$(printf '%s\\n' \"${launch[@]}\") "
                "\"${paceline[@]}\" element run"});
}

TEST(Script, WhatAJobLoadsAndSets) {
  const Site site = site_with(R"x("modules": {"purge": true, "load": ["gcc/12", "my module"]},
    "environment": {"A": "$SCRATCH/a b", "B": "x$(id)"}, "unset": ["http_proxy"],
    "setup": ["ulimit -c 0"], "data": "${DATA}", "launcher": "mpirun", "reference": false,
    "program": "$HOME/paceline")x");
  const std::string text = script_text(site, make_array(shape(1, 2, 1, 0)), setup());
  for (const char* line :
       {"module purge", "unset http_proxy",
        "export A=\"${SCRATCH:?is not set on this node}\"'/a b'", "export B='x$(id)'",
        "export PACELINE_DATA=\"${DATA:?is not set on this node}\"", "ulimit -c 0",
        "paceline=(\"${HOME:?is not set on this node}\"/paceline)",
        "launch=(mpirun -np 2 --map-by ppr:2:node --bind-to none)"}) {
    EXPECT_TRUE(contains(text, std::string(line) + "\n")) << line << "\n" << text;
  }
  expect_parts(text, {"module load gcc/12 'my module' ||"});
  expect_no_parts(text, {".reference"});
}

TEST(Script, AContainerSeesTheFoldersInUse) {
  const std::string keys = R"("gpus": {"form": "gres"}, "data": "/d a", "stage": "$TMPDIR",
    "container": {"on": true, "image": "i.sif", "overlays": ["o.ext3:ro"], "binds": ["/etc/x"],
                  "cache": "/c"})";
  ScriptSetup reading = setup();
  reading.reads = {"/weights of all"};
  const std::string text = script_text(site_with(keys), make_array(shape(1, 1, 4, 1)), reading);
  expect_parts(text, {"paceline=(apptainer exec --nv --overlay o.ext3:ro --bind /r --bind '/d a' "
                      "--bind \"${TMPDIR:?is not set on this node}\" --bind '/weights of all' "
                      "--bind /etc/x i.sif paceline)",
                      "export APPTAINER_CACHEDIR=/c", "export PMIX_MCA_gds=hash\n"});
  Site off = site_with(keys);
  off.container.on = false;
  expect_parts(script_text(off, make_array(shape(1, 1, 4, 1)), setup()),
               {"paceline=(/bin/paceline)"});
  expect_no_parts(script_text(off, make_array(shape(1, 1, 4, 1)), setup()), {"PMIX_MCA_gds"});
  expect_error(ErrorKind::usage, {"comma", "/a,b"}, [&] {
    ScriptSetup odd = setup();
    odd.folder = "/a,b/study";
    script_text(site_with(keys), make_array(shape(1, 1, 4, 1)), odd);
  });
}

// pyxis, and --environment at CSCS: srun itself starts a process in the container.
TEST(Script, AContainerOfSrun) {
  const auto text = [](const std::string& container) {
    return script_text(site_with(R"("gpus": {"form": "gres"}, "data": "/d",
    "container": {"on": true, "command": "srun", )" +
                                 container + "}"),
                       make_array(shape(1, 2, 4, 2)), setup());
  };
  const std::string pyxis = text(R"("image": "$SCRATCH/i.sqsh", "binds": ["/x:/y"])");
  const std::string options =
      " --container-image=\"${SCRATCH:?is not set on this node}\"/i.sqsh "
      "--container-mounts=/r:/r,/d:/d,/x:/y paceline";
  expect_parts(pyxis,
               {"paceline=(srun --nodes=1 --ntasks=1 --overlap --cpus-per-task=8" + options + ")",
                "\"${launch[@]}\"" + options + " element run"});
  expect_parts(text(R"("edf": "pytorch")"), {"\"${launch[@]}\" --environment=pytorch paceline "});
}

// The starter is outside: there are Slurm's commands. What it starts is in a container.
TEST(Script, ProgramsOnSeveralNodesStartContainers) {
  ScriptSetup own = setup();
  own.own_program = true;
  const std::string text = script_text(site_with(R"("gpus": {"form": "gres"},
      "container": {"on": true, "image": "i.sif", "nv": false})"),
                                       make_array(shape(2, 2, 4, 2)), own);
  expect_parts(text, {"paceline=(/bin/paceline)\n",
                      "PACELINE_PROGRAM_CONTAINER=$(printf '%s\\n' apptainer exec --bind /r i.sif "
                      "paceline) \"${paceline[@]}\" element run"});
}

TEST(Script, TimeAsSlurmReadsIt) {
  EXPECT_EQ(time_text(5), "0:05:00");
  EXPECT_EQ(time_text(65), "1:05:00");
  EXPECT_EQ(time_text(24 * 60), "1-00:00:00");
  EXPECT_EQ(time_text(3000), "2-02:00:00");
}

// The script, run by bash up to its own calls: values must come through as they are, and no word of
// them may be a command.
class Injection : public ::testing::Test {
 protected:
  int run(const std::string& script) {
    std::ofstream(scratch_ / "script") << script;
    const std::string command =
        "cd '" + scratch_.path().string() +
        "' && SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_JOB_ID=1 bash script > out 2>&1";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  Site site_of_program(const std::string& program) const {
    Site site = site_with("\"reference\": false, \"launcher_options\": []");
    site.program = (scratch_ / "program").string();
    std::ofstream(site.program) << program;
    std::filesystem::permissions(site.program, std::filesystem::perms::owner_all);
    return site;
  }

  // Keeps a spec's text and runs the script of its element 0; what the script hands to the program
  // is read back as the program would.
  std::vector<std::string> words_of_job(const std::string& word, Site site,
                                        const std::filesystem::path& study) {
    std::filesystem::create_directories(study / "slurm" / "S");
    Spec spec = parse_spec("s", kFourPoints);
    spec.fixed.set("weights", word);
    StudyPlan plan = make_plan(std::move(spec), study);
    const ScriptSetup setup = make_setup(plan);
    // A program that writes its arguments down, and says "run" at the start.
    site.program = (scratch_ / "program").string();
    std::ofstream(site.program) << "#!/bin/bash\n[ \"$2\" = begin ] && { echo run; exit; }\n"
                                << "[ \"$2\" = end ] && exit 0\n"
                                << "printf '%s\\0' \"$@\" > " << scratch_ / "words"
                                << "\n"
                                << "printf '%s\\n' \"$VALUE\" > " << scratch_ / "value"
                                << "\n";
    std::filesystem::permissions(site.program, std::filesystem::perms::owner_all);
    const Submission submission = make_submission(plan, site);
    const JobArray& array = submission.arrays.front();
    std::ofstream(study / file_of_array("S", array.name, ".points"))
        << points_line(plan, array.runs.front(), setup) << "\n";
    // srun and module: the first passes over its options, of which the last is the profile's.
    const std::string script = "module() { [ $# -ge 1 ]; }\nsrun() { shift 5; \"$@\"; }\n" +
                               script_text(site, array, setup);
    EXPECT_EQ(run(script), 0) << file_text(scratch_ / "out");
    const auto given = split(file_text(scratch_ / "words"), '\0');
    EXPECT_EQ(given.size(), 7U);
    if (given.size() != 7U) return {};
    EXPECT_EQ(given[0] + " " + given[1] + " " + given[2], "element run --points");
    EXPECT_EQ(given[4] + " " + given[5], "--index 0");
    std::filesystem::remove(scratch_ / "words");
    return words_of_element(given[3], 0);
  }

  Scratch scratch_;
};

TEST_F(Injection, NothingOfAStudyOrProfileIsRun) {
  const std::filesystem::path mark = scratch_ / "mark";
  for (const std::string& word :
       {"$(touch " + mark.string() + ")", "`touch " + mark.string() + "`",
        "'; touch " + mark.string() + "; '", "\"; touch " + mark.string() + "; \"",
        "x\\'; touch " + mark.string() + " #", "a && touch " + mark.string(),
        std::string("a b  c*"), std::string("{{setup}}"), std::string("a${PATH}x"),
        std::string("!history"), std::string("-n")}) {
    SCOPED_TRACE(word);
    // A slash in a folder's name would make two of it.
    std::string name = word;
    std::replace(name.begin(), name.end(), '/', '_');
    const std::filesystem::path study = scratch_ / name / "s";
    Site site = site_with("\"reference\": false");
    site.name = word;
    site.modules = {word};
    site.environment["VALUE"] = word;
    site.data = word;
    site.launcher_options = {word};
    const auto words = words_of_job(word, site, study);
    EXPECT_FALSE(std::filesystem::exists(mark));
    EXPECT_NE(std::find(words.begin(), words.end(), "--weights=" + word), words.end());
    EXPECT_EQ(file_text(scratch_ / "value"), word + "\n");
  }
}

// Specs refuse them; a points file cannot be split by them all the same.
TEST_F(Injection, ALineBreakOfASpecSplitsNothing) {
  const std::filesystem::path mark = scratch_ / "mark";
  Site site = site_with("\"reference\": false");
  site.launcher_options = {"-n"};
  for (const char* end : {"\n", "\r", "\0"}) {
    const std::string word =
        "x" + std::string(end, 1) + "$(touch " + mark.string() + ")" + std::string(end, 1) + "#";
    const auto words = words_of_job(word, site, scratch_ / "s");
    EXPECT_NE(std::find(words.begin(), words.end(), "--weights=" + word), words.end());
    EXPECT_FALSE(std::filesystem::exists(mark));
  }
  const std::string script =
      script_text(site, make_array(shape(1, 1, 1, 0)),
                  make_setup(make_plan(parse_spec("s", kFourPoints), scratch_.path() / "s")));
  expect_no_parts(script, {"eval"});
}

// A program that cannot sum by MPI.
TEST_F(Injection, WhereAskedABackendThatCannotSumIsReplaced) {
  const std::filesystem::path study = scratch_ / "s";
  std::filesystem::create_directories(study / "slurm" / "S");
  StudyPlan plan = make_plan(parse_spec("s", kFourPoints), study);
  ScriptSetup setup = make_setup(plan);
  const Site site = site_of_program(R"(#!/bin/bash
case "$1 $2" in
"element begin") echo run; exit ;;
"element fallback") echo "$@" >> fallbacks; [ "$6" = 72 ] && echo gloo; exit ;;
"element end") echo "end $4" >> runs; exit "$4" ;;
esac
echo "$@" "$PACELINE_FELL_BACK" "${PACELINE_STATUS_DIR##*.}" >> runs
case "$*" in *"--backend gloo") exit 0 ;; *) exit 72 ;; esac
)");
  const auto ran = [&](const std::string& fallback) {
    setup.fallback = fallback;
    const Submission submission = make_submission(plan, site);
    const JobArray& array = submission.arrays.front();
    std::ofstream(study / file_of_array("S", array.name, ".points"))
        << points_line(plan, array.runs.front(), setup) << "\n";
    std::filesystem::remove(study / "runs");
    const int code = run("srun() { shift 4; \"$@\"; }\n" + script_text(site, array, setup));
    return std::to_string(code) + "\n" + file_text(study / "runs");
  };
  const std::string without = ran("");
  EXPECT_TRUE(without.starts_with("72\n")) << without;
  expect_no_parts(without, {"gloo"});
  const std::string with = ran("gloo");
  EXPECT_TRUE(with.starts_with("0\nelement run --points "))
      << with << file_text(scratch_.path() / "out");
  expect_parts(with, {"--index 0 --backend gloo 1 fallback\nend 0\n"});
  expect_parts(file_text(study / "fallbacks"),
               {"element fallback --to gloo --exit-code 72 --status "});
}

// The screen's folder reaches the run, unless there is none.
TEST_F(Injection, WhereAskedAJobIsScreenedBeforeItsRun) {
  const std::filesystem::path study = scratch_ / "s";
  std::filesystem::create_directories(study / "slurm" / "S");
  const StudyPlan plan = make_plan(parse_spec("s", kFourPoints), study);
  ScriptSetup setup = make_setup(plan);
  setup.screen = true;
  const Site site = site_of_program(R"(#!/bin/bash
case "$1 $2" in
"element begin") echo run; exit ;;
screen*) echo "$@" >> calls; exit "$CODE" ;;
"element run") echo "run after ${PACELINE_SCREEN##*/}" >> calls ;;
esac
)");
  const Submission submission = make_submission(plan, site);
  const JobArray& array = submission.arrays.front();
  // An executable, as timeout starts no function of the shell.
  fake(scratch_.path(), "srun", "shift 4; exec \"$@\"");
  const auto calls = [&](const std::string& code) {
    std::filesystem::remove(study / "calls");
    run("export CODE=" + code + " PATH=\"" + scratch_.path().string() + ":$PATH\"\n" +
        script_text(site, array, setup));
    return file_text(study / "calls");
  };
  const std::string name = array.name + ".1_0.screen";
  expect_parts(calls("0"),
               {"screen --gpus=1 --nodes=1 --cpus-per-task=2 --device=cpu --backend=ring --out ",
                "/" + name + "\nrun after " + name + "\n"});
  expect_parts(calls("70"), {"\nrun after \n"});
  expect_parts(file_text(scratch_ / "out"), {"paceline: note: the screen failed"});
  setup.screen = false;
  EXPECT_EQ(calls("0"), "run after \n");
}

// A folder's name is no command.
TEST_F(Injection, AScreenOfAnyFolder) {
  const std::filesystem::path mark = scratch_ / "mark";
  JobArray job = make_array(shape(1, 1, 1, 0));
  ScriptSetup odd = setup();
  odd.folder = scratch_ / ("a \"b' $(touch " + mark.filename().string() + ")");
  EXPECT_EQ(run(screen_script_text(site_with(""), job, odd)), 65);
  expect_parts(file_text(scratch_ / "out"), {"does not see ", "$(touch mark)"});
  EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST(Script, AScreenHasAProcessForEachGpu) {
  ScriptSetup screened = setup();
  screened.screen = true;
  const Site site = site_with("\"gpus\": {\"form\": \"gres\"}");
  expect_parts(script_text(site, make_array(shape(2, 2, 16, 8)), screened),
               {"srun --nodes=2 --ntasks=8 --cpus-per-task=4 ",
                " screen --gpus=8 --nodes=2 --cpus-per-task=4 --device=cuda --backend=ring "});
  const Site a_task = site_with("\"gpus\": {\"form\": \"gpus-per-task\"}");
  expect_parts(script_text(a_task, make_array(shape(2, 2, 16, 8)), screened),
               {" --gpus-per-task=1 /bin/paceline screen --gpus=8 "});
  JobArray job = make_array(shape(16, 64, 8, 64));
  job.name = "screen";
  const std::string alone = screen_script_text(site, job, setup());
  expect_parts(
      alone, {"#SBATCH --output=screen.%j.log\n", "#SBATCH --nodes=16\n", "#SBATCH --gres=gpu:4\n",
              "folder=/r/study\ncd \"$folder\" || refuse ", "PACELINE_STORE=$SLURMD_NODENAME ",
              "srun --nodes=16 --ntasks=64 --cpus-per-task=8 ", " screen --gpus=64 ",
              " --out \"$folder\"\n"});
  expect_no_parts(alone, {"--array"});
}

// It stands in the environment of the job's ranks alone.
TEST_F(Injection, RanksOfAJobShareARandomToken) {
  const std::filesystem::path study = scratch_ / "s";
  std::filesystem::create_directories(study / "slurm" / "S");
  const StudyPlan plan = make_plan(parse_spec("s", kFourPoints), study);
  const Site site = site_of_program(R"(#!/bin/bash
case "$1 $2" in
"element begin") echo run ;;
"element run") echo "$PACELINE_TOKEN" >> tokens ;;
esac
echo "$@" >> words
)");
  const Submission submission = make_submission(plan, site);
  const std::string script = "srun() { shift 4; \"$@\"; \"$@\"; }\n" +
                             script_text(site, submission.arrays.front(), make_setup(plan));
  for (const char* given : {"", "", "export PACELINE_TOKEN=given\n"}) run(given + script);
  const std::vector<std::string> tokens = split(file_text(study / "tokens"), '\n');
  ASSERT_GE(tokens.size(), 6U) << file_text(scratch_ / "out");
  EXPECT_EQ(tokens[0], tokens[1]);
  EXPECT_EQ(tokens[2], tokens[3]);
  EXPECT_NE(tokens[0], tokens[2]);
  EXPECT_GE(tokens[0].size(), 32U);
  EXPECT_EQ(tokens[4], "given");
  expect_no_parts(file_text(study / "words") + file_text(scratch_ / "out"), {tokens[0]});
}

// The program notes its calls; as USR1 reaches the script's shell, or it alone, at the call
// "$WHEN".
TEST_F(Injection, TheSignalBeforeTheLimitIsPassedOnAndReported) {
  const std::filesystem::path study = scratch_ / "s";
  std::filesystem::create_directories(study / "slurm" / "S");
  StudyPlan plan = make_plan(parse_spec("s", kFourPoints), study);
  const ScriptSetup setup = make_setup(plan);
  Site site = site_of_program(R"(#!/bin/bash
echo "$@" >> calls
[ "$1 $2" != "$WHEN" ] || kill -USR1 "$SCRIPT"
case "$1 $2" in
"element begin") echo run ;;
"element run") mkdir "$PACELINE_STATUS_DIR"; case $WHEN in alone) kill -USR1 $$ ;; lost) exit 71 ;; esac; exec sleep 20 ;;
"element end") exit "$4" ;;
esac
)");
  site.extra = {"#SBATCH --signal=USR1@60"};
  const Submission submission = make_submission(plan, site);
  const JobArray& array = submission.arrays.front();
  std::ofstream(study / file_of_array("S", array.name, ".points"))
      << points_line(plan, array.runs.front(), setup) << "\n";
  std::string late;  // the command before which the script waits
  const auto calls_of = [&](const std::string& when, int code) {
    std::filesystem::remove(study / "calls");
    std::filesystem::remove_all(study / "slurm" / "S" / (array.name + ".1_0.status"));
    EXPECT_EQ(run("export WHEN='" + when + "' SCRIPT=$$\nset -T\ntrap '[ \"$BASH_COMMAND\" != \"" +
                  late + "\" ] || sleep 0.3' DEBUG\nsrun() { shift 4; exec \"$@\"; }\n" +
                  script_text(site, array, setup)),
              code)
        << file_text(scratch_ / "out");
    return file_text(study / "calls");
  };
  const std::string limit =
      " --minutes " + std::to_string(array.need.minutes) + " --limit-key time.minutes ";
  for (const std::string when : {"element run", "alone", "element begin"}) {
    SCOPED_TRACE(when);
    const std::string calls = calls_of(when, 138);
    expect_parts(calls, {"element end --exit-code 138 ", limit + "--signalled --points"});
    EXPECT_FALSE(contains(calls, "doctor")) << "that would not know of the signal\n" << calls;
    EXPECT_EQ(contains(calls, "element run"), when != "element begin") << calls;
  }
  late = R"(run=\$!)";  // then the signal comes before it is known to whom it goes
  expect_parts(calls_of("element run", 138), {"element end --exit-code 138 ", "--signalled"});
  late.clear();
  const auto expect_not_signalled = [&](const std::string& when, int code) {
    expect_parts(calls_of(when, code), {"doctor --post-mortem ", limit + "--points"});
  };
  expect_not_signalled("lost", 71);
  site.extra.clear();  // whoever sent USR1 to the ranks alone, it was not Slurm before the limit
  expect_not_signalled("alone", 138);
}

TEST(Script, AScriptSentByHandNamesItsFilesOnce) {
  ScriptSetup by_hand = setup();
  by_hand.by_hand = "/a b";
  const std::string text = script_text(site_with(""), make_array(shape(1, 2, 1, 0)), by_hand);
  expect_parts(text, {"files='/a b'\n[ -r \"$files/1n2t1c.points\" ] || refuse \"$(hostname) "
                      "does not see $files; write"});
}

TEST(Script, AFolderWithALineBreakIsRefused) {
  ScriptSetup odd = setup();
  odd.folder = "/a\nb";
  expect_error(ErrorKind::usage, {"control character (U+000A)", "--results"},
               [&] { script_text(site_with(""), make_array(shape(1, 1, 1, 0)), odd); });
}

// 0: bash can read it, and shellcheck, where it is installed, has nothing to say.
int check_script(const std::string& text) {
  const std::string script = " <<'END_OF_SCRIPT'\n" + text + "END_OF_SCRIPT\n";
  const std::string shellcheck = "command -v shellcheck > /dev/null || exit 0\nshellcheck -";
  const int unreadable = std::system(("bash -n" + script).c_str());
  return unreadable != 0 ? unreadable : std::system((shellcheck + script).c_str());
}

TEST(Script, EveryProfileThatWeShipMakesScripts) {
  for (const auto& entry :
       std::filesystem::directory_iterator(PACELINE_SOURCE_DIR "/slurm/sites")) {
    const Site site = read_site(entry.path());
    const int count = site.device == "cuda" ? 2 : 0;
    const std::string text = script_text(site, make_array(shape(1, 2, 4, count)), setup());
    EXPECT_EQ(contains(text, "#SBATCH --g"), count > 0) << text;
    EXPECT_FALSE(contains(text, "$HOME")) << "scratch folders are never in $HOME";
    ScriptSetup by_hand = setup();
    by_hand.by_hand = "/a folder";
    EXPECT_EQ(check_script(script_text(site, make_array(shape(1, 2, 4, count)), by_hand)), 0);
    EXPECT_EQ(check_script(collect_script_text(site, setup())), 0);
  }
}

}  // namespace
}  // namespace paceline
