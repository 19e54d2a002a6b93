#include <fmt/format.h>

#include <map>
#include <type_traits>
#include <typeindex>

#include "engine/facts/rank.h"
#include "results/run_record.h"

namespace paceline {

namespace {

template <typename T>
struct Inner {
  using Type = T;
  static constexpr bool is_list = false;
};
template <typename T>
struct Inner<std::optional<T>> : Inner<T> {};
template <typename T>
struct Inner<std::vector<T>> : Inner<T> {
  static constexpr bool is_list = true;
};
template <typename T>
struct Inner<fact::Box<T>> : Inner<T> {};
template <typename T>
struct Inner<fact::OfRanks<T>> : Inner<std::vector<T>> {};

template <typename T>
std::string form_text(FactRule rule) {
  using Type = typename Inner<T>::Type;
  const std::string of = Inner<T>::is_list ? "list of " : "";
  if constexpr (HasFacts<Type> || std::is_same_v<Type, Point>) {
    return of + (of.empty() ? "object" : "objects");
  } else if constexpr (std::is_same_v<Type, std::string>) {
    return of + (of.empty() ? "text" : "texts");
  } else if constexpr (std::is_same_v<Type, bool>) {
    return "true, false";
  } else {
    std::string text = of + (std::is_integral_v<Type> ? "whole number" : "number");
    if (!of.empty()) text += "s";
    if (rule.share) return text + " from 0 to 1";
    return text + (rule.above ? " above 0" : rule.least == 1 ? " from 1" : "");
  }
}

// A table for each struct, a row for each of its facts.
class Page {
 public:
  template <typename Facts>
  void add(const std::string& path) {
    // A struct that stands in several places is described at the first.
    if (!described_.emplace(typeid(Facts), path).second) return;
    text_ += fmt::format("\n## {}\n\n| key | values | |\n| --- | --- | --- |\n",
                         path.empty() ? "The record" : "`" + path + "`");
    Facts facts;
    visit_facts(facts, [&]<typename T>(const FactInfo& fact, T&) { add_row<T>(fact); });
    if (path.empty()) add_other_lists();
    visit_facts(facts, [&]<typename T>(const FactInfo& fact, T&) {
      using Type = typename Inner<T>::Type;
      if constexpr (HasFacts<Type>) {
        if (!fact.rule.is_inlined) add<Type>(path + (path.empty() ? "" : ".") + fact.name);
      }
    });
  }
  const std::string& text() const { return text_; }

 private:
  template <typename T>
  void add_row(const FactInfo& fact) {
    using Type = typename Inner<T>::Type;
    if (std::is_same_v<T, RankSpread>) return;  // RunRecord::ranks describes it
    if constexpr (HasFacts<Type>) {
      if (fact.rule.is_inlined) {
        Type members;
        visit_facts(members, [&]<typename U>(const FactInfo& inner, U&) { add_row<U>(inner); });
        return;
      }
    }
    const auto known = described_.find(typeid(Type));
    text_ += fmt::format(
        "| `{}` | {} | {} |\n", fact.name,
        known == described_.end() ? form_text<T>(fact.rule) : "as `" + known->second + "`",
        fact.meaning);
  }

  // Over ranks, that stand at the record's end.
  void add_other_lists() {
    RankFacts rank;
    visit_facts(rank, [&]<typename T>(const FactInfo& fact, T&) {
      const std::string meaning = std::string("one per rank: ") + fact.meaning;
      if (!fact.rule.list) add_row<std::vector<T>>({fact.name, meaning.c_str(), fact.rule});
    });
  }

  std::string text_;
  std::map<std::type_index, std::string> described_;
};

}  // namespace

std::string record_markdown() {
  Page page;
  page.add<RunRecord>("");
  return fmt::format(
             "# The run record\n\n"
             "A record is one JSON object of at most 32 KB, with `\"schema\": {}`. Units are in "
             "the names: "
             "seconds, bytes, per second. Keys that are\nunknown or do not apply are left out, and "
             "readers "
             "treat null the same. `paceline list record --markdown` writes this page.\n",
             kRecordSchema) +
         page.text();
}

}  // namespace paceline
