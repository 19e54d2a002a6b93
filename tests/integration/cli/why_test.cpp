// `paceline why` on a stand-in for PyTorch, whose work is sleep.
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/integration/cli/why_program.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// A step is 2 ms of work, 4 ms of waiting and a sum of 0.5 ms.
TEST_F(WhyOfProgram, NamesTheLoaderTriesWorkersAndLeavesTheFolderAsItIs) {
  const auto before = files();
  const Json verdict = this->verdict("--out study", "--wait 0.004 --write own.txt");
  EXPECT_EQ(files(), before);
  EXPECT_EQ(verdict.at("first_cause"), "data") << verdict.dump(2);
  EXPECT_GT(points(verdict, "data"), 25);
  EXPECT_GT(verdict.at("efficiency").get<double>(), 0.7);
  EXPECT_GT(points(verdict, "workers", "tries"), 10);  // two workers halve the wait
  // The study is one as any other: one replica alone is the base.
  const Ran report = succeed("report study --json");
  EXPECT_NE(report.out.find("speed_up"), std::string::npos);
  expect_parts(succeed("explain study").out, {"efficiency"});
  succeed("archive study --out study.tar.gz");
}

TEST_F(WhyOfProgram, NamesTheLateRank) {
  // Of steps that take turns, which other work disturbs alike.
  const Json verdict =
      this->verdict("--out study", "--late 0.003 --transfer 0.0001 --steps 5000 --epoch 5000");
  EXPECT_EQ(verdict.at("first_cause"), "late") << verdict.dump(2);
  EXPECT_GT(points(verdict, "late"), 25);
  EXPECT_LT(verdict.at("efficiency").get<double>(), 0.7);
  const Json& high = verdict.at("efficiency_high");  // known after four rounds; wide if it is busy
  EXPECT_TRUE(high.is_null() || high.get<double>() < 1) << high;
  // One alone took turns, and has a run of its own as the base of the study.
  EXPECT_NE(succeed("report study --json").out.find("speed_up"), std::string::npos);
  EXPECT_EQ(shell("ls -d study/runs/gpus=1*.1 | wc -l").out, "1\n");
}

TEST_F(WhyOfProgram, RefusesWritesElsewhereAndNamesThem) {
  const std::string outside = folder().string() + ".notes.txt";  // beside it
  std::ofstream(outside) << "mine\n";
  const auto before = files();
  expect_no_measure("--write " + outside, 65,
                    {"writes outside of its folder", "notes.txt", "--writes-ok"});
  EXPECT_EQ(file_text(outside), "mine\n");
  // By another program: the kernel refuses it, where it can.
  if (syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) >= 1) {
    expect_no_measure("--steps 20 --shell 'echo x >> " + outside + "'", 65,
                      {"ended after 20 steps"});
    EXPECT_EQ(file_text(outside), "mine\n");
    EXPECT_EQ(why("--writes-ok", "--steps 20 --write " + outside).code, 65);
    EXPECT_EQ(file_text(outside), "mine\nwritten\nwritten\n");
  }
  EXPECT_EQ(files(), before);
  fs::remove(outside);
}

// As Slurm's tasks, which a daemon starts: they inherit nothing of the launcher.
TEST_F(WhyOfProgram, HoldsRanksThatADaemonStarts) {
  if (syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) < 1) {
    GTEST_SKIP() << "this kernel has no Landlock";
  }
  const std::string outside = folder().string() + ".notes.txt";  // beside it
  std::ofstream(outside) << "mine\n";
  std::ofstream(folder() / "daemon.py") << R"(import subprocess, sys
from multiprocessing.connection import Listener
with Listener(sys.argv[1]) as served:
    while True:
        with served.accept() as task:
            task.send(subprocess.run(**task.recv()).returncode)
)";
  std::ofstream(folder() / "srun.py") << R"(import os, sys
