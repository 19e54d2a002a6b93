#include "cli/run_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "run/checkpoints.h"

namespace paceline {

namespace {

constexpr double kMostSeconds = 30.0 * 24 * 3600;
constexpr double kStartFactor = 5, kLeastStartSeconds = 600;

std::optional<double> parse_seconds(const std::string& option, const char* name,
                                    const Environment& environment, const char* variable) {
  const auto entry = environment.find(variable);
  const bool by_option = !option.empty();
  if (!by_option && (entry == environment.end() || entry->second.empty())) return std::nullopt;
  const std::string& text = by_option ? option : entry->second;
  const auto seconds = to_real(text);
  if (seconds && *seconds > 0 && *seconds <= kMostSeconds) return seconds;
  throw usage_error(fmt::format("\"{}\" is not a duration", text), by_option ? name : variable,
                    "give seconds, more than 0 and at most 30 days");
}

std::string help_group(const Parameter& parameter) {
  const std::string_view title = group_title(parameter.group);
  switch (parameter.shown) {
    case Shown::first:
      return kMostUsed;
    case Shown::often:
      return std::string(title);
    case Shown::rarely:
      break;
  }
  return rarely_used(title);
}

}  // namespace

void ParameterTexts::add_to(CLI::App& verb) {
  for (const Group group : groups()) {
    for (const Parameter& parameter : parameters()) {
      if (parameter.group != group) continue;
      std::string& text = texts_[std::string(parameter.name)];
      const std::string name = option_name(parameter.name);
      const std::string help = fmt::format("{} {}", parameter.help, default_text(parameter));
      const bool is_switch = parameter.kind == ValueKind::boolean;
      const std::string both = name + "{true},--no-" + name.substr(2) + "{false}";
      CLI::Option* option =
          is_switch ? verb.add_flag(both, text, help) : verb.add_option(name, text, help);
      if (!is_switch) option->type_name(type_text(parameter));
      option->group(help_group(parameter));
      if (parameter.name == "tensorboard") tensorboard_ = option->expected(0, 1);
    }
  }
}

Point ParameterTexts::parse() const {
  Point point;
  for (const auto& [name, text] : texts_) {
    if (!text.empty()) point.set(name, parsed_value(name, text, option_name(name)));
  }
  if (tensorboard_->count() > 0 && !point.find("tensorboard")) {
    point.set("tensorboard", std::string(kEventFolder));
  }
  return point;
}

void add_deadlines(CLI::App& verb, DeadlineTexts& texts, bool start) {
  const std::string group = start ? rarely_used("Deadlines") : "Deadlines";
  const auto add = [&](const char* name, std::string& text, const char* help) {
    verb.add_option(name, text, help)->type_name("SECONDS")->group(group);
  };
  add("--warn-seconds", texts.warn, "warn and name missing ranks after this time [default: 30]");
  add("--abort-seconds", texts.abort,
      "end the run after waiting this long for a rank [default: 120]");
  if (!start) return;
  add("--start-seconds", texts.start,
      "--abort-seconds until the first step has ended [default: 5 times --abort-seconds, at "
      "least 600]");
  add("--first-sum-seconds", texts.first_sum,
      "end the run if the backend cannot sum one bucket in this time before the first step "
      "[default: 30]");
}

Deadlines parse_deadlines(const DeadlineTexts& texts, const Environment& environment) {
  Deadlines deadlines;
  deadlines.abort_seconds =
      parse_seconds(texts.abort, "--abort-seconds", environment, "PACELINE_ABORT_SECONDS")
          .value_or(deadlines.abort_seconds);
  deadlines.warn_seconds =
      parse_seconds(texts.warn, "--warn-seconds", environment, "PACELINE_WARN_SECONDS")
          .value_or(std::min(deadlines.warn_seconds, deadlines.abort_seconds / 4));
  deadlines.start_seconds =
      parse_seconds(texts.start, "--start-seconds", environment, "PACELINE_START_SECONDS")
          .value_or(std::max(kLeastStartSeconds, kStartFactor * deadlines.abort_seconds));
  deadlines.first_sum_seconds = parse_seconds(texts.first_sum, "--first-sum-seconds", environment,
                                              "PACELINE_FIRST_SUM_SECONDS")
                                    .value_or(deadlines.first_sum_seconds);
  return deadlines;
}

}  // namespace paceline
