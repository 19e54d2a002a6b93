#include "engine/comm/backends/nccl/quirks.h"

#include <nccl.h>

namespace paceline::nccl {

namespace {

struct Row {
  bool Quirks::*quirk;
  int since, until;            // versions from `since` to before `until`
  bool Situation::*situation;  // null: in any
  const char* text;
};

constexpr Row kRows[] = {
    // Registered buffers crash beside those that graphs register.
    {&Quirks::no_registration, 0, NCCL_VERSION(2, 24, 3), nullptr, "gradients are not registered"},
    // Sums in graphs race with sums that are queued plainly, as those of the first steps are.
    {&Quirks::no_sums_in_graphs, 0, NCCL_VERSION(2, 27, 3), nullptr,
     "sums are queued between graphs"},
    // Non-blocking communicators hang now and then.
    {&Quirks::blocking, NCCL_VERSION(2, 26, 0), NCCL_VERSION(2, 27, 0), nullptr,
     "communicators block"},
    // Non-blocking communicators of one process race in the group in which they join.
    {&Quirks::blocking, 0, NCCL_VERSION(2, 27, 3), &Situation::several_here,
     "several communicators of a process block"},
    // With GPUDirect, the receiving side loses a flag of registered buffers, and all ranks hang.
    {&Quirks::no_graph_registration, 0, NCCL_VERSION(2, 32, 0), &Situation::between_nodes,
     "NCCL_GRAPH_REGISTER is 0 between nodes unless it is set"},
    // Cards are told apart by their PCI ids alone, which slices share.
    {&Quirks::no_mig_slices, 0, NCCL_VERSION(2, 30, 0), &Situation::one_card,
     "MIG slices of one card are refused"},
    // NCCL_MULTI_RANK_GPU_ENABLE is not known yet.
    {&Quirks::no_shared_cards, 0, NCCL_VERSION(2, 30, 3), &Situation::one_card,
     "ranks cannot share a card"}};

}  // namespace

Quirks find_quirks(int version, const Situation& situation) {
  Quirks quirks;
  for (const Row& row : kRows) {
    const bool happens = row.situation == nullptr || situation.*row.situation;
    if (!happens || version < row.since || version >= row.until || quirks.*row.quirk) continue;
    quirks.*row.quirk = true;
    quirks.text += (quirks.text.empty() ? "" : ", ") + std::string(row.text);
  }
  if (version < NCCL_VERSION(2, 27, 3)) quirks.text += "; 2.27.3 or newer is recommended";
  return quirks;
}

}  // namespace paceline::nccl