from multiprocessing.connection import Client
with Client(sys.argv[1]) as task:
    words = [sys.executable] + sys.argv[2:]
    task.send({"args": words, "env": dict(os.environ), "cwd": os.getcwd()})
    sys.exit(task.recv())
)";
  const std::string asked = folder().string() + ".asked";
  const Ran ran = shell("python3 daemon.py " + asked + " & trap \"kill $!\" EXIT; until test -S " +
                        asked + "; do sleep 0.1; done; PYTHONPATH=" + kPrograms.string() +
                        " paceline why -- python3 srun.py " + asked +
                        " launch.py train.py --steps 20 --shell 'echo x >> " + outside + "'");
  fs::remove(asked);
  expect_parts(ran.err, {"ended after 20 steps"});
  EXPECT_EQ(file_text(outside), "mine\n");
  fs::remove(outside);
}

// What starts a container writes and mounts elsewhere, and hands over no more than variables.
TEST_F(WhyOfProgram, HoldsPythonInAContainer) {
  if (syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) < 1) {
    GTEST_SKIP() << "this kernel has no Landlock";
  }
  const std::string outside = folder().string() + ".notes.txt", session = outside + ".session";
  std::ofstream(outside) << "mine\n";
  std::ofstream(folder() / "apptainer") << "echo x > " + session + " && shift 2 && exec \"$@\"\n";
  fs::permissions(folder() / "apptainer", fs::perms::owner_all);
  const Ran ran = shell("PYTHONPATH=" + kPrograms.string() +
                        " paceline why -- ./apptainer exec image.sif python3 launch.py train.py "
                        "--steps 20 --shell 'echo x >> " +
                        outside + "'");
  expect_parts(ran.err, {"ended after 20 steps"});
  EXPECT_EQ(file_text(outside), "mine\n");
  EXPECT_TRUE(fs::exists(session));
  fs::remove(session);
  fs::remove(outside);
}

// torchrun takes seconds for its own import of torch; what it starts is known after the first run.
TEST_F(WhyOfProgram, StartsTheRanksOfTorchrunWithoutIt) {
  const std::string agents = "/dev/shm" + folder().string().substr(folder().string().rfind('/'));
  std::ofstream(folder() / "torchrun") << "import os, subprocess, sys, torch\n"
                                          "open('" +
                                              agents + R"(', 'a').write('x')
ranks = [subprocess.Popen([sys.executable, *sys.argv[1:]],
                          env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2",
                                   GROUP_WORLD_SIZE="1", OMP_NUM_THREADS="1"))
         for rank in range(2)]
sys.exit(max(rank.wait() for rank in ranks))
)";
  // What the program changes before it imports torch is not of torchrun.
  std::ofstream(folder() / "early.py") << R"(import os, runpy, sys
os.environ["RANK_OF"] = os.environ["RANK_OF"].split(",")[int(os.environ["RANK"])]
sys.argv[0] = "train.py"
runpy.run_path("train.py", run_name="__main__")
)";
  std::ofstream(folder() / "other.py") << "import torch\n";
  const auto measure = [&](const std::string& command) {
    fs::remove(agents);
    const Ran ran = shell("RANK_OF=0,1 PYTHONPATH=" + kPrograms.string() +
                          " paceline why --json --minutes 0.1 -- " + command);
    EXPECT_TRUE(ran.code == 0 || ran.code == 2) << ran.err;
    EXPECT_FALSE(parse_json(ran.out).at("efficiency").is_null());
    return file_text(agents);
  };
  EXPECT_EQ(measure("python3 torchrun early.py --steps 134"), "x");
  // Ranks of one are not those of the other.
  EXPECT_GT(
      measure("sh -c 'python3 torchrun train.py --steps 134; python3 torchrun other.py'").size(),
      3U);
  fs::remove(agents);
  // One that fails ends the others.
  const std::string found = shell("python3 -c 'import sys; print(sys.executable, end=\"\")'").out;
  const auto code_of = [&](const std::string& first, const std::string& second) {
    const std::string agent = "[[\"" + found + R"(", "torchrun"], ["sh", "-c", ")";
    std::ofstream(folder() / "launch0.json") << agent << first << R"("], {}])";
    std::ofstream(folder() / "launch1.json") << agent << second << R"("], {}])";
    const Json settings = {{"replicas", "2"}, {"launches", 2}, {"launched", folder().string()}};
    return shell("PYTHONPATH=" + kHook.string() + " PACELINE_WHY='" + json_text(settings) +
                 "' timeout 60 " + found + " torchrun")
        .code;
  };
  EXPECT_EQ(code_of("exit 0", "exit 0"), 0);
  EXPECT_EQ(code_of("sleep 100", "exit 3"), 3);
}

