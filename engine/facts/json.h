// Facts as JSON: keys are the names. Include it in few sources, since it brings nlohmann/json.
//
// Members that are empty are left out, and readers treat null the same; unknown keys are ignored.
// A type without facts takes part by two functions beside it:
//   Json fact_to_json(const T&);
//   void fact_from_json(const Json&, T&, const FactPlace&);
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>

#include "engine/core/json.h"
#include "engine/facts/fact.h"

namespace paceline {

// Where a value stands, for errors.
struct FactPlace {
  const std::string& file;  // or what else the JSON is from
  std::string key;          // "/timing/fit_seconds"

  // Throws input: "cannot be negative: -1 (runs/1.1.json, key /timing/fit_seconds)".
  [[noreturn]] void fail(const std::string& what) const;
};

// Checked by the rule. Throw input.
double number_from_json(const Json& json, FactRule rule, const FactPlace& place);
std::int64_t whole_from_json(const Json& json, FactRule rule, const FactPlace& place, double most);

inline constexpr double kMostOfAnInt = 10'000'000;  // ranks, repeats, threads
inline constexpr double kMostOfACount = 9e15;       // what a double counts exactly

// Seven significant digits, more would be noise; null if it is not finite.
Json number_to_json(double value);

template <HasFacts Facts>
Json facts_to_json(const Facts& facts);

// Holds the place until the record's lists are known.
template <typename T>
Json fact_to_json(const fact::OfRanks<T>&) {
  return Json::array();
}
template <typename T>
void fact_from_json(const Json&, fact::OfRanks<T>&, const FactPlace&) {}

// Null: nothing is known.
template <typename T>
Json value_to_json(const T& value) {
  if constexpr (std::is_same_v<T, double>) {
    return number_to_json(value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return value.empty() ? Json() : Json(value);
  } else if constexpr (HasFacts<T>) {
    Json json = facts_to_json(value);
    return json.empty() ? Json() : json;
  } else {
    return fact_to_json(value);
  }
}
template <typename T>
Json value_to_json(const std::optional<T>& value) {
  if (!value) return nullptr;
  Json json = value_to_json(*value);
  return json.is_null() && HasFacts<T> ? Json::object() : json;
}
template <typename T>
Json value_to_json(const fact::Box<T>& box) {
  return value_to_json(*box);
}
template <typename T>
Json value_to_json(const std::vector<T>& values) {
  Json list;
  for (const T& value : values) list.push_back(value_to_json(value));
  return list;
}

template <HasFacts Facts>
Json facts_to_json(const Facts& facts) {
  Json json = Json::object();
  visit_facts(facts, [&](const FactInfo& fact, const auto& member) {
    Json value = value_to_json(member);
    if (fact.rule.is_inlined) {
      if (value.is_object()) json.update(value);
    } else if (!value.is_null() || fact.rule.is_written) {
      json[fact.name] = value.is_null() ? Json("") : std::move(value);
    } else if constexpr (std::is_same_v<decltype(member), const fact::Real&>) {
      if (fact.rule.may_be_nan && member) json[fact.name] = nullptr;
    }
  });
  return json;
}

template <HasFacts Facts>
void facts_from_json(const Json& json, Facts& facts, const FactPlace& place);

template <typename T>
void value_from_json(const Json& json, T& value, FactRule rule, const FactPlace& place) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) place.fail("should be true or false");
    value = json.get<bool>();
  } else if constexpr (std::is_same_v<T, double>) {
    value = number_from_json(json, rule, place);
    if (rule.above && !(value > rule.least)) {
      place.fail("must be positive, not " + json_text(json));
    }
  } else if constexpr (std::is_integral_v<T>) {
    constexpr double most = sizeof(T) < sizeof(std::int64_t) ? kMostOfAnInt : kMostOfACount;
    value = static_cast<T>(whole_from_json(json, rule, place, most));
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!json.is_string()) place.fail("should be a text");
    value = json.get<std::string>();
  } else if constexpr (HasFacts<T>) {
    facts_from_json(json, value, place);
  } else {
    fact_from_json(json, value, place);
  }
}
template <typename T>
void value_from_json(const Json& json, std::optional<T>& value, FactRule rule,
                     const FactPlace& place) {
  value_from_json(json, value.emplace(), rule, place);
}
template <typename T>
void value_from_json(const Json& json, fact::Box<T>& box, FactRule rule, const FactPlace& place) {
  value_from_json(json, *box, rule, place);
}
template <typename T>
void value_from_json(const Json& json, std::vector<T>& values, FactRule rule,
                     const FactPlace& place) {
  if (!json.is_array()) place.fail("should be a list");
  for (std::size_t i = 0; i < json.size(); ++i) {
    value_from_json(json[i], values.emplace_back(), rule,
                    {place.file, fmt::format("{}/{}", place.key, i)});
  }
}

// An optional struct is there if one of its keys is.
template <HasFacts Facts>
void inlined_from_json(const Json& json, std::optional<Facts>& facts, const FactPlace& place) {
  bool is_there = false;
  visit_facts(facts.emplace(), [&](const FactInfo& fact, auto&) {
    is_there = is_there || json.contains(fact.name);
  });
  is_there ? facts_from_json(json, *facts, place) : facts.reset();
}

template <typename T>
void inlined_from_json(const Json& json, T& value, const FactPlace& place) {
  value_from_json(json, value, {}, place);
}

template <HasFacts Facts>
void facts_from_json(const Json& json, Facts& facts, const FactPlace& place) {
  if (!json.is_object()) place.fail("should be an object");
  visit_facts(facts, [&](const FactInfo& fact, auto& member) {
    if (fact.rule.is_inlined) return inlined_from_json(json, member, place);
    const auto found = json.find(fact.name);
    const FactPlace at{place.file, place.key + "/" + fact.name};
    if (found != json.end() && !found->is_null())
      return value_from_json(*found, member, fact.rule, at);
    if (fact.rule.required) at.fail("is missing");
    if constexpr (std::is_same_v<decltype(member), fact::Real&>) {
      if (fact.rule.may_be_nan && found != json.end()) member = std::nan("");
    }
  });
}

// Throws input with `file` and the key: a missing member, a wrong type, a value out of range.
template <HasFacts Facts>
Facts parse_facts(const Json& json, const std::string& file) {
  Facts facts;
  facts_from_json(json, facts, {file, ""});
  return facts;
}

}  // namespace paceline
