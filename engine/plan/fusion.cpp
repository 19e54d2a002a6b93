#include "engine/plan/fusion.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"

namespace paceline {

namespace {

// An operation that stands for several: those at `members`, of which the last gives the output.
struct Candidate {
  Operation op;
  std::vector<int> members;
  int last() const { return members.back(); }
};

class Fuser {
 public:
  Fuser(const std::vector<Operation>& operations, const Supports& supports,
        std::vector<std::string>* notes)
      : operations_(operations),
        supports_(supports),
        notes_(notes),
        readers_(operations.size()),
        taken_(operations.size(), false) {
    for (std::size_t i = 0; i < operations.size(); ++i) {
      for (const int from : {operations[i].from, operations[i].from2}) {
        if (from != kNone) readers_[at(from)].push_back(static_cast<int>(i));
      }
    }
  }

  std::vector<Operation> run() {
    std::vector<Candidate> chosen(operations_.size());
    for (const bool last_pass : {false, true}) {
      for (int i = 0; i < static_cast<int>(operations_.size()); ++i) {
        if (taken_[at(i)] || (!last_pass && waits(i))) continue;
        const Candidate best = longest_supported(i);
        for (const int member : best.members) taken_[at(member)] = true;
        chosen[at(best.last())] = best;
      }
    }
    return in_order(chosen);
  }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  const Operation& op(int index) const { return operations_[at(index)]; }

  // A summand's batch_norm, which the later summand may take in.
  bool waits(int i) const {
    if (op(i).kind != OpKind::batch_norm || readers_[at(i)].size() != 1) return false;
    const Operation& reader = op(readers_[at(i)][0]);
    return reader.kind == OpKind::add && std::max(reader.from, reader.from2) != i;
  }

  std::vector<Candidate> followed(const Candidate& so_far) const {
    const auto& readers = readers_[at(so_far.last())];
    if (readers.size() != 1 || taken_[at(readers[0])]) return {};
    const int index = readers[0];
    const Operation& next = op(index);
    const Operation& first = so_far.op;
    Candidate both = so_far;
    both.members.push_back(index);
    both.op.out = next.out;
    const bool linear = first.kind == OpKind::dense || first.kind == OpKind::conv;
    const bool norm = first.kind == OpKind::batch_norm;
    if (next.kind == OpKind::relu && (linear || norm) && !first.relu && !first.pool) {
      both.op.relu = true;
    } else if (next.kind == OpKind::max_pool && first.kind == OpKind::conv && first.relu &&
               !first.pool && next.stride == next.kernel && next.padding == 0) {
      both.op.pool = next.kernel;
    } else if (next.kind == OpKind::max_pool && norm && first.relu && !first.add && !first.pool) {
      both.op.pool = next.kernel;
      both.op.kernel = next.kernel;
      both.op.stride = next.stride;
      both.op.padding = next.padding;
    } else if (next.kind == OpKind::dropout && first.kind == OpKind::dense && first.relu &&
               !first.dropout) {
      both.op.dropout = true;
      both.op.rate = next.rate;
      both.op.layer = next.layer;
    } else if (next.kind == OpKind::add && norm && !first.relu && !first.add) {
      return with_add(both, next, so_far.last());
    } else {
      return {};
    }
    return {both};
  }

  // The summand that is computed later takes the other in.
  std::vector<Candidate> with_add(Candidate both, const Operation& add, int mine) const {
    const int other = add.from == mine ? add.from2 : add.from;
    if (other >= mine) return {};
    both.op.add = true;
    both.op.from2 = other;
    const Operation& norm = op(other);
    if (norm.kind != OpKind::batch_norm || readers_[at(other)].size() != 1) return {both};
    Candidate with_branch = both;
    with_branch.members.insert(with_branch.members.begin(), other);
    with_branch.op.from2 = norm.from;
    with_branch.op.branch = {.name = norm.name, .epsilon = norm.epsilon, .momentum = norm.momentum};
    return {with_branch, both};
  }

  void add_longest_first(const Candidate& candidate, std::vector<Candidate>& all) const {
    for (const Candidate& longer : followed(candidate)) add_longest_first(longer, all);
    all.push_back(candidate);
  }

  Candidate longest_supported(int i) {
    std::vector<Candidate> all;
    add_longest_first({op(i), {i}}, all);
    for (const Candidate& candidate : all) {
      const Support support = supports_(candidate.op);
      if (support) return candidate;
      if (candidate.members.size() == 1) {
        throw Error(ErrorKind::usage,
                    fmt::format("{} cannot run here: {}", candidate.op.text(), support.because()),
                    "", "choose another device or precision");
      }
      if (notes_) {
        notes_->push_back(fmt::format("{} not fused: {}", candidate.op.text(), support.because()));
      }
    }
    throw Error(ErrorKind::internal, "an operation without a candidate", op(i).name);
  }

  std::vector<Operation> in_order(const std::vector<Candidate>& chosen) const {
    std::vector<Operation> result;
    std::vector<int> moved(operations_.size(), kNone);
    for (const Candidate& candidate : chosen) {
      if (candidate.members.empty()) continue;
      for (const int member : candidate.members)
        moved[at(member)] = static_cast<int>(result.size());
      result.push_back(candidate.op);
    }
    for (Operation& op : result) {
      if (op.from != kNone) op.from = moved[at(op.from)];
      if (op.from2 != kNone) op.from2 = moved[at(op.from2)];
    }
    return result;
  }

  const std::vector<Operation>& operations_;
  const Supports& supports_;
  std::vector<std::string>* notes_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> taken_;
};

}  // namespace

std::vector<Operation> fuse(const std::vector<Operation>& operations, const Supports& supports,
                            std::vector<std::string>* notes) {
  return Fuser(operations, supports, notes).run();
}

}  // namespace paceline