// A program that starts in a folder of its project, reads above that and writes there, too; not
// what is there.
TEST_F(WhyOfProgram, PathsAboveTheFolderLeadToWhatIsThere) {
  fs::create_directories(folder() / "runs" / "first");
  const auto before = files();
  const std::string reads =
      "test $(cat ../../notes.txt) = mine && echo x > ../made.$RANK && test -s ../made.$RANK";
  const Ran ran = shell("cd runs/first; PYTHONPATH=" + kPrograms.string() +
                        " paceline why -- python3 ../../launch.py ../../train.py --steps 20 "
                        "--shell '" +
                        reads + " || kill $PPID'");
  expect_parts(ran.err, {"the program ended after 20 steps"});
  const Ran writes = shell("cd runs/first; PYTHONPATH=" + kPrograms.string() +
                           " paceline why -- python3 ../../launch.py ../../train.py --steps 20 "
                           "--write ../../notes.txt");
  expect_parts(writes.err, {"writes outside of its folder", (folder() / "notes.txt").string()});
  EXPECT_EQ(files(), before);
}

// Paths of the folder among the arguments, and what a run before left in TMPDIR.
TEST_F(WhyOfProgram, ArgumentsThatNameTheFolderLeadIntoItsCopy) {
  fs::create_directories(folder() / "conda" / "conda-meta");  // is linked
  const auto before = files();
  const std::string fresh =
      "test ! -e $TMPDIR/left.$RANK && touch $TMPDIR/left.$RANK && test $OUTPUT_DIR = $PWD/out && "
      "test -L conda && test -n \"$MPLCONFIGDIR\" && mkdir -p $MPLCONFIGDIR";
  const Ran ran = shell("TMPDIR=/dev/shm OUTPUT_DIR=$PWD/out PYTHONPATH=" + kPrograms.string() +
                        " paceline why --json --minutes 0.1 -- python3 $PWD/launch.py $PWD/train.py"
                        " --steps 134 --checks-size --write=$PWD/own.txt --shell '" +
                        fresh + " || kill $PPID'");
  EXPECT_TRUE(ran.code == 0 || ran.code == 2) << ran.err;
  EXPECT_FALSE(parse_json(ran.out).at("efficiency").is_null());
  const bool is_other = shell("stat -c %d .").out != shell("stat -c %d /dev/shm").out;
  EXPECT_EQ(ran.out.find("on another storage") != std::string::npos, is_other);
  EXPECT_EQ(files(), before);
}

TEST_F(WhyOfProgram, WordsOfTheProgramStayAsTheyAre) {
  std::ofstream(folder() / "words.py") << "import sys\nsys.exit(repr(sys.argv[1:]))\n";
  expect_parts(
      shell("paceline why -- python3 words.py '[64,64]' '[]' '' --checkpoint-every 17 steps").err,
      {"['[64,64]', '[]', '', '--checkpoint-every', '17', 'steps']"});
}

// Two ranks on one CPU, as a program may be started.
TEST_F(WhyOfProgram, RanksMayBeMoreThanCpus) {
  const Ran ran =
      shell("taskset -pc $(taskset -pc $$ | sed 's/.*[ ,-]//') $$ > /dev/null; PYTHONPATH=" +
            kPrograms.string() +
            " paceline why --json --minutes 0.1 -- python3 launch.py train.py --steps 134");
  EXPECT_TRUE(ran.code == 0 || ran.code == 2) << ran.err;
  EXPECT_EQ(parse_json(ran.out).at("replicas"), 2);
}

