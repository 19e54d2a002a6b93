// Links between replicas, by level, and what an all-reduce costs over them.
//
// A *level* joins units: "core" the replicas of a socket, "socket" the sockets of a node, "node"
// the nodes of a switch, "switch" the switches. A message of m bytes over a link takes alpha + beta
// m (R. Hockney, Parallel Computing 20, 1994): latency in seconds, and seconds per byte.
//
// With p replicas and n bytes of each:
//   ring          2(p-1) messages of n/p bytes, one after another (P. Patarasuk, X. Yuan: Bandwidth
//                 optimal all-reduce algorithms for clusters of workstations, 2009); between two,
//                 one message of n bytes each way
//   tree          2 ceil(log2 p) latencies and 2n bytes, n between two: two trees that share the
//                 data (P. Sanders, J. Speck, J. L. Traeff: Two-tree algorithms, 2009)
//   hierarchical  at each level a ring of all n bytes, between the leaders of the units below
// A flat ring or tree has the latencies of all links on its way and the bandwidth of the slowest.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace paceline {

enum class SumForm { ring, tree, hierarchical };
inline constexpr SumForm kSumForms[] = {SumForm::ring, SumForm::tree, SumForm::hierarchical};
const char* to_string(SumForm form);

struct LinkLevel {
  std::string name;             // core, socket, node or switch; in this order
  int units = 0;                // joined by it; 0: any number (the last level)
  double latency_seconds = 0;   // alpha
  double bytes_per_second = 0;  // 1 / beta, of one link
  int shared_by = 1;            // messages that share a link at the same time: an uplink
};

// What an all-reduce has at each level: this many latencies, and this many bytes over one link.
struct LevelTraffic {
  double latencies = 0, bytes = 0;
};

struct LinkNetwork {
  SumForm form = SumForm::ring;
  double call_seconds = 0;  // of each all-reduce, whatever its size and the replicas
  std::vector<LinkLevel> levels;

  // Between the first `replicas`, packed unit by unit.
  std::vector<LevelTraffic> traffic(double bytes, int replicas) const;
  double seconds(double bytes, int replicas) const;
  // The last level that so many replicas cross; -1 for one replica.
  int highest_level(int replicas) const;
  // How many replicas the levels join; empty: any number.
  std::optional<int> capacity() const;
};

// Parses a description of links, e.g. (comments are allowed)
//   {"form": "ring", "levels": [
//      {"level": "core", "units": 4, "latency_seconds": 2e-6, "bytes_per_second": 4e10},
//      {"level": "node", "latency_seconds": 1e-5, "bytes_per_second": 2.5e10, "shared_by": 4}]}
// Throws input with file, line, key and the range of its values.
LinkNetwork parse_network(const std::string& text, const std::string& where);

// Latency and bandwidth of each level, from measured all-reduces.

// An all-reduce, or several in a row.
struct SumSample {
  double bytes = 0;  // of one rank, in all
  double calls = 1;
  int replicas = 2, nodes = 1;
  double seconds = 0;  // in all
};

struct FittedLinks {
  LinkNetwork network;
  double off = 0;              // root of the mean square of relative deviations
  bool form_is_known = false;  // another form fits clearly worse
  int most_replicas = 0;       // of a sample
};

// Nodes of `replicas_per_node`, a level "core" inside and "node" between them, as far as samples
// cross it. Each form is fitted, level by level from the inside: least squares of relative errors
// (small messages count less) over call_seconds (if samples have several sizes), latency and bytes.
// The form that fits best is taken: a ring, unless another one is off by less than nine tenths.
// Empty without samples of two or more replicas.
std::optional<FittedLinks> fit_links(const std::vector<SumSample>& samples, int replicas_per_node);

}  // namespace paceline
