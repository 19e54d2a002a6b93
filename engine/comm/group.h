// The members of a communicator among processes.
#pragma once

#include <cstddef>
#include <vector>

namespace paceline {

struct RankGroup {
  int rank = 0;            // this process's index among the members; -1: it is not one
  std::vector<int> names;  // of each member: its rank number in the world, for error messages

  int size() const { return static_cast<int>(names.size()); }
  int name() const { return names[static_cast<std::size_t>(rank)]; }
  // Member m is named m * step.
  static RankGroup numbered(int rank, int size, int step = 1) {
    RankGroup group{rank, {}};
    for (int member = 0; member < size; ++member) group.names.push_back(member * step);
    return group;
  }
};

// The group of `members` of `all`, given by their indices there.
inline RankGroup subgroup(const RankGroup& all, const std::vector<int>& members) {
  RankGroup group{-1, {}};
  for (const int member : members) {
    if (member == all.rank) group.rank = group.size();
    group.names.push_back(all.names[static_cast<std::size_t>(member)]);
  }
  return group;
}

}  // namespace paceline