TEST_F(WhyOfProgram, SaysWhyTheProgramFailsLater) {
  const std::string ran_before = folder().string() + ".ran.$RANK";  // beside it
  const Ran ran = why("--writes-ok", "--steps 134 --shell 'test ! -e " + ran_before + " && touch " +
                                         ran_before + " || kill $PPID'");
  shell("rm " + folder().string() + ".ran.*");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.out, "");
  expect_parts(ran.err, {"the program fails as it is"});
}

TEST_F(WhyOfProgram, SaysWhatItCannotMeasure) {
  expect_no_measure("--irregular", 65, {"no constant ratio"});
  expect_no_measure("--no-step --steps 60", 65, {"no process with a rank stepped an optimizer"});
  expect_no_measure("--steps 20", 65, {"ended after 20 steps", "54 are needed"});
  expect_no_measure("--unknown", 1, {"fails as it is", "exit code 2"});
  expect_refused("why -- no-such-program", 65, {"there is no program no-such-program"});
  expect_refused("why", 64, {"command"});
  std::ofstream(folder() / "big");
  fs::resize_file(folder() / "big", 5'000'000'000);  // sparse
  expect_refused("why -- true", 65, {"more than 4.0 GB", "largest entry is big", "--link big"});
  expect_refused("why --out . -- python3 train.py", 64, {"not an empty folder"});
  expect_refused("why --out train.py -- python3 train.py", 64, {"not an empty folder"});
  EXPECT_TRUE(fs::exists(folder() / "train.py"));
  fs::create_directory(folder() / "mine");
  expect_refused("why --out mine -- no-such-program", 65, {"there is no program"});
  EXPECT_TRUE(fs::exists(folder() / "mine"));
  expect_refused("why --out 'a\"b' -- python3 train.py", 64, {"a quote or backslash"});
  const Ran nested = shell("PACELINE_WHY={} paceline why -- python3 train.py");
  EXPECT_EQ(nested.code, 64);
  expect_parts(nested.err, {"cannot be made by itself", "call paceline why again"});
  expect_refused("why --minutes nan -- python3 train.py", 64, {"is nan, must be above 0"});
  expect_refused("why --link elsewhere -- python3 train.py", 64, {"--link elsewhere"});
}

TEST_F(WhyOfProgram, HookCountsStepsOfAccumulationAndIgnoresChildren) {
  const Json run = hooked("{}", "--accumulate 2 --child --steps 70");
  EXPECT_EQ(run.at("ratio"), 2);
  EXPECT_EQ(run.at("steps"), 26);
  EXPECT_EQ(run.at("samples"), 26 * 2 * 2 * 16);
}

TEST_F(WhyOfProgram, HookTakesAwayWhatItIsAskedTo) {
  const Json data = hooked(R"({"take": ["data"]})", "--wait 0.002");
  EXPECT_EQ(data.at("batches"), 32);
  EXPECT_EQ(data.at("repeated"), 28);
  EXPECT_LT(data.at("wait").get<double>(), 0.02);
  EXPECT_TRUE(hooked(R"({"take": ["data"]})", "--in-place").at("changes_batches"));
  EXPECT_GT(hooked(R"({"take": ["data"]})", "--epoch 20 --evaluate").at("repeated"), 40);
  const Json dropped = hooked(R"({"take": ["data", "output"]})", "--wait 0.002");
  EXPECT_GE(dropped.at("dropped").get<int>(), 20);
  EXPECT_LT(dropped.at("wait").get<double>(), 0.02);
  EXPECT_EQ(hooked(R"({"take": ["data", "output"]})", "--epoch 20").at("repeated"), 40);
  const Json first = hooked(R"({"take": ["sums"]})",
                            "--late 0.01 --late-rank 0 --save weights.txt --save_seconds 0.01");
  EXPECT_NEAR(first.at("rank_0_seconds").get<double>(), 26 * 0.01, 26 * 0.002);
  const Json sums = hooked(R"({"take": ["sums"]})", "--own-hook --transfer 0.01 --call");
  EXPECT_EQ(sums.at("own_calls"), 0);
  EXPECT_LT(sums.at("seconds").get<double>(), 26 * 0.008);
  EXPECT_EQ(hooked(R"({"take": ["sums"]})", "--nested").at("steps"), 26);
  const Json unused = hooked(R"({"take": ["sums"]})", "--unused --transfer 0.01");
  EXPECT_LT(unused.at("seconds").get<double>(), 26 * 0.008);
  const Json gathers = hooked(R"({"take": ["own"]})", "--gather --transfer 0.01");
  EXPECT_EQ(gathers.at("own_calls"), 0);
  EXPECT_LT(gathers.at("seconds").get<double>(), 26 * 0.018);  // 22 ms with them
  EXPECT_EQ(hooked(R"({"take": ["own"]})", "--gather-tensor").at("own_calls"), 0);
  EXPECT_EQ(hooked(R"({"take": ["own"]})", "--broadcast").at("staying"), Json({"broadcast"}));
  setenv("STAND_IN_CUDA", "1", 1);
  EXPECT_GT(hooked("{}", "--item").at("sync_seconds").get<double>(), 26 * 0.01);
  const Json syncs = hooked(R"({"take": ["syncs"]})", "--item");
  EXPECT_EQ(syncs.at("sync_seconds"), 0);
  EXPECT_LT(syncs.at("seconds").get<double>(), 26 * 0.008);
  unsetenv("STAND_IN_CUDA");
  const Json calls = hooked("{}", "--transfer 0.01 --call");
  EXPECT_EQ(calls.at("own_calls"), 26);
  EXPECT_EQ(hooked(R"({"replicas": "1"})", "").at("ranks"), 1);
}

// Costs of a process whose steps are with each of them and without, in turns.
TEST_F(WhyOfProgram, HookTakesTurns) {
  const std::string turns =
      R"({"turns": {"programs": [["as-it-is", []], ["no-sums", ["sums"]],
          ["data-at-hand", ["data"]], ["no-saves", ["saves"]], ["no-calls", ["own"]]],
          "turn": 8, "settle": 3, "rounds": 3}})";
  const Json bound = hooked(R"({"threads": 1, "turns": {"programs": [["as-it-is", []],
      ["threads", ["threads"]]], "turn": 8, "settle": 3, "rounds": 3}})",
                            "--epoch 1000 --threads 4 --worker");
  EXPECT_GT(bound.at("seconds").get<double>(), 15 * 0.008);
  EXPECT_LT(bound.at("turns").at(0).at("seconds").get<double>(), 15 * 0.008);
  // Its loader's workers are bound with it, and freed.
  EXPECT_NE(file_text(folder() / "cpus_of_worker"), "[[0]]");
  expect_parts(file_text(folder() / "cpus_of_worker"), {"[0]"});
  const std::string costs =
      "--wait 0.008 --transfer 0.008 --save weights.txt --save_seconds 0.008 --call ";
  EXPECT_EQ(hooked("{}", "--unused").at("finds_unused"), true);
  for (const char* sums : {"--epoch 1000", "--epoch 1000 --own-hook"}) {
    SCOPED_TRACE(sums);
    const Json run = hooked(turns, costs + sums);
    EXPECT_EQ(run.at("program"), "as-it-is");
    EXPECT_EQ(run.at("steps"), 15);
    EXPECT_EQ(run.at("samples"), 15 * 2 * 16);
    EXPECT_EQ(run.at("own_calls"), 15);
    ASSERT_EQ(run.at("turns").size(), 4U);
    ASSERT_EQ(run.at("parts").size(), 3U);  // each turn by itself
    double seconds = 0;
    for (const Json& part : run.at("parts")) {
      EXPECT_EQ(part.at("steps"), 5);
      EXPECT_EQ(part.at("samples"), 5 * 2 * 16);
      seconds += part.at("seconds").get<double>();
    }
    EXPECT_NEAR(seconds, run.at("seconds").get<double>(), 0.02);
    for (const Json& each : run.at("turns")) {
      EXPECT_EQ(each.at("steps"), 15);
      EXPECT_EQ(each.at("parts").size(), 3U);
      EXPECT_LT(each.at("seconds").get<double>(), 0.95 * run.at("seconds").get<double>())
          << each.at("program");
    }
  }
  // A step in which an epoch ends is in none of them, and each has its share of the three. Recorded
  // batches need no start of a loader.
  const Json epochs = hooked(turns, "--epoch 46 --between 0.3 --start 0.2");
  int steps = epochs.at("steps");
  for (const Json& each : epochs.at("turns")) {
    steps += each.at("steps").get<int>();
    EXPECT_EQ(each.at("elements"), each.at("samples").get<int>() * 5);
    const double between = each.at("program") == "data-at-hand" ? 0.3 : 0.5;
    EXPECT_NEAR(each.at("epoch_seconds").get<double>(), 15 * 3 * between / 120, 0.02);
    EXPECT_NEAR(each.at("seconds").get<double>() - each.at("epoch_seconds").get<double>(), 0.04,
                0.03);
  }
  EXPECT_EQ(steps, 5 * 15 - 1);
  // An evaluation within an epoch ends, in any turn.
  const Json validated = hooked(turns, "--epoch 1000 --validate");
  ASSERT_EQ(validated.at("turns").size(), 4U);
  for (const Json& each : validated.at("turns")) EXPECT_EQ(each.at("steps"), 15);
  EXPECT_EQ(hooked(R"({"replicas": "1", )" + turns.substr(1), "").at("steps"), 26);
}

