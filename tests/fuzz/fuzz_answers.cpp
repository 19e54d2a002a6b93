// Bytes of a hostile store, to a rank that has joined it or is about to: the first byte says which
// of the rank's connections reads them.
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/comm/rendezvous/liveness.h"
#include "engine/comm/transport/mesh.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "tests/unit/comm/worlds.h"

namespace {

using namespace paceline;

constexpr int kRanks = 4;

void check(bool is_right) {
  if (!is_right) std::abort();
}

void read_control(const BootstrapAddress& where) {
  LivenessConnection control(where, 1, 1, [](int rank, const std::string& why) {
    check(rank >= -1 && rank < kRanks && fault_of_text(why).empty());
  });
  const std::vector<int> late = control.late_ranks();
  check(late.size() <= kRanks);
  for (const int rank : late) check(rank >= 0 && rank < kRanks);
}

void read_values(const BootstrapAddress& where) {
  StoreClient client(where, 1, 1);
  client.set("mesh/1", "mine");
  const std::string text = client.get("mesh/0", 1);
  const auto address = parse_mesh_address(text);
  check(!address || (address->port > 0 && parse_mesh_address(to_text(*address))));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool greets = data[0] % 3 == 2;
  FalseStore store(
      kRanks,
      [&](const Message& message) {
        return message.type == MessageType::progress ? std::string() : bytes;
      },
      greets ? "" : "right token", 1);
  try {
    if (greets) StoreClient(store.where, 1, 0.01);
    if (data[0] % 3 == 1) read_control(store.where);
    if (data[0] % 3 == 0) read_values(store.where);
  } catch (const Error&) {
  }
  return 0;
}
