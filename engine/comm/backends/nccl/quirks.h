// What versions of NCCL get wrong, and is therefore done without.
#pragma once

#include <string>

namespace paceline::nccl {

// What a run does that a version may get wrong. By default all of it, as `paceline doctor` asks.
struct Situation {
  bool several_here = true;   // this process has several communicators
  bool between_nodes = true;  // ranks are on several nodes
  bool one_card = true;       // ranks are on one card, or on MIG slices of it
};

struct Quirks {
  bool no_registration = false;        // of gradients
  bool no_sums_in_graphs = false;      // they are queued between graphs
  bool blocking = false;               // communicators block
  bool no_graph_registration = false;  // NCCL_GRAPH_REGISTER=0, unless the user set it
  bool no_mig_slices = false;          // of one card
  bool no_shared_cards = false;
  std::string text;  // the same for users; empty: none
};

Quirks find_quirks(int version, const Situation& situation = {});

}  // namespace paceline::nccl