// The other rank waits, and then makes as many steps.
TEST_F(WhyOfProgram, HookLeavesRank0AloneForATurn) {
  const std::string turns = R"({"turns": {"programs": [["as-it-is", []], ["no-sums", ["sums"]],
      ["alone", ["sums", "others"]]], "turn": 8, "settle": 3, "rounds": 3,
      "alone_epochs": 0.01}})";
  const Json run = hooked(turns, "--epoch 1000 --shares");
  ASSERT_EQ(run.at("turns").size(), 2U);
  const Json &no_sums = run.at("turns").at(0), &alone = run.at("turns").at(1);
  EXPECT_EQ(no_sums.at("ranks"), 2);
  EXPECT_EQ(alone.at("ranks"), 1);
  EXPECT_EQ(alone.at("steps"), 15);
  EXPECT_EQ(alone.at("samples"), 15 * 16);
  EXPECT_NEAR(alone.at("epoch_seconds").get<double>(), 0.15, 1e-9);
  EXPECT_EQ(no_sums.at("epoch_seconds"), 0);
  EXPECT_LT(alone.at("seconds").get<double>() - 0.15, 0.8 * no_sums.at("seconds").get<double>());
  EXPECT_EQ(run.at("steps_in_all"), 34 + 3 * 3 * 8);
  // By itself it saw no epoch end, so it has half as many of them as two have.
  Json unseen = parse_json(turns);
  unseen["turns"]["alone_epochs"] = 0;
  const Json epochs = hooked(json_text(unseen), "--epoch 46 --between 0.3").at("turns");
  const auto of_step = [&](std::size_t at) {
    return epochs.at(at).at("epoch_seconds").get<double>() / epochs.at(at).at("steps").get<int>();
  };
  EXPECT_GT(of_step(0), 0.005);
  EXPECT_NEAR(of_step(1), of_step(0) / 2, 0.001);
  // The program may end in any turn.
  for (const int steps : {38, 46, 54}) {
    EXPECT_EQ(hooked(turns, "--epoch 1000 --steps " + std::to_string(steps)).at("steps_in_all"),
              steps);
  }
  // Where it waits for the other, it is not alone.
  const Json waits = hooked(turns, "--epoch 1000 --broadcast");
  ASSERT_EQ(waits.at("turns").size(), 1U);
  EXPECT_EQ(waits.at("turns").at(0).at("program"), "no-sums");
  EXPECT_EQ(waits.at("steps_in_all"), 34 + 3 * 3 * 8);
}

