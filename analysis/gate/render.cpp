#include "analysis/gate/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "analysis/document/columns.h"
#include "analysis/gate/quantity.h"
#include "analysis/statistics/anytime.h"
#include "analysis/statistics/robust.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// What our own files begin with.
constexpr char kMarkdownBeginning[] = "# gate: ";
constexpr char kJunitBeginning[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<testsuites>\n"
    "<testsuite name=\"paceline gate: ";

std::string whole_percent(double share) {
  return fmt::format("{:.0f} %", std::ceil(100 * share));
}

// A rate in its unit.
Cell value_cell(const Check& check, const std::optional<double>& value) {
  if (!value) return {};
  if (!check.unit) return {value_text(*value, quantity_info(check.quantity)), value};
  return {check.unit->text(1 / *value), check.unit->shown(1 / *value)};
}

std::string heading(const Check& check) {
  if (!check.unit) return std::string(quantity_info(check.quantity).heading);
  return check.unit->is_own() ? "result" : "rate";
}

// A time's change; of a rate of which more is better the rate's, "-5.2 %".
std::string change_text(const Check& check, double change) {
  const bool is_rate = check.unit && check.unit->better != "less" && change > -1;
  return signed_change_text(is_rate ? 1 / (1 + change) - 1 : change, quantity_info(check.quantity));
}

// "+10.0 % [+9.0, +11.0]".
Cell change_cell(const Check& check) {
  const QuantityInfo& info = quantity_info(check.quantity);
  if (!check.change) return {};
  Cell cell{change_text(check, *check.change), check.change, check.interval};
  if (!check.interval) return cell;
  std::string low = change_text(check, check.interval->low),
              high = change_text(check, check.interval->high);
  if (!info.more_is_worse || (check.unit && check.unit->better != "less")) std::swap(low, high);
  for (std::string* each : {&low, &high}) *each = each->substr(0, each->find(" %"));
  cell.text += fmt::format(" [{}, {}]", low, high);
  return cell;
}

std::string sentence(const Check& check) {
  if (!check.is_fresh || !check.first_change) return check.reason;
  const std::string first = " (first runs: " + change_text(check, *check.first_change) + ")";
  const bool was_suspect = *check.first_change >= check.threshold;
  if (check.verdict == Verdict::pass) {
    const std::string unconfirmed = was_suspect ? "not confirmed by fresh runs" + first : "";
    return check.reason + (check.reason.empty() || unconfirmed.empty() ? "" : "; ") + unconfirmed;
  }
  if (check.verdict == Verdict::undecided)
    return "fresh runs did not decide: " + check.reason + first;
  return (was_suspect ? "confirmed by" : "seen in") + (" fresh runs: " + check.reason) + first;
}

// Checks of one verdict and reason, said once: "regression: time of mnist-cnn gpus=2: ...".
std::vector<Statement> collect_statements(const Judgement& judgement) {
  constexpr std::size_t kShown = 3;
  std::vector<std::pair<std::pair<Verdict, std::string>, std::vector<std::string>>> all;
  for (const Check& check : judgement.checks) {
    const std::pair said(check.verdict, sentence(check));
    if (said.second.empty()) continue;
    const auto it = std::ranges::find(all, said, &decltype(all)::value_type::first);
    (it == all.end() ? all.emplace_back(said, std::vector<std::string>()) : *it)
        .second.push_back(fmt::format("{} of {}", heading(check), check.subject));
  }
  std::vector<Statement> statements;
  for (const auto& [said, checks] : all) {
    const auto alike = std::ranges::count(judgement.checks, said.first, &Check::verdict);
    const bool is_all = checks.size() > kShown && std::cmp_equal(checks.size(), alike);
    statements.emplace_back(fmt::format(
        "{}: {}: {}", to_string(said.first),
        is_all ? fmt::format("all {}", alike) : join_first(kShown, checks, "; "), said.second));
  }
  return statements;
}

// Time always; the rest where there is something to see.
bool is_shown(const Check& check) {
  return check.quantity == Quantity::time || check.verdict != Verdict::pass || check.is_fresh ||
         check.is_worse_below_threshold;
}

constexpr std::size_t kMostRows = 20;  // on a screen

Table make_rows(const Judgement& judgement, const GateSides& sides) {
  using Row = const Check&;
  const auto info = [](Row check) -> const QuantityInfo& { return quantity_info(check.quantity); };
  const auto number = [](std::optional<double> Check::*value) {
    return [=](Row check) { return Cell{"", check.*value}; };
  };
  const auto share = [](double Check::*value) {
    return [=](Row check) { return Cell{"", check.*value}; };
  };
  Table table =
      ColumnsOf<Check>()
          .text("subject", "point", &Check::subject)
          .text("heading", "quantity", heading)
          .text("quantity", "", [=](Row check) { return std::string(info(check).key); })
          .programs()
          .text("verdict", "verdict",
                [](Row check) { return std::string(to_string(check.verdict)); })
          .real("baseline", sides.baseline,
                [](Row check) { return value_cell(check, check.baseline); })
          .detail(2)
          .real("current", sides.current,
                [](Row check) { return value_cell(check, check.current); })
          .detail(1)
          .interval("change", "change\n[95 % interval]", change_cell)
          .real("p_adjusted", "p\n(Holm)",
                [](Row check) {
                  const bool is_known = check.evidence != Replication::none;
                  return Cell{is_known ? p_text(check.adjusted_p) : "", check.adjusted_p};
                })
          .detail(3)
          .whole("baseline_runs", sides.baseline + "\nruns", &Check::baseline_runs)
          .layout()
          .whole("current_runs", sides.current + "\nruns", &Check::current_runs)
          .layout()
          .text("unit", "",
                [](Row check) {
                  const bool is_time = check.quantity == Quantity::time;
                  return check.unit ? check.unit->rate() : is_time ? "s" : "";
                })
          .programs()
          .text("evidence", "", [](Row check) { return std::string(to_string(check.evidence)); })
          .programs()
          .text("reason", "", sentence)
          .programs()
          .real("threshold", "", share(&Check::threshold))
          .programs()
          .real("p", "", share(&Check::p))
          .programs()
          .flag("worse_below_threshold", &Check::is_worse_below_threshold)
          .whole("busy_left_aside", "", &Check::busy_left_aside)
          .programs()
          .whole("outlying_left_aside", "", &Check::outlying_left_aside)
          .programs()
          .real("change_with_outlying", "",
                [](Row check) {
                  const StandingOut& out = check.standing_out;
                  return out.text.empty() ? Cell{} : Cell{"", out.change};
                })
          .programs()
          .flag("fresh", &Check::is_fresh)
          .real("first_change", "", number(&Check::first_change))
          .programs()
          .table(judgement.checks, "checks");
  table.naming = 2;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < judgement.checks.size(); ++i) {
    table.is_detail.push_back(!is_shown(judgement.checks[i]));
    if (!table.is_detail[i]) rows.push_back(i);
  }
  if (rows.size() <= kMostRows) return table;
  table.folded = fmt::format(
      "{} of {} rows: regressions, then undecided ones, then those of the least p; --verbose has "
      "all",
      kMostRows, rows.size());
  std::ranges::stable_sort(rows, {}, [&](std::size_t i) {
    const Check& check = judgement.checks[i];
    const int order = check.verdict == Verdict::regression  ? 0
                      : check.verdict == Verdict::undecided ? 1
                                                            : 2;
    return std::pair(order, check.adjusted_p);
  });
  table.is_folded.assign(judgement.checks.size(), false);
  for (std::size_t at = kMostRows; at < rows.size(); ++at) table.is_folded[rows[at]] = true;
  return table;
}

