// What made data sets are put together from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/laboratory/records.h"
#include "tests/laboratory/sets.h"

namespace paceline::laboratory {

constexpr double kOne = kLawSeconds;

struct Made {
  std::function<Parts(double n)> parts;
  Design design{};
  Noise noise{};
  Scaling scaling = Scaling::fixed_epochs;

  std::vector<Json> records(std::uint32_t seed) const;
};

using Records = std::function<std::vector<Json>(std::uint32_t seed)>;
using Change = std::function<void(Json& record, int replicas, int round)>;

Records made(const Made& each);
// All of them, as if one folder had them.
Records together(const std::vector<Records>& parts);
Records changed(const Made& each, Change change);

Parts ideal_parts(double n);
// Communication that takes such a share of what N replicas compute.
std::function<Parts(double)> communicating(std::function<double(double)> share);
Noise with_event(double run, std::function<double(const Place&)> event);

// The record of a run that failed; of a program of the user's own.
void fail(Json& record);
void set_program(Json& record, const std::string& name);

void add(std::vector<NamedSet>& all, const std::string& name, const std::string& truth,
         const Records& records, const std::vector<std::string>& must = {},
         const std::vector<std::string>& never = {}, const std::string& unless = "");

// Sets whose rows, runs or sessions are unlike each other.
void add_compared(std::vector<NamedSet>& all);

}  // namespace paceline::laboratory