// DeepSpeed and its like, sharded parameters, Lightning's closures, a scaler that skips steps.
TEST_F(WhyOfProgram, HookKnowsWhatOtherFrameworksDo) {
  const Json other = hooked("{}", "--engine deepspeed");
  EXPECT_EQ(other.at("why_no_sums"),
            "it does not build DistributedDataParallel (deepspeed is loaded)");
  EXPECT_EQ(other.at("ranks"), 2);
  EXPECT_EQ(other.at("steps"), 26);
  EXPECT_EQ(other.at("samples"), 0);  // steps are compared
  EXPECT_EQ(hooked("{}", "--sharded").at("why_no_sums"),
            "its parameters are sharded (FSDP or DTensor)");
  const Json closure = hooked("{}", "--closure");
  EXPECT_EQ(closure.at("ratio"), 1);
  EXPECT_EQ(closure.at("samples"), 26 * 2 * 16);
  const Json skipped = hooked("{}", "--skip 40 --steps 80");
  EXPECT_EQ(skipped.at("ratio"), 1);
  EXPECT_EQ(skipped.at("steps"), 26);
  EXPECT_EQ(hooked("{}", "--skip 3 --steps 120").at("ratio"), 0);
}

// Launchers that set other variables than torchrun's.
TEST_F(WhyOfProgram, HookKnowsRanksOfMpirunAndSrun) {
  const std::string with_slurm =
      "sh -c 'for i in 0 1; do SLURM_STEP_ID=0 SLURM_PROCID=$i SLURM_NTASKS=2 python3 \"$@\" & "
      "done; wait' sh";
  std::vector<std::string> launchers = {with_slurm};
  if (shell("mpirun --version").out.starts_with("mpirun (Open MPI)")) {
    launchers.push_back("mpirun --allow-run-as-root --oversubscribe -np 2 python3");
  }
  for (const std::string& launcher : launchers) {
    SCOPED_TRACE(launcher);
    EXPECT_EQ(hooked("{}", "", launcher).at("ranks"), 2);
    const Json alone = hooked(R"({"replicas": "1"})", "", launcher);
    EXPECT_EQ(alone.at("ranks"), 1);
    EXPECT_EQ(alone.at("steps"), 26);
  }
}