// "28 checks: 25 passed (3 certainly worse, below the threshold), 1 undecided, 2 regressions"
std::string counts_text(const Judgement& judgement) {
  std::map<Verdict, std::size_t> counts;
  std::size_t worse = 0;
  for (const Check& check : judgement.checks) {
    ++counts[check.verdict];
    worse += check.is_worse_below_threshold;
  }
  return fmt::format(
      "{}: {} passed{}, {} undecided, {}", counted(judgement.checks.size(), "check"),
      counts[Verdict::pass],
      worse > 0 ? fmt::format(" ({} certainly worse, below the threshold)", worse) : "",
      counts[Verdict::undecided], counted(counts[Verdict::regression], "regression"));
}

std::string unit_text(Replication evidence) {
  return evidence == Replication::paired     ? "rounds that both sides have"
         : evidence == Replication::sessions ? "means of sessions"
                                             : "runs";
}

// What is assumed of rounds and sessions. Of rounds that resemble their neighbours, the laboratory
// has more than one red gate in ten of equal builds (tests/laboratory/gate_test.cpp).
std::string independence_text(
    const Judgement& judgement,
    const std::map<std::string, std::set<std::string>>& quantities_by_unit) {
  if (!quantities_by_unit.contains(unit_text(Replication::paired))) return ", taken as independent";
  const auto& rate = judgement.red_if_resembling;
  return fmt::format(
      ", taken as independent (use --until-decided where they resemble their neighbours{})",
      rate ? fmt::format(": with a correlation of {}, equal builds that vary as these are red in "
                         "{} of such gates",
                         kUsualResemblance, *rate < 0.005 ? "less than 1 %" : whole_percent(*rate))
           : ": equal builds may be red more often than 5 %");
}

