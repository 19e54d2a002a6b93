// A fact: a member of a struct that is named once, with its meaning and the values that it may
// have.
//
//   struct Throughput {
//     PACELINE_FACT(fact::Real, samples_per_second, "of all replicas, after the warm-up",
//     kPositive); PACELINE_FACT(fact::Real, steps, "of the whole run"); PACELINE_END_FACTS
//   };
//
// visit_facts() goes over them in this order. JSON both ways with its checks (json.h), sums over
// ranks (to_numbers()) and docs/record.md come from it. Units are the names' last words: seconds,
// bytes, mhz; shares are from 0 to 1. Empty members are unknown or do not apply.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace paceline {

namespace fact {
using Text = std::string;
using Texts = std::vector<std::string>;
using Real = std::optional<double>;
using Count = std::optional<std::int64_t>;
using Flag = std::optional<bool>;
// Where a record has a list over ranks (FactRule::list). The values are in RankFacts.
template <typename T>
struct OfRanks {};

// A member in memory of its own. The struct needs only T's declaration, so whoever passes it on
// compiles without T's header. Copies copy the value, as those of std::indirect of C++26 do. A box
// that nothing was put into takes no memory and reads as T{}.
template <typename T>
class Box {
 public:
  Box() = default;
  Box(const Box& other)
      : value_(other.value_ ? other.copy_(*other.value_) : nullptr), copy_(other.copy_) {}
  Box(Box&& other) noexcept = default;
  Box& operator=(Box other) noexcept {
    value_.swap(other.value_);
    copy_ = other.copy_;
    return *this;
  }

  const T& operator*() const {
    static const T kNone{};
    return value_ ? *value_ : kNone;
  }
  T& operator*() {
    if (!value_) value_ = std::make_shared<T>();
    copy_ = [](const T& value) { return std::make_shared<T>(value); };
    return *value_;
  }
  const T* operator->() const { return &**this; }
  T* operator->() { return &**this; }

 private:
  std::shared_ptr<T> value_;  // of this box alone
  std::shared_ptr<T> (*copy_)(const T&) = nullptr;
};
}  // namespace fact

struct FactRule {
  double least = 0;
  bool above = false;          // `least` itself is not allowed
  bool share = false;          // from 0 to 1
  bool required = false;       // the record is rejected without it
  bool may_be_nan = false;     // NaN is written as null
  bool is_written = false;     // even if empty
  bool is_inlined = false;     // the keys of a nested struct stand beside the others
  const char* list = nullptr;  // of RankFacts: where a record has its list; null: at the end
};

inline constexpr FactRule kAny{.least = -std::numeric_limits<double>::infinity()};
inline constexpr FactRule kLoss{.least = kAny.least, .may_be_nan = true};
inline constexpr FactRule kShare{.share = true};
inline constexpr FactRule kPositive{.above = true};
inline constexpr FactRule kCount{.least = 1};
inline constexpr FactRule kRequired{.required = true};
inline constexpr FactRule kRequiredCount{.least = 1, .required = true};
inline constexpr FactRule kRequiredPositive{.above = true, .required = true};
inline constexpr FactRule kWritten{.is_written = true};
inline constexpr FactRule kInlined{.is_inlined = true};

struct FactInfo {
  const char* name;
  const char* meaning;
  FactRule rule{};
};

// The line of a fact in its header tells the facts of a struct apart.
template <int Line>
struct FactAt {};

#define PACELINE_FACT_FROM(first, type, name, ...)                                     \
  template <typename Self, typename Visitor>                                           \
  static void visit_fact(::paceline::FactAt<__LINE__>, Self& self, Visitor& visitor) { \
    visitor(::paceline::FactInfo{#name, __VA_ARGS__}, self.name);                      \
  }                                                                                    \
  type name {                                                                          \
    first                                                                              \
  }
#define PACELINE_FACT(type, name, ...) PACELINE_FACT_FROM(, type, name, __VA_ARGS__)
// A parameter of a run, by its name; results/parameter_table.cpp says what it means.
#define PACELINE_SETTING(type, name, first) PACELINE_FACT_FROM(first, type, name, "")
#define PACELINE_END_FACTS static constexpr int kLastFactLine = __LINE__;

template <typename T>
concept HasFacts = requires {
  T::kLastFactLine;
};

// Calls visitor(fact, member) for each fact of `facts`.
template <typename Facts, typename Visitor>
void visit_facts(Facts& facts, Visitor&& visitor) {
  using Struct = std::remove_const_t<Facts>;
  const auto visit_line = [&]<int Line>(FactAt<Line> at) {
    if constexpr (requires { Struct::visit_fact(at, facts, visitor); }) {
      Struct::visit_fact(at, facts, visitor);
    }
  };
  [&]<int... Line>(std::integer_sequence<int, Line...>) {
    (visit_line(FactAt<Line>{}), ...);
  }
  (std::make_integer_sequence<int, Struct::kLastFactLine>{});
}

template <HasFacts Facts>
inline constexpr std::size_t kFactCount = []<int... Line>(std::integer_sequence<int, Line...>) {
  struct Nobody {};
  return (std::size_t{0} + ... + requires(Facts & facts, Nobody & nobody) {
    Facts::visit_fact(FactAt<Line>{}, facts, nobody);
  });
}
(std::make_integer_sequence<int, Facts::kLastFactLine>{});

// The values of a struct of numbers, for sums over ranks. NaN: empty, or no number.
template <typename T>
double to_number(const T& value) {
  if constexpr (requires { value.has_value(); }) {
    return value ? static_cast<double>(*value) : std::numeric_limits<double>::quiet_NaN();
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else {
    return std::numeric_limits<double>::quiet_NaN();
  }
}
template <typename T>
void from_number(double number, T& value) {
  if constexpr (requires { value.has_value(); }) {
    value.reset();
    if (number == number) value = static_cast<typename T::value_type>(number);
  } else if constexpr (std::is_arithmetic_v<T>) {
    value = static_cast<T>(number);
  }
}
template <HasFacts Facts>
std::array<double, kFactCount<Facts>> to_numbers(const Facts& facts) {
  std::array<double, kFactCount<Facts>> numbers{};
  auto next = numbers.begin();
  visit_facts(facts, [&](const FactInfo&, const auto& value) { *next++ = to_number(value); });
  return numbers;
}
template <HasFacts Facts>
Facts from_numbers(const std::array<double, kFactCount<Facts>>& numbers) {
  Facts facts;
  auto next = numbers.begin();
  visit_facts(facts, [&](const FactInfo&, auto& value) { from_number(*next++, value); });
  return facts;
}

}  // namespace paceline