// As torch.multiprocessing.spawn starts them: no variable says which rank one is.
TEST_F(WhyOfProgram, HookKnowsRanksThatTheProgramStarts) {
  EXPECT_EQ(hooked("{}", "--spawn --fails-after", "python3").at("ranks"), 2);
  const Json alone = hooked(R"({"replicas": "1"})", "--spawn --waits-after", "python3");
  EXPECT_EQ(alone.at("ranks"), 1);
  EXPECT_EQ(alone.at("steps"), 26);
  EXPECT_EQ(hooked("{}", "--spawn --engine deepspeed", "python3").at("ranks"), 2);
  // Of a batch script: no variable of a rank.
  const Json batch =
      hooked("{}", "--spawn --fails-after",
             "env SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_NTASKS_PER_NODE=1 SLURM_LOCALID=0 python3");
  EXPECT_EQ(batch.at("local_world"), 2);
}

// More data of rank 0 are no work that only it does.
TEST_F(WhyOfProgram, HookCountsMoreDataOfRank0AsLateness) {
  const char* settings = R"({"take": ["sums"]})";
  const Json own = hooked(settings, "--late 0.01 --late-rank 0");
  EXPECT_GT(own.at("rank_0_seconds"), 26 * 0.009);
  const Json more = hooked(settings, "--late 0.01 --late-rank 0 --larger");
  EXPECT_EQ(more.at("rank_0_seconds"), 0);
  EXPECT_EQ(more.at("first_seconds"), 0);
  EXPECT_EQ(more.at("slowest_rank"), 0);
}

// `why` warns of it.
TEST_F(WhyOfProgram, HookSaysThatAProcessIsNotHeld) {
  const auto hold = [&](const std::string& words) {
    fs::remove(folder() / "unheld");
    const Json settings = {{"out", folder().string()},
                           {"landlock", std::uint64_t{1} << 60},
                           {"writable", {folder().string()}},
                           {"runtimes", {"apptainer"}}};
    shell("PYTHONPATH=" + kHook.string() + " PACELINE_WHY='" + json_text(settings) +
          "' python3 -c pass " + words);
    return fs::exists(folder() / "unheld");
  };
  EXPECT_TRUE(hold(""));
  EXPECT_FALSE(hold("apptainer exec"));
}

