#include "analysis/evidence/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <set>
#include <unordered_map>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

bool was_preempted(const Run& run) {
  return run->status == "preempted";
}

bool has_no_result(const Run& run) {
  return !run->completed();
}

bool has_diverged(const Run& run) {
  return std::isnan(run.mean_loss().value_or(0));
}

bool missed_its_goal(const Run& run) {
  return !run.goal.empty() && !run.goal_reached;
}

template <bool RunFlags::*kFlag>
bool has(const Run& run) {
  return run->flags.*kFlag;
}

std::string reason_of_record(const Run& run) {
  return run->reason.empty() ? run->status : run->reason;
}

std::string loss_is_nan(const Run&) {
  return "its loss is not a number";
}

std::string goal_text(const Run& run) {
  return "it did not reach its goal, " + run.goal;
}

std::optional<std::string> field(const Run& run, const std::string& key) {
  if (key == "kind") return run->kind;
  if (key == "study") return run->study;
  if (key == "session") return run->session;
  if (key == "build") return run->build();
  if (key == "system") return run.system;
  if (key == "workload") return run->workload;
  if (key == "program") {
    const auto tag = run->parameters.text(key);
    return tag ? std::optional(name_of_program(*tag)) : std::nullopt;
  }
  if (key == "precision") return run.precision;
  return run->parameters.text(key);
}

void check_key(const std::string& key) {
  std::vector<std::string> known = {"kind", "study", "session", "build", "system", "workload"};
  for (const Parameter& parameter : recorded_parameters()) known.emplace_back(parameter.name);
  if (std::find(known.begin(), known.end(), key) != known.end()) return;
  throw usage_error(fmt::format("records have no \"{}\"", key), "--only", suggestion(key, known));
}

// Runs of unlike machines share no row, and none is compared with another.
void name_machines(std::vector<Run>& runs) {
  const std::vector<std::string> names = name_machines(mapped(
      runs, [](const Run& run) { return run->kind == "measured" ? run.machine : Machine{}; }));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i]->kind == "measured") runs[i].system = names[i];
  }
}

std::vector<Run> selected_runs(std::vector<Run> all, const std::vector<Selection>& selections) {
  for (const Selection& selection : selections) check_key(selection.key);
  name_machines(all);
  if (selections.empty()) return all;
  std::vector<std::set<std::string>> seen(selections.size());
  std::erase_if(all, [&](const Run& run) {
    bool wanted = true;
    for (std::size_t i = 0; i < selections.size(); ++i) {
      const auto value = field(run, selections[i].key);
      if (value) seen[i].insert(*value);
      wanted = wanted && selections[i].allows(value);
    }
    return !wanted;
  });
  for (std::size_t i = 0; i < selections.size(); ++i) {
    for (const std::string& text : selections[i].values) {
      if (seen[i].contains(text)) continue;
      for (const std::string& value : split(text, ',')) {
        if (seen[i].contains(value)) continue;
        throw usage_error(fmt::format("no record has {} \"{}\"", selections[i].key, value),
                          "--only", "known: " + join({seen[i].begin(), seen[i].end()}, ", "));
      }
    }
  }
  name_machines(all);  // the selections may leave but one
  return all;
}

std::string folder(const Run& run) {
  return std::filesystem::path(run.where).parent_path().string();
}

// A repeat of a point, which may have several attempts.
std::string repeat_key(const Run& run) {
  std::string key;
  for (const std::string& part : {folder(run), run->study, run->workload,
                                  run->point.empty() ? run->parameters.text() : run->point}) {
    add_to_key(key, part);
  }
  return key + std::to_string(run->repeat);
}

// Of one repeat: in the same session or as a later attempt by another call of `sweep`.
bool is_retry(const Run& again, const Run& run) {
  return again->session == run->session || again->attempt > run->attempt;
}

// A failed run is lost if no attempt ended well. Of its failed attempts only the last is.
void mark_lost(std::vector<Run>& runs) {
  if (std::ranges::none_of(runs, &Run::has_failed)) return;
  std::unordered_map<std::string, std::vector<const Run*>> attempts;
  for (const Run& run : runs) attempts[repeat_key(run)].push_back(&run);
  for (Run& run : runs) {
    if (run.effect != Effect::failed) continue;
    run.is_lost = std::ranges::none_of(attempts[repeat_key(run)], [&](const Run* other) {
      return other != &run && is_retry(*other, run) &&
             (!other->has_failed() ||
              (other->effect == Effect::failed && other->record->attempt > run->attempt));
    });
  }
}

}  // namespace

