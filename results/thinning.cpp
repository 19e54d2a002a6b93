#include "results/thinning.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "results/rank_lists.h"

namespace paceline {

namespace {

constexpr std::size_t kFewest = 8;  // entries of a list that stay
// Beyond so many, rows of epochs are left out whatever else a record holds: runs that are compared
// by these rows then have the same ones.
constexpr std::size_t kMostEpochs = 96;

struct List {
  const char* path;
  bool from_the_end = false;  // is cut there: the place of an entry says what it is of
};

constexpr std::array kLists = {List{"/quality/epochs"}, List{"/timing/epoch_seconds", true},
                               List{"/provenance/implementations", true}, List{"/gpus"},
                               List{"/plan/gradients"}};

Json* find(Json& record, const List& list, std::size_t most) {
  const Json::json_pointer path(list.path);
  if (!record.contains(path)) return nullptr;
  Json& found = record.at(path);
  return found.is_array() && found.size() > most ? &found : nullptr;
}

void number_epochs(Json& epochs) {
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    if (epochs[i].is_object() && !epochs[i].contains("epoch")) epochs[i]["epoch"] = i + 1;
  }
}

void halve(Json& entries, const List& list) {
  if (list.path == std::string("/quality/epochs")) number_epochs(entries);
  const std::size_t count = entries.size();
  Json kept = Json::array();
  for (std::size_t i = 0; i < count; ++i) {
    const bool stays = list.from_the_end ? i < count / 2 : i % 2 == 0 || i + 1 == count;
    if (stays) kept.push_back(std::move(entries[i]));
  }
  entries = std::move(kept);
}

void halve_and_mark(Json& record, Json& entries, const List& list) {
  const std::size_t count = entries.size();
  halve(entries, list);
  const char* name = list.path + 1;
  Json& marks = record["thinned"];
  if (!marks.contains(name)) marks[name] = count;
}

}  // namespace

std::string thin(Json& record, std::size_t limit, std::size_t (*size_of)(const Json&)) {
  while (Json* epochs = find(record, kLists.front(), kMostEpochs)) {
    halve_and_mark(record, *epochs, kLists.front());
  }
  std::string of_ranks;
  while (size_of(record) > limit) {
    const List* longest = nullptr;
    Json* entries = nullptr;
    std::size_t most = 0;
    for (const List& list : kLists) {
      Json* found = find(record, list, kFewest);
      const std::size_t size = found ? size_of(*found) : 0;
      if (size <= most) continue;
      longest = &list;
      entries = found;
      most = size;
    }
    if (size_of_rank_lists(record, size_of) > most) {
      of_ranks = fold_rank_lists(record);
      continue;
    }
    if (!entries) break;
    halve_and_mark(record, *entries, *longest);
  }
  return of_ranks;
}

}  // namespace paceline
