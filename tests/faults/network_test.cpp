// A host that is gone: two network namespaces with a wire between them, which is cut. No packet
// tells of the end, so only the deadline can.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/faults/victim.h"
#include "tests/support/why_not.h"

namespace paceline::faults {
namespace {

constexpr char kTwoHosts[] = PACELINE_SOURCE_DIR "/tests/faults/two_hosts.sh";

std::string quoted(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += "'" + word + "' ";
  return line;
}

TEST(PeerHost, ThatIsGoneIsNoticedWithinTheDeadline) {
  const std::string refused = why_not("unshare -Urn ip link add wire0 type veth peer name wire1");
  if (!refused.empty()) GTEST_SKIP() << "no right to make network namespaces: " << refused;
  Victim run({"unshare", "-Urn", kTwoHosts, quoted(training("ring", Starter::us, deadline(3)))});
  ASSERT_TRUE(run.trains()) << run.errors();
  std::ofstream(run.folder() / "cut");
  const End end = run.wait(60);
  EXPECT_TRUE(end.in_time);
  EXPECT_TRUE(end.code == 71 || end.code == 72) << end.code << end.err;
  EXPECT_TRUE(contains(end.err, "rank 1")) << end.err;
  EXPECT_EQ(run.left(), std::vector<std::string>{});
}

}  // namespace
}  // namespace paceline::faults
