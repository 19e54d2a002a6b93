// What makes runs runs of one point: which parameters and which parts of a layout count, and what a
// comparison leaves open. No other file says so.
#pragma once

#include <compare>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/parameters.h"

namespace paceline {

struct LayoutFacts;

// What is matched: a run, a planned point, the point of a gate. Where the layout is not known, the
// rule must not ask for it.
struct MatchSubject {
  const Point& parameters;
  const LayoutFacts* layout = nullptr;
  std::string_view workload = {}, kind = {}, system = {}, backend = {};
};

// The CPUs that a replica has, as the record states or as follows from its task's.
std::optional<double> replica_cpus(const LayoutFacts& layout);

// Which CPUs must be equal. `matched`: of a replica where replicas are cores, else of a task.
enum class MatchCpus { none, of_task, of_replica, matched };

struct MatchRule {
  bool kind = false;    // measured, published, ...
  bool system = false;  // the machine, or a published row's stack and hardware
  bool backend = false, replicas = false, nodes = false, tasks = false;  // of the layout
  MatchCpus cpus = MatchCpus::none;
  // Of the parameters that identify a point: not those of these roles, nor those that studies vary
  // with the number of replicas, nor these.
  std::vector<Role> without = {};
  bool without_sized = false;
  std::vector<std::string_view> except = {};
  // Only these parameters; one that a subject does not have is a value, too.
  std::optional<std::vector<std::string>> only = {};

  friend bool operator==(const MatchRule&, const MatchRule&) = default;
  bool counts(const Parameter& parameter) const;
  bool counts(std::string_view name) const;

  // Runs that are averaged: one row of a table.
  static MatchRule row();
  // One point on both sides of a gate. The machine is not part of it, and the layout is that which
  // was asked for.
  static MatchRule point();
  // A row and the smaller one that is its base. With `axes`, the parameters in which the rows of
  // one table differ, all else is equal or follows from the size.
  static MatchRule base();
  static MatchRule base(const std::vector<std::string>& axes);
  // Rows that are alike but for `axis`, and the nodes and tasks that follow from it.
  static MatchRule setting(const std::string& axis, std::vector<std::string> axes,
                           bool replicas_are_cores);
  // Rows that differ in this parameter alone, and in those that follow from it. Threads follow from
  // what is run.
  static MatchRule but_for(std::string_view parameter, bool (*follows)(const Parameter&));
  // Rows that differ in their CPUs alone.
  static MatchRule but_for_cpus();
  // Rows of programs of the user's own at one point: each divides its replicas into tasks in its
  // way.
  static MatchRule but_for_program();
  // A planned point and the one that will be its base: what follows from its size is work, too.
  static MatchRule planned_base();
};

// Equal for two subjects of which a rule says that they match.
class PointKey {
 public:
  PointKey(const MatchSubject& subject, const MatchRule& rule);

  const std::string& text() const { return text_; }
  friend auto operator<=>(const PointKey&, const PointKey&) = default;

 private:
  std::string text_;
};

// Whether a run of `given` is one of a point that asks for `wanted`: what the point states and the
// rule counts is the same. A program that is named by its name alone matches all of that name.
bool serves(const Point& given, const Point& wanted, const MatchRule& rule = {});

// In what two points differ.
struct PointDifferences {
  std::vector<std::string> changed;  // "epochs was 5, is 10"
  std::vector<std::string>
      one_sided;  // "epochs was 5, is not given now", "epochs is 5, was not given"
};
// With `programs_by_name`, two ways to start one program of the user's own do not differ.
PointDifferences differences(const Point& was, const Point& is, const MatchRule& rule = {},
                             bool programs_by_name = false);

// Names of the parameters in which points differ; not to have one is a value, too.
std::vector<std::string> varying_parameters(const std::vector<const Point*>& points,
                                            const MatchRule& rule = {});

}  // namespace paceline

template <>
struct std::hash<paceline::PointKey> {
  std::size_t operator()(const paceline::PointKey& key) const {
    return std::hash<std::string>()(key.text());
  }
};
