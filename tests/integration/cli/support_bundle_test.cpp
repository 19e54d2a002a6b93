// The bundle of doctor for a support request.
#include "tests/integration/cli/paceline.h"

namespace paceline {
namespace {

class CliBundle : public Cli {};

TEST_F(CliBundle, HoldsWhatHelpsAndNoSecrets) {
  const Ran ran = expect_success(shell(
      "mkdir -p study/slurm/s; printf 'step 3 failed\\nexport MY_API_KEY=hushhush\\n' > "
      "study/slurm/s/a.log\n"
      "echo hushhush > study/notes.bin; ln -s /etc/passwd study/p.log\n"
      "export HF_TOKEN=hushhush SLURM_JWT_TOKEN=hushhush OMPI_MCA_pml=ob1 HOBBY=chess\n"
      "export NCCL_SOCKET_IFNAME=eth0 https_proxy=http://me:hushhush@proxy:3128\n"
      "paceline doctor --bundle b.tar.gz --about study && tar xzf b.tar.gz && cd paceline-support "
      "&& cat "
      "environment.txt about/slurm/s/a.log doctor.txt machine/meminfo.txt && find . -type f | sort "
      "&& ! grep -r "
      "hushhush ."));
  expect_parts(ran.out,
               {"look at it before you send it", "OMPI_MCA_pml=ob1", "NCCL_SOCKET_IFNAME=eth0",
                "SLURM_JWT_TOKEN=[removed]", "step 3 failed", "export MY_API_KEY=[removed]",
                "compiler", "MemTotal", "https_proxy is set", "./doctor.json"});
  expect_no_parts(ran.out, {"HF_TOKEN", "chess", "notes.bin", "p.log"});
}

TEST_F(CliBundle, RefusalsLeaveNothingBehind) {
  shell("echo mine > b.tar.gz");
  expect_refused("doctor --bundle b.tar.gz", 65, {"the file exists already", "b.tar.gz"});
  expect_refused("doctor --bundle no/b.tar.gz", 65, {"No such file", "no/b.tar.gz"});
  expect_refused("doctor --bundle c.tar.gz --about nowhere", 65, {"no such folder", "nowhere"});
  expect_refused("doctor --about study", 64, {"--bundle"});
  EXPECT_EQ(shell("cat b.tar.gz; ls -A").out, "mine\nb.tar.gz\n");
  shell("mkdir bin; ln -s \"$(command -v ls)\" bin/");
  const Ran no_tar = shell("env PATH=bin '" PACELINE_BINARY "' doctor --bundle c.tar.gz; ls -A");
  expect_parts(no_tar.err, {"is tar in PATH"});
  EXPECT_EQ(no_tar.out, "b.tar.gz\nbin\n");
}

}  // namespace
}  // namespace paceline
