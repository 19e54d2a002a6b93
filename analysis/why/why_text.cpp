#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/document/columns.h"
#include "analysis/why/why.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// "23 [15, 31]"
std::string estimate_text(double value, const std::optional<Interval>& interval, double scale = 1,
                          int digits = 0) {
  const auto number = [&](double each) {
    const std::string text = fmt::format("{:.{}f}", scale * each, digits);
    return text == "-0" ? "0" : text;
  };
  if (!interval) return number(value);
  return fmt::format("{} [{}, {}]", number(value), number(interval->low), number(interval->high));
}

std::string points_text(const Cause& cause) {
  return estimate_text(cause.value, cause.interval);
}

constexpr EnumName<CauseState> kStates[] = {
    {CauseState::found, "found"}, {CauseState::small, "small"}, {CauseState::open, "cannot tell"}};

Table make_table(const std::vector<Cause>& causes, const std::string& key) {
  return ColumnsOf<Cause>()
      .text("cause", key == "tries" ? "change" : "cause",
            [](const Cause& each) { return each.name; })
      .interval("points", key == "tries" ? "points gained\n[95 %]" : "points\n[95 %]",
                [](const Cause& each) {
                  return Cell{points_text(each), each.value, each.interval};
                })
      .text("state", "",
            [](const Cause& each) { return std::string(name_in(kStates, each.state)); })
      .text("measured_by", "measured by", [](const Cause& each) { return each.how; })
      .text("key", "", [](const Cause& each) { return each.key; })
      .programs()
      .table(causes, key);
}

std::string title_text(const WhyVerdict& verdict) {
  if (!verdict.speed_up) {
    return fmt::format("{}: one alone could not be measured", counted(verdict.replicas, "replica"));
  }
  const bool is_known = verdict.speed_up->interval.has_value();
  return fmt::format("{} train {} times as fast as one: efficiency {} %{}",
                     counted(verdict.replicas, "replica"),
                     estimate_text(verdict.speed_up->value, verdict.speed_up->interval, 1, 2),
                     estimate_text(verdict.efficiency->value, verdict.efficiency->interval, 100),
                     is_known ? "" : " (too few runs for an interval)");
}

// The largest estimate, and how long it would take to be sure.
std::string missing_text(const WhyVerdict& verdict, const WhyEvidence& evidence) {
  std::string text;
  if (!verdict.none_is_large && !verdict.causes.empty() && verdict.causes.front().value >= kLarge) {
    const Cause& largest = verdict.causes.front();
    text = fmt::format("; the largest estimate: {}, {:.0f}", largest.name, largest.value);
  }
  if (!verdict.rounds_needed || verdict.rounds == 0) return text;
  const auto made = static_cast<double>(verdict.rounds),
             needed = static_cast<double>(*verdict.rounds_needed);
  const double minutes = (evidence.minutes - evidence.minutes_before) / made * (needed - made);
  return text + fmt::format("; about {} would decide, --minutes {:.0f}", counted(needed, "round"),
                            std::ceil(evidence.minutes + minutes));
}

std::string headline_text(const WhyVerdict& verdict, const WhyEvidence& evidence) {
  const std::set<std::string>& missing = evidence.missing;
  if (verdict.first) {
    const Cause& first = verdict.causes[*verdict.first];
    std::string text =
        fmt::format("{}: {}, {} of 100 points", verdict.rivals.empty() ? "First cause" : "A cause",
                    first.name, points_text(first));
    if (!verdict.with_replicas.empty()) text.insert(text.find(':'), " of the program's own");
    if (first.key == "late" && verdict.late_rank) {
      text += fmt::format("; rank {} was the slowest in every round", *verdict.late_rank);
    }
    if (!verdict.rivals.empty()) {
      text += fmt::format("; these runs cannot tell whether it costs more than {}",
                          join(verdict.rivals, ", "));
    }
    if (!verdict.may_go_before.empty()) {
      text += fmt::format("; {} may yet go before it", join(verdict.may_go_before, ", "));
    }
    for (const Cause& other : verdict.with_replicas) {
      text += fmt::format("; {}, {}, {} with the replicas", other.name, points_text(other),
                          other.key == "sums" ? "come" : "comes");
    }
    return text;
  }
  if (verdict.none_is_large && missing.empty()) {
    const Cause& largest = verdict.causes.front();
    return fmt::format(
        "None of the causes that were tried costs {:.0f} of 100 points{}", kLarge,
        largest.state == CauseState::found
            ? fmt::format("; the largest: {}, {}", largest.name, points_text(largest))
            : "");
  }
  const std::string rounds = counted(static_cast<double>(verdict.rounds), "round");
  const bool has_intervals = std::ranges::any_of(
      verdict.causes, [](const Cause& each) { return each.interval.has_value(); });
  const std::string reason =
      verdict.none_is_large
          ? fmt::format(
                "no cause that was measured costs {:.0f} points, but these runs cannot be made: {}",
                kLarge, join({missing.begin(), missing.end()}, ", "))
      : has_intervals ? fmt::format(
                            "after {} no cause of {:.0f} points or more is sure, and not all are "
                            "surely below that",
                            rounds, kLarge)
                      : fmt::format("after {} no cause has runs enough for an interval", rounds);
  return "Cannot tell: " + reason + missing_text(verdict, evidence);
}

}  // namespace

