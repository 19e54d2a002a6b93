// OpenMP variables by which a run would lose CPUs: with them set, all is as without them.
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/core/json.h"
#include "engine/core/text.h"
#include "results/names.h"
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

constexpr char kShortRun[] = "train mnist-mlp --steps 20 --input synthetic --evaluate none ";
constexpr char kRanks[] = "--gpus 2 --cpus-per-replica 1 --oversubscribe ";

constexpr const char* kAssignments[] = {"OMP_PROC_BIND=true",  "OMP_PLACES=cores",
                                        "GOMP_CPU_AFFINITY=0", "KMP_AFFINITY=compact",
                                        "OMP_THREAD_LIMIT=1",  "OMP_MAX_ACTIVE_LEVELS=0"};

class Cpus : public Cli {
 protected:
  // The usable CPUs that doctor sees under the launcher, without and with each of the variables.
  std::set<std::string> usable_under(const std::string& launcher) const {
    std::ofstream script(folder() / "each.sh");
    script << "'" PACELINE_BINARY "' doctor\n";
    for (const char* assignment : kAssignments) {
      script << assignment << " '" PACELINE_BINARY "' doctor\n";
    }
    script.close();
    const Ran ran = shell(launcher + " sh each.sh");
    std::set<std::string> usable;
    std::size_t doctors = 0;
    for (const std::string& line : split(ran.out, '\n')) {
      if (!contains(line, "usable CPUs")) continue;
      ++doctors;
      usable.insert(line);
    }
    EXPECT_EQ(doctors, 1 + std::size(kAssignments)) << ran.out << ran.err;
    return usable;
  }

  Json make_record(const std::string& start, const std::string& options) const {
    const Ran ran = shell(start + " '" PACELINE_BINARY "' " + kShortRun + options + "--json");
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.err.find("set aside"), ran.err.rfind("set aside")) << "once: " << ran.err;
    return Json::parse(ran.out, nullptr, false);
  }
};

class CpusWith : public Cpus, public ::testing::WithParamInterface<const char*> {
 protected:
  const std::string assignment_ = GetParam();
  const std::string note_ =
      assignment_.substr(0, assignment_.find('=')) + " set aside: Paceline binds its own threads";
};

INSTANTIATE_TEST_SUITE_P(Each, CpusWith, ::testing::ValuesIn(kAssignments));

TEST_P(CpusWith, DoctorNamesIt) {
  EXPECT_TRUE(contains(shell("COLUMNS=300 " + assignment_ + " paceline doctor").out, note_));
}

TEST_P(CpusWith, AStudyHasTheSamePoints) {
  const std::string plan = "paceline sweep '" PACELINE_SOURCE_DIR "/sweeps/quick.json' --dry-run";
  const Ran with = shell(assignment_ + " " + plan), without = shell(plan);
  ASSERT_EQ(without.code, 0) << without.err;
  EXPECT_EQ(with.out, without.out);
  EXPECT_TRUE(contains(with.err, note_)) << with.err;
  EXPECT_FALSE(contains(without.err, "set aside")) << without.err;
}

TEST_P(CpusWith, ARunHasAllCpusAndTheSameBits) {
  const Json with = make_record(assignment_, ""), without = make_record("", "");
  EXPECT_EQ(with["provenance"]["affinity"], without["provenance"]["affinity"]);
  EXPECT_EQ(with["quality"]["parameter_checksum"], without["quality"]["parameter_checksum"]);
}

TEST_P(CpusWith, AUsersProgramHasTheVariable) {
  const std::string name = assignment_.substr(0, assignment_.find('='));
  const std::string value = assignment_.substr(name.size() + 1);
  std::ofstream(folder() / "s.json")
      << R"j({"name": "s", "workload": "command", "processes": "replica",
    "command": ["sh", "-c", "test \"$)j"
      << name << R"j(\" = )j" << value << R"j( && echo rate 7"],
    "results": {"samples_per_second": {"line": "rate ([0-9]+)"}},
    "fixed": {"gpus": 1, "cpus_per_task": 1}})j";
  const Ran ran = shell(assignment_ + " paceline sweep s.json --results r --no-report");
  EXPECT_EQ(ran.code, 0) << ran.err;
}

// The element of a job array becomes its run.
TEST_P(CpusWith, AnElementsRunHasTheVariable) {
  std::ofstream(folder() / "points")
      << R"(["train","mnist-mlp","--gpus=1","--backend=self","--device=cpu","--steps=2",)"
         R"("--input=synthetic","--evaluate=none"])";
  const Ran ran = shell(assignment_ + " paceline element run --points points --index 0");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.err, note_)) << ran.err;
}

TEST_F(Cpus, DoctorSeesTheWholeMask) {
  EXPECT_EQ(usable_under("").size(), 1U);
}

// A rank's mask is what mpirun gave it.
TEST_F(Cpus, UnderMpirunTheBindingHolds) {
  if (!find_name("backend", "mpi").built) GTEST_SKIP() << "this build has no MPI";
  const std::string mpirun =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 60 mpirun -np 1 "
      "--bind-to ";
  const std::set<std::string> bound = usable_under(mpirun + "core"),
                              free = usable_under(mpirun + "none");
  EXPECT_EQ(bound.size(), 1U);
  EXPECT_EQ(free.size(), 1U);
  EXPECT_EQ(free, usable_under(""));
}

TEST_F(Cpus, RanksHaveTheirOwn) {
  for (const std::string backend : {"mirrored", "mpi"}) {
    if (!find_name("backend", backend).built) continue;
    SCOPED_TRACE(backend);
    const std::string options = kRanks + ("--backend " + backend + " ");
    EXPECT_EQ(make_record("OMP_PROC_BIND=true OMP_PLACES=cores", options)["provenance"]["affinity"],
              make_record("", options)["provenance"]["affinity"]);
  }
}

TEST_F(Cpus, SeveralVariablesAreOneSentence) {
  const Ran ran = shell("COLUMNS=300 OMP_PLACES=cores OMP_PROC_BIND=close paceline doctor");
  EXPECT_TRUE(contains(ran.out, "OMP_PROC_BIND, OMP_PLACES set aside: ")) << ran.out;
}

}  // namespace
}  // namespace paceline