const std::vector<Reason>& reasons() {
  using enum Effect;
  static const std::vector<Reason> table = {
      {"preempted", was_preempted, failed, failed, interrupted, reason_of_record},
      {"not completed", has_no_result, failed, failed, failed, reason_of_record},
      {"diverged", has_diverged, none, none, failed, loss_is_nan},
      {"goal missed", missed_its_goal, none, excluded, failed, goal_text},
      {"resumed", has<&RunFlags::resumed>, yields, excluded, excluded, {}},
      {"throttled", has<&RunFlags::throttled>, yields, excluded, excluded, {}},
      {"oversubscribed", has<&RunFlags::oversubscribed>, yields, excluded, yields, {}},
      {"traced", has<&RunFlags::traced>, yields, excluded, excluded, {}},
  };
  return table;
}

std::string yielding_names() {
  std::vector<std::string> names = mapped_if(
      reasons(), [](const Reason& reason) { return reason.in_tables == Effect::yields; },
      [](const Reason& reason) { return std::string(reason.name); });
  const std::string last = names.back();
  names.pop_back();
  return join(names, ", ") + " or " + last;
}

EvidencePolicy EvidencePolicy::tables() {
  return {.keeps_predictions = true};
}

EvidencePolicy EvidencePolicy::history() {
  return {.effect = &Reason::in_history, .keeps_older_builds = true};
}

EvidencePolicy EvidencePolicy::gate() {
  return {.effect = &Reason::at_gate, .point = MatchRule::point()};
}

void judge(Run& run, const EvidencePolicy& policy) {
  run.effect = Effect::none;
  for (const Reason& reason : reasons()) {
    if (reason.*policy.effect <= run.effect || !reason.holds(run)) continue;
    run.effect = reason.*policy.effect;
    run.reason = &reason;
  }
}

void judge(std::vector<Run>& runs, const EvidencePolicy& policy) {
  for (Run& run : runs) judge(run, policy);
  mark_lost(runs);
}

bool Selection::allows(const std::optional<std::string>& value) const {
  return value && std::ranges::any_of(values, [&](const std::string& text) {
           return text == *value || std::ranges::count(split(text, ','), *value) > 0;
         });
}

std::vector<Selection> parsed_selections(const std::vector<std::string>& texts,
                                         const std::string& option, const std::string& example) {
  std::vector<Selection> selections;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw usage_error("\"" + text + "\" is not KEY=VALUE", option,
                        "write for example " + option + " " + example);
    }
    const std::string key = text.substr(0, equals);
    auto of_key = std::ranges::find(selections, key, &Selection::key);
    if (of_key == selections.end()) of_key = selections.insert(of_key, {key, {}});
    of_key->values.push_back(text.substr(equals + 1));
  }
  return selections;
}

Evidence collect(const StoreContent& content, const EvidencePolicy& policy,
                 const std::vector<Selection>& selections, const std::vector<ExpectedRuns>& plans) {
  std::vector<Run> all;
  all.reserve(content.records.size());
  for (const Record& record : content.records) {
    const bool is_shown = policy.keeps_predictions || record->kind != "predicted";
    if (!record->is_collective() && is_shown) all.push_back(make_run(record));
  }
  Evidence found;
  found.runs = selected_runs(std::move(all), selections);
  found.controls = taken(found.runs, [](const Run& run) { return run->control; });
  found.superseded = drop_superseded(found.runs, plans);
  if (!policy.keeps_older_builds) found.older_builds = drop_older_builds(found.runs);
  judge(found.runs, policy);
  judge(found.controls, policy);
  std::erase_if(found.controls, [](const Run& run) { return run.effect != Effect::none; });
  return found;
}

std::string older_builds_note(std::size_t older) {
  return fmt::format("left out: {} of earlier builds, which --new-build made again",
                     counted(older, "run"));
}

std::vector<EvidencePoint> group_points(std::vector<Run> runs, const MatchRule& rule) {
  std::unordered_map<PointKey, std::size_t> index;
  std::vector<EvidencePoint> points;
  for (Run& run : runs) {
    const auto [it, first] = index.emplace(run.key(rule), points.size());
    if (first) points.emplace_back();
    EvidencePoint& point = points[it->second];
    if (run.is_lost && point.lost++ == 0) point.why_lost = run->reason;
    std::vector<Run>& group = run.has_failed()                 ? point.failed
                              : run.effect == Effect::excluded ? point.aside
                                                               : point.runs;
    group.push_back(std::move(run));
  }
  for (EvidencePoint& point : points) {
    std::vector<Run> yielding =
        taken(point.runs, [](const Run& run) { return run.effect != Effect::none; });
    point.tainted = point.runs.empty() && !yielding.empty();
    std::vector<Run>& group = point.tainted ? point.runs : point.aside;
    std::ranges::move(yielding, std::back_inserter(group));
  }
  return points;
}

}  // namespace paceline