Document why_document(const WhyVerdict& verdict, const WhyEvidence& evidence) {
  Document document;
  document.name = "why";
  document.is_brief = true;
  document.title = title_text(verdict);
  document.warnings = evidence.warnings;
  if (verdict.batch_alone > 0) {
    document.warnings.push_back(
        fmt::format("the batch of a replica falls from {:g} alone to {:g} among {}: keep it, by a "
                    "larger global batch, to see what more replicas can give",
                    verdict.batch_alone, verdict.batch, verdict.replicas));
  }
  Section section;
  section.headline = headline_text(verdict, evidence);
  const std::string headline = section.headline;
  section.table = make_table(verdict.causes, "causes");
  std::vector<Statement> tries;
  for (const Cause& each : verdict.tries) {
    if (each.key == kDropped && each.state == CauseState::found) {
      tries.emplace_back(
          fmt::format("While the loader works and its output is dropped the gain is {} points: "
                      "that is the wait; what is more is CPUs that the loader takes from the steps",
                      points_text(each)));
      continue;
    }
    tries.emplace_back(each.state == CauseState::found
                           ? fmt::format("Try {}: it gains {} points", each.name, points_text(each))
                           : fmt::format("With {} the gain is {} points: {}", each.name,
                                         points_text(each), name_in(kStates, each.state)));
  }
  section.findings = tries;
  for (const std::string& note : evidence.notes) section.findings.emplace_back(note);
  if (2 * verdict.saves_without_sums < verdict.saves) {
    section.findings.emplace_back(
        fmt::format("Without sums it saved {} instead of {}: that part of saving is in the sums.",
                    counted(verdict.saves_without_sums, "time"), verdict.saves));
  }
  if (!evidence.profile.empty()) section.notes.push_back(evidence.profile);
  if (!verdict.by_samples) {
    section.caveats.emplace_back(
        "steps are compared, as their samples are not known; that is right if a replica's batch is "
        "the same alone");
  }
  section.notes.push_back(fmt::format(
      "100 points are the time in which {} train on a sample. One replica alone needs a share of "
      "it, the efficiency. The sums, the latest rank, the shared node, what comes once an epoch "
      "and computing in smaller batches add up to the rest, the loss; other causes overlap with "
      "these.",
      counted(verdict.replicas, "replica")));
  section.caveats.push_back(
      fmt::format("Intervals are for all causes together, after {}; the hook's own code took "
                  "{:.2f} % of the time.",
                  counted(static_cast<double>(verdict.rounds), "round"), 100 * verdict.overhead));
  document.sections.push_back(std::move(section));
  if (!verdict.tries.empty()) {
    document.sections.push_back(
        {.table = make_table(verdict.tries, "tries"), .shown = Visibility::in_detail});
    document.sections.back().table.in_text = false;
  }
  const auto interval = [](const std::optional<Estimate>& estimate, bool low) -> Json {
    if (!estimate || !estimate->interval) return nullptr;
    return low ? estimate->interval->low : estimate->interval->high;
  };
  const auto value = [](const std::optional<Estimate>& estimate) -> Json {
    return estimate ? Json(estimate->value) : Json(nullptr);
  };
  document.facts = make_facts(
      {{"replicas", verdict.replicas},
       {"rounds", verdict.rounds},
       {"decided", verdict.is_decided},
       {"speed_up", value(verdict.speed_up)},
       {"speed_up_low", interval(verdict.speed_up, true)},
       {"speed_up_high", interval(verdict.speed_up, false)},
       {"efficiency", value(verdict.efficiency)},
       {"efficiency_low", interval(verdict.efficiency, true)},
       {"efficiency_high", interval(verdict.efficiency, false)},
       {"first_cause", verdict.first ? Json(verdict.causes[*verdict.first].key) : Json(nullptr)},
       {"rivals", verdict.rivals},
       {"rounds_needed", verdict.rounds_needed ? Json(*verdict.rounds_needed) : Json(nullptr)},
       {"overhead", verdict.overhead},
       {"title", document.title},
       {"headline", headline},
       {"profile", evidence.profile},
       {"warnings", document.warnings},
       {"notes", evidence.notes}});
  return document;
}

}  // namespace paceline