// What the intervals and p are, of the evidence that there is.
std::string statistics_note(const Judgement& judgement) {
  std::map<std::string, std::set<std::string>> quantities;  // by the units of their intervals
  for (const Check& check : judgement.checks) {
    if (!check.interval) continue;
    quantities[unit_text(check.evidence)].insert(
        std::string(quantity_info(check.quantity).heading));
  }
  std::vector<std::string> units;
  for (const auto& [unit, of] : quantities) {
    units.push_back(quantities.size() == 1
                        ? unit
                        : fmt::format("{} ({})", unit, join({of.begin(), of.end()}, ", ")));
  }
  const std::string p = fmt::format("p: two-sided, Holm-adjusted over all checks{}",
                                    judgement.is_confirmed ? ", of fresh runs over those" : "");
  if (units.empty()) return p;
  const std::string looks = fmt::format(
      "; both hold after any number of looks, and for times, fractions and communication also "
      "where rounds resemble their neighbours (correlation up to {})",
      kMostResemblance);
  return fmt::format(
      "interval: 95 % {} interval of the mean's change, of each check alone, over {}{}; {}{}",
      judgement.is_sequential ? "anytime-valid" : "t", join(units, " and "),
      judgement.is_sequential ? "" : independence_text(judgement, quantities), p,
      judgement.is_sequential ? looks : "");
}

// What a pass takes for granted, and how many hanging runs it would have shown.
std::string hangs_text(const Judgement& judgement) {
  std::size_t rounds = 0;
  for (const Check& check : judgement.checks) {
    const std::size_t own = check.standing_out.rounds;
    if (check.quantity == Quantity::time && (rounds == 0 || own < rounds)) rounds = own;
  }
  if (rounds == 0) return "";
  return fmt::format(
      "; that holds if all its runs are slower{}. If only some hang, 95 % of such gates do not "
      "pass where {} of the runs or more hang",
      judgement.is_sequential ? "" : " and rounds independent", whole_percent(share_shown(rounds)));
}

bool is_red_by_one_stage(const Judgement& judgement) {
  return !judgement.is_sequential && std::ranges::any_of(judgement.checks, [](const Check& check) {
    return check.verdict == Verdict::regression && check.evidence == Replication::paired;
  });
}

