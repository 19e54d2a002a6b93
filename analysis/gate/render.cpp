#include "analysis/gate/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/gate/quantity.h"
#include "analysis/render/render.h"
#include "analysis/statistics/anytime.h"
#include "engine/core/json.h"
#include "engine/core/output.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// What our own files begin with.
constexpr char kMarkdownBeginning[] = "## gate: ";
constexpr char kJunitBeginning[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<testsuites>\n"
    "<testsuite name=\"paceline gate: ";

std::string one_value(const std::optional<double>& value, const QuantityInfo& info) {
  return value ? value_text(*value, info) : "";
}

std::string interval_text(const Check& check, const QuantityInfo& info) {
  if (!check.interval) return "";
  auto [low, high] = *check.interval;
  if (!info.more_is_worse) std::swap(low, high);
  return fmt::format("[{}, {}]", signed_change_text(low, info), signed_change_text(high, info));
}

std::string sentence(const Check& check) {
  if (!check.is_fresh || !check.first_change) return check.reason;
  const std::string first =
      " (first runs: " + signed_change_text(*check.first_change, quantity_info(check.quantity)) +
      ")";
  const bool was_suspect = *check.first_change >= check.threshold;
  if (check.verdict == Verdict::pass) {
    const std::string unconfirmed = was_suspect ? "not confirmed by fresh runs" + first : "";
    return check.reason + (check.reason.empty() || unconfirmed.empty() ? "" : "; ") + unconfirmed;
  }
  if (check.verdict == Verdict::undecided)
    return "fresh runs did not decide: " + check.reason + first;
  return (was_suspect ? "confirmed by" : "seen in") + (" fresh runs: " + check.reason) + first;
}

// Checks of one verdict and reason, said once.
struct Said {
  Verdict verdict;
  std::string text;
  std::vector<std::string> of;  // "time of mnist-cnn gpus=2"
};

std::vector<Said> collect_statements(const Judgement& judgement) {
  std::vector<Said> all;
  for (const Check& check : judgement.checks) {
    const std::string text = sentence(check);
    if (text.empty()) continue;
    const std::string of =
        fmt::format("{} of {}", quantity_info(check.quantity).heading, check.subject);
    const auto it = std::find_if(all.begin(), all.end(), [&](const Said& said) {
      return said.verdict == check.verdict && said.text == text;
    });
    if (it == all.end()) {
      all.push_back({check.verdict, text, {of}});
    } else {
      it->of.push_back(of);
    }
  }
  return all;
}

std::string join_subjects(const Said& said) {
  constexpr std::size_t kShown = 3;
  return join_first(kShown, said.of, "; ");
}

const std::vector<std::string> kHeadings = {"quantity", "point",  "baseline",
                                            "current",  "change", "95 % interval",
                                            "p (Holm)", "runs",   "verdict"};

std::vector<std::string> make_cells(const Check& check) {
  const QuantityInfo& info = quantity_info(check.quantity);
  return {std::string(info.heading),
          check.subject,
          one_value(check.baseline, info),
          one_value(check.current, info),
          check.change ? signed_change_text(*check.change, info) : "",
          interval_text(check, info),
          check.evidence == Evidence::none ? "" : p_text(check.adjusted_p),
          fmt::format("{} + {}", check.baseline_runs, check.current_runs),
          std::string(to_string(check.verdict))};
}

// Time always; the rest where there is something to see.
bool is_shown(const Check& check) {
  return check.quantity == Quantity::time || check.verdict != Verdict::pass || check.is_fresh ||
         check.is_worse_below_threshold;
}

std::vector<const Check*> shown(const Judgement& judgement) {
  std::vector<const Check*> checks;
  for (const Check& check : judgement.checks) {
    if (is_shown(check)) checks.push_back(&check);
  }
  return checks;
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

std::string unit_text(Evidence evidence) {
  return evidence == Evidence::paired     ? "rounds that both sides have"
         : evidence == Evidence::sessions ? "means of sessions"
                                          : "runs";
}

// What is assumed of rounds and sessions. Of rounds that resemble their neighbours, the laboratory
// has more than one red gate in ten of equal builds (tests/laboratory/gate_test.cpp).
std::string independence_text(
    const std::map<std::string, std::set<std::string>>& quantities_by_unit) {
  if (!quantities_by_unit.contains(unit_text(Evidence::paired))) return ", taken as independent";
  return ", taken as independent (where they resemble their neighbours, equal builds may be red "
         "more often than 5 %: --until-decided allows for that)";
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
      "; both hold however often one looks, of times, fractions and communication also where "
      "rounds resemble their neighbours (correlation up to {})",
      kMostResemblance);
  return fmt::format(
      "interval: 95 % {} interval of the change of the mean, of each check by itself, over {}{}; "
      "{}{}",
      judgement.is_sequential ? "anytime-valid" : "t", join(units, " and "),
      judgement.is_sequential ? "" : independence_text(quantities), p,
      judgement.is_sequential ? looks : "");
}

std::vector<std::string> legend(const Judgement& judgement) {
  std::vector<std::string> notes = {statistics_note(judgement)};
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
  // Until it was decided, every round was fresh.
  const bool is_fresh = judgement.rounds > 0 && !judgement.is_confirmed;
  const bool unconfirmed =
      !is_fresh &&
      std::any_of(judgement.checks.begin(), judgement.checks.end(), [](const Check& check) {
        return check.verdict == Verdict::regression && !check.is_fresh &&
               check.evidence != Evidence::none;
      });
  if (unconfirmed) notes.push_back("no fresh runs confirm the regression; --rerun makes them");
  if (judgement.sees) {
    notes.push_back(fmt::format(
        "at this noise, a point slower by {} is red in 95 % of such gates (the noisiest point, as "
        "noisy as its runs leave open); one that is slower by less may pass",
        change_text(*judgement.sees, quantity_info(Quantity::time))));
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

std::string wrap_sentence(const std::string& sentence, const TextStyle& style) {
  return wrapped(printable(sentence), style.width);
}

std::string xml(const std::string& text) {
  std::string escaped;
  for (const char c : printable(text, "\n\t")) {  // XML 1.0 has no other control characters
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// Of a workflow command's message.
std::string command_text(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    escaped += c == '%' ? "%25" : c == '\r' ? "%0D" : c == '\n' ? "%0A" : std::string(1, c);
  }
  return escaped;
}

Json to_json(const Check& check) {
  return {{"subject", check.subject},
          {"quantity", quantity_info(check.quantity).key},
          {"verdict", to_string(check.verdict)},
          {"evidence", to_string(check.evidence)},
          {"reason", sentence(check)},
          {"baseline", number_or_null(check.baseline)},
          {"current", number_or_null(check.current)},
          {"change", number_or_null(check.change)},
          {"change_low", check.interval ? Json(check.interval->low) : Json(nullptr)},
          {"change_high", check.interval ? Json(check.interval->high) : Json(nullptr)},
          {"threshold", check.threshold},
          {"p", check.p},
          {"p_adjusted", check.adjusted_p},
          {"baseline_runs", check.baseline_runs},
          {"current_runs", check.current_runs},
          {"worse_below_threshold", check.is_worse_below_threshold},
          {"busy_left_aside", check.busy_left_aside},
          {"outlying_left_aside", check.outlying_left_aside},
          {"fresh", check.is_fresh},
          {"first_change", number_or_null(check.first_change)}};
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
  return fmt::format(
      "{0}>\n    <{1} message=\"{2}\" type=\"{3}\">{4} against {5}: {2}</{1}>\n  </testcase>\n",
      begin, check.verdict == Verdict::regression ? "failure" : "error", reason,
      to_string(check.verdict), xml(one_value(check.current, info)),
      xml(one_value(check.baseline, info)));
}

}  // namespace

std::string gate_text(const Judgement& judgement, const GateSides& sides, const TextStyle& style) {
  const char* bold = style.colours ? kBold : "";
  const char* plain = style.colours ? kPlain : "";
  std::vector<std::vector<std::string>> rows = {kHeadings};
  rows[0][2] = sides.baseline;
  rows[0][3] = sides.current;
  for (const Check* check : shown(judgement)) rows.push_back(make_cells(*check));
  std::string text =
      fmt::format("{}{}{}", bold, wrap_sentence(headline(judgement, sides), style), plain);
  for (const std::string& warning : judgement.warnings) {
    text += wrap_sentence("warning: " + warning, style);
  }
  text += '\n' + aligned(rows, 2, style.width) + '\n';
  const std::vector<Said> all_said = collect_statements(judgement);
  for (const Said& said : all_said) {
    text += wrap_sentence(
        fmt::format("{}: {}: {}", to_string(said.verdict), join_subjects(said), said.text), style);
  }
  if (!all_said.empty()) text += '\n';
  for (const std::string& note : legend(judgement)) {
    text += wrapped(printable(note), style.width, "- ");
  }
  return text;
}

std::string gate_markdown(const Judgement& judgement, const GateSides& sides) {
  std::string text = fmt::format("## {}\n\n", markdown_text(headline(judgement, sides)));
  for (const std::string& warning : judgement.warnings) {
    text += fmt::format("**Warning**: {}\n\n", markdown_text(warning));
  }
  text += '|';
  std::vector<std::string> headings = kHeadings;
  headings[2] = sides.baseline;
  headings[3] = sides.current;
  for (const std::string& heading : headings) text += fmt::format(" {} |", markdown_text(heading));
  text += "\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n";
  for (const Check* check : shown(judgement)) {
    text += '|';
    for (const std::string& value : make_cells(*check))
      text += fmt::format(" {} |", markdown_text(value));
    text += '\n';
  }
  text += '\n';
  for (const Said& said : collect_statements(judgement)) {
    text += fmt::format("- **{}**: {}: {}\n", to_string(said.verdict),
                        markdown_text(join_subjects(said)), markdown_text(said.text));
  }
  for (const std::string& note : legend(judgement))
    text += fmt::format("- {}\n", markdown_text(note));
  return text;
}

std::string gate_json(const Judgement& judgement, const GateSides& sides) {
  Json checks = Json::array();
  for (const Check& check : judgement.checks) checks.push_back(to_json(check));
  Json document = {{"schema", 1},
                   {"verdict", to_string(judgement.verdict())},
                   {"confirmed", judgement.is_confirmed},
                   {"sequential", judgement.is_sequential},
                   {"rounds", judgement.rounds > 0 ? Json(judgement.rounds) : Json(nullptr)},
                   {"baseline", sides.baseline_place},
                   {"current", sides.current_place},
                   {"warnings", judgement.warnings},
                   {"checks", checks},
                   {"sees", number_or_null(judgement.sees)},
                   {"notes", judgement.notes}};
  for (const auto& [quantity, threshold] : judgement.proposed) {
    document["proposed_thresholds"][std::string(quantity_info(quantity).key)] = threshold;
  }
  return json_text(document, 2) + '\n';
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
      "{}{} against {}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\" "
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
      return "steady enough for these thresholds: " + reach + "\n";
    case Verdict::undecided:
      return "not steady enough for these thresholds with so many rounds: " + reach + "\n";
    case Verdict::regression:
      break;
  }
  return "equal runs differ beyond the noise, so something else than the build does: " + reach +
         "\n";
}

}  // namespace paceline
