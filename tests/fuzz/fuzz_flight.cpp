// A replica's flight ring, from a folder that others can write to: the post-mortem comes to an end,
// in one line, whatever the bytes are.
#include <cstdlib>

#include "engine/failure/verdict.h"
#include "tests/fuzz/parts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static paceline::FuzzFolder folder;
  const std::string_view ring(reinterpret_cast<const char*>(data), size);
  folder.write("rank-0.flight", ring);
  folder.write("rank-1.flight", ring);
  paceline::write_status(folder.path(), {0, "n", 1, paceline::RankState::failed, 72,
                                         "rank 0: rank 1 did not come", 4e9, "a", 2});
  const paceline::RunArtifacts artifacts = paceline::remains_of_latest(folder.path());
  const paceline::RunVerdict verdict = paceline::post_mortem(folder.path(), artifacts);
  if (verdict.line.find('\n') != std::string::npos) std::abort();
  for (const paceline::Flight& flight : paceline::read_flights(folder.path())) {
    if (flight.recent.size() > paceline::kFlightEntries) std::abort();
  }
  return 0;
}