std::vector<std::string> legend(const Judgement& judgement) {
  std::vector<std::string> notes;
  if (!is_red_by_one_stage(judgement)) notes.push_back(statistics_note(judgement));
  std::map<std::string, std::string> thresholds;
  std::size_t hidden = 0;
  for (const Check& check : judgement.checks) {
    const QuantityInfo& info = quantity_info(check.quantity);
    thresholds[std::string(info.heading)] = change_text(check.threshold, info);
    hidden += !is_shown(check);
  }
  std::vector<std::string> parts;
  for (const auto& [heading, threshold] : thresholds) parts.push_back(heading + " " + threshold);
  notes.push_back("regression: worse by the threshold or more (" + join(parts, ", ") +
                  ") and p < 0.05; pass: less, and twice the threshold is excluded");
  if (hidden > 0) {
    notes.push_back(fmt::format("{} of other quantities passed", counted(hidden, "check")));
  }
  return notes;
}

// What a verdict is read by.
std::vector<std::string> caveats(const Judgement& judgement) {
  std::vector<std::string> notes;
  if (is_red_by_one_stage(judgement)) notes.push_back(statistics_note(judgement));
  // Until it was decided, every round was fresh.
  const bool is_fresh = judgement.rounds > 0 && !judgement.is_confirmed;
  const bool unconfirmed =
      !is_fresh && std::ranges::any_of(judgement.checks, [](const Check& check) {
        return check.verdict == Verdict::regression && !check.is_fresh &&
               check.evidence != Replication::none;
      });
  if (unconfirmed) notes.push_back("no fresh runs confirm the regression; --rerun makes them");
  if (judgement.sees) {
    notes.push_back(fmt::format(
        "at this noise, 95 % of such gates find a point that is slower by {} (the noisiest point, "
        "at its upper bound of noise); a smaller change may pass{}",
        change_text(*judgement.sees, quantity_info(Quantity::time)), hangs_text(judgement)));
  }
  notes.insert(notes.end(), judgement.notes.begin(), judgement.notes.end());
  return notes;
}

std::string headline(const Judgement& judgement, const GateSides& sides) {
  const auto called = [](const std::string& name, const std::string& place) {
    return place.empty() ? name : name + " " + place;
  };
  std::string when = judgement.is_confirmed ? ", after fresh runs" : "";
  if (judgement.rounds > 0) when += fmt::format(", after {} rounds", judgement.rounds);
  return fmt::format("gate: {} ({}{}); {} against {}", to_string(judgement.verdict()),
                     counts_text(judgement), when, called(sides.current, sides.current_place),
                     called(sides.baseline, sides.baseline_place));
}

// XML 1.0 has no other control characters.
std::string xml(const std::string& text) {
  return escaped(printable(text, "\n\t"),
                 {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}});
}

// Escapes the message of a workflow command.
std::string command_text(const std::string& text) {
  return escaped(text, {{'%', "%25"}, {'\r', "%0D"}, {'\n', "%0A"}});
}

// What CI systems show as the duration of a test: the mean seconds of a run of the current side.
double junit_seconds(const Check& check) {
  if (check.quantity != Quantity::time) return 0;
  return check.run_seconds ? *check.run_seconds : check.current.value_or(0);
}

// JUnit's schema wants 3 decimals at most.
std::string junit_case(const Check& check) {
  const QuantityInfo& info = quantity_info(check.quantity);
  const std::string begin =
      fmt::format("  <testcase classname=\"paceline.gate.{}\" name=\"{}\" time=\"{:.3f}\"",
                  info.key, xml(check.subject), junit_seconds(check));
  const std::string reason = xml(sentence(check));
  if (check.verdict == Verdict::pass) {
    if (reason.empty()) return begin + "/>\n";
    return fmt::format("{}>\n    <system-out>{}</system-out>\n  </testcase>\n", begin, reason);
  }
  const bool failed = check.verdict == Verdict::regression;
  return fmt::format(
      "{0}>\n    <{1} message=\"{2}\"{3}>{4} against {5}: {2}</{1}>\n  </testcase>\n", begin,
      failed ? "failure" : "skipped", reason, failed ? " type=\"regression\"" : "",
      xml(value_cell(check, check.current).text), xml(value_cell(check, check.baseline).text));
}

}  // namespace