TEST_F(WhyOfProgram, HookCountsForwardsOfTheOptimizersModelAndStepsOfRanksWithoutData) {
  const Json critic = hooked("{}", "--critic");
  EXPECT_EQ(critic.at("ratio"), 1);
  EXPECT_EQ(critic.at("samples"), 26 * 2 * 16);
  EXPECT_EQ(hooked("{}", "--images").at("samples"), 26 * 2 * 16);
  EXPECT_EQ(hooked("{}", "--replaced").at("steps"), 26);
  EXPECT_EQ(hooked("{}", "--mpi --unsized").at("steps"), 26);
  EXPECT_TRUE(fs::exists(folder() / "finalized"));
  const Json uneven = hooked("{}", "--uneven --epoch 20");
  EXPECT_EQ(uneven.at("steps_in_all"), 60);
  EXPECT_EQ(uneven.at("staying"), Json::array({"join"}));
}

TEST_F(WhyOfProgram, HookCountsSamplesOfOneAloneThatBuildsNoDdp) {
  const Json alone = hooked(R"({"replicas": "1"})", "--plain-alone");
  EXPECT_EQ(alone.at("samples"), 26 * 16);
  EXPECT_EQ(alone.at("batch"), 16);
}

// The hook's own references are no part of what a program copies or saves. The loader is built anew
// each epoch, and 20 of its batches are 20 of all; 60 steps are 3 epochs, one of which begins in
// the measured steps.
TEST_F(WhyOfProgram, HookKnowsEpochsAndLeavesCopiesAlone) {
  const Json data = hooked(R"({"take": ["data"]})", "--epoch 20 --copy --between 0.05");
  EXPECT_EQ(data.at("batches"), 20);
  EXPECT_EQ(data.at("repeated"), 40);
  EXPECT_NEAR(data.at("epoch_seconds").get<double>(), 0.05, 0.02);
  EXPECT_EQ(hooked(R"({"take": ["data"]})", "--epoch 20 --shards").at("batches"), 20);
  const std::string stream = "--stream --epoch 50 --between 0.05";
  const Json lengths = hooked("{}", stream).at("lengths");
  const Json again = hooked(json_text({{"take", {"data"}}, {"lengths", lengths}}), stream);
  EXPECT_NEAR(again.at("epoch_seconds").get<double>(), 0.05, 0.02);
  const Json own = hooked("{}", "--own-hook");
  EXPECT_EQ(own.at("own_calls"), 0);  // DDP's are not the program's
  EXPECT_EQ(own.at("epoch_seconds"), 0);
}

// Measured before, so that nothing of it is in the times.
TEST_F(WhyOfProgram, HookProfilesStepsAfterTheMeasuredOnes) {
  const Json run = hooked(R"({"profile": 5})", "");
  EXPECT_EQ(run.at("steps"), 26);
  EXPECT_EQ(run.at("steps_in_all"), 60);
  expect_parts(
      succeed("import kineto out/trace_rank0.json out/trace_rank1.json --study traced").out,
      {"1 record imported", "rank 1:"});
}

// EasyBuild has one of its own.
TEST_F(WhyOfProgram, HookPassesOnToAnotherSitecustomize) {
  fs::create_directory(folder() / "site");
  std::ofstream(folder() / "site" / "sitecustomize.py")
      << "import os\nos.environ['SITE_SEEN'] = 'yes'\n";
  std::ofstream(folder() / "seen.py")
      << "import os, sys\nprint(os.environ.get('SITE_SEEN'), 'torch' in sys.modules)\n";
  EXPECT_EQ(shell("PYTHONPATH=" + kHook.string() + ":site python3 seen.py").out, "yes False\n");
}

}  // namespace
}  // namespace paceline