Document gate_document(const Judgement& judgement, const GateSides& sides) {
  Document document{.name = "gate",
                    .title = headline(judgement, sides),
                    .warnings = judgement.warnings,
                    .is_brief = true};
  document.sections = {{.table = make_rows(judgement, sides),
                        .findings = collect_statements(judgement),
                        .caveats = caveats(judgement),
                        .notes = legend(judgement)}};
  Json facts = {{"verdict", to_string(judgement.verdict())},
                {"confirmed", judgement.is_confirmed},
                {"sequential", judgement.is_sequential},
                {"rounds", judgement.rounds > 0 ? Json(judgement.rounds) : Json(nullptr)},
                {"baseline", sides.baseline_place},
                {"current", sides.current_place},
                {"warnings", judgement.warnings},
                {"sees", number_or_null(judgement.sees)},
                {"notes", judgement.notes}};
  for (const auto& [quantity, threshold] : judgement.proposed) {
    facts["proposed_thresholds"][std::string(quantity_info(quantity).key)] = threshold;
  }
  document.facts = make_facts(std::move(facts));
  return document;
}

std::string gate_junit(const Judgement& judgement, const GateSides& sides) {
  std::map<Verdict, std::size_t> counts;
  std::string cases, warnings;
  double seconds = 0;
  for (const std::string& warning : judgement.warnings) {
    warnings += fmt::format("    <property name=\"warning\" value=\"{}\"/>\n", xml(warning));
  }
  if (!warnings.empty()) warnings = "  <properties>\n" + warnings + "  </properties>\n";
  for (const Check& check : judgement.checks) {
    ++counts[check.verdict];
    seconds += junit_seconds(check);
    cases += junit_case(check);
  }
  return fmt::format(
      "{}{} against {}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" "
      "time=\"{:.3f}\">\n{}{}</testsuite>\n</testsuites>\n",
      kJunitBeginning, xml(sides.current), xml(sides.baseline), judgement.checks.size(),
      counts[Verdict::regression], counts[Verdict::undecided], seconds, warnings, cases);
}

bool is_gate_markdown(std::string_view text) {
  return text.starts_with(kMarkdownBeginning);
}

bool is_gate_junit(std::string_view text) {
  return text.starts_with(kJunitBeginning);
}

std::string gate_annotations(const Judgement& judgement) {
  std::string text;
  for (const std::string& warning : judgement.warnings) {
    text += fmt::format("::warning title=paceline gate::{}\n", command_text(warning));
  }
  for (const Check& check : judgement.checks) {
    if (check.verdict == Verdict::pass && !check.is_worse_below_threshold) continue;
    text += fmt::format("::{} title=paceline gate {}::{} of {}: {}\n",
                        check.verdict == Verdict::pass         ? "notice"
                        : check.verdict == Verdict::regression ? "error"
                                                               : "warning",
                        to_string(check.verdict), quantity_info(check.quantity).heading,
                        command_text(check.subject), command_text(sentence(check)));
  }
  if (judgement.verdict() == Verdict::pass) {
    text += fmt::format("::notice title=paceline gate pass::{}\n",
                        command_text(counts_text(judgement)));
  }
  return text;
}

std::string steadiness_text(const Judgement& judgement) {
  Judgement times;
  double most = 0;
  for (const Check& check : judgement.checks) {
    if (check.quantity != Quantity::time) continue;
    times.checks.push_back(check);
    if (!check.interval) continue;
    most = std::max({most, std::abs(check.interval->low), std::abs(check.interval->high)});
  }
  if (most == 0) return "";
  const std::string reach = fmt::format("95 % intervals of the time of equal runs reach {}",
                                        change_text(most, quantity_info(Quantity::time)));
  switch (times.verdict()) {
    case Verdict::pass:
      return "steady enough for these thresholds: " + reach;
    case Verdict::undecided:
      return "not steady enough for these thresholds with so many rounds: " + reach;
    case Verdict::regression:
      break;
  }
  return "equal runs differ beyond the noise, so something else than the build does: " + reach;
}

}  // namespace paceline
