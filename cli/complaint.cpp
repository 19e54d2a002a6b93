#include "cli/complaint.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <regex>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "results/synonyms.h"

namespace paceline {

namespace {

std::vector<const CLI::App*> inner_verbs(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// What was named so far: the program, a verb of it, a verb of that.
struct Named {
  const CLI::App* app;
  std::string path = "paceline";
  std::size_t words = 1;
};

Named find_verb(const CLI::App& app, const std::vector<std::string>& command) {
  Named named{&app};
  for (bool deeper = true; deeper && named.words < command.size();) {
    deeper = false;
    for (const CLI::App* verb : inner_verbs(*named.app)) {
      if (command[named.words] != verb->get_name()) continue;
      named = {verb, named.path + " " + verb->get_name(), named.words + 1};
      deeper = true;
      break;
    }
  }
  return named;
}

std::vector<std::string> known_words(const CLI::App& verb) {
  std::vector<std::string> words;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  for (const CLI::App* sub : inner_verbs(verb)) words.push_back(sub->get_name());
  return words;
}

// Where no end was meant, the parser prints the type's last number, all 309 digits of it.
std::string bounds_text(const std::string& low, const std::string& high, const std::string& type) {
  constexpr double kNoEnd = 1e300;
  if (to_real(high).value_or(kNoEnd) < kNoEnd) return "from " + low + " to " + high;
  return type.find("POSITIVE") != std::string::npos ? "above 0"
         : low.starts_with("0")                     ? "0 or more"
                                                    : low + " or more";
}

std::string kind_of_value(const std::string& type) {
  if (type.starts_with("INT") || type.starts_with("UINT")) return "a whole number";
  for (const char* number : {"FLOAT", "SECONDS", "HOURS", "MIB"}) {
    if (type.starts_with(number)) return "a number";
  }
  return "such a value";
}

// "--ab" takes several values: "OLD NEW SPEC".
std::string allowed_values(const CLI::Option& option) {
  return fmt::format("{} values ({})", option.get_items_expected_min(), option.get_type_name());
}

std::string in_our_words(const CLI::App& verb, const std::string& said) {
  static const std::regex kRange("(.+?): Value (.*) not in range \\[?(\\S+) (?:to|-) (\\S+?)\\]?"),
      kNothing("(.+?): (\\d+) required .* missing"),
      kTooMany("(.+?): At Most 1 required but received (\\d+)"),
      kTooFew("(.+?): At least \\d+ required but received (\\d+)"),
      kMember("(.+?): (.*) not in \\{(.*)\\}"), kConversion("Could not convert: (.+?) = (.*)");
  std::smatch part;
  const auto option = [&] {
    const std::string name = part[1];
    const auto options = verb.get_options();
    const auto it = std::find_if(options.begin(), options.end(),
                                 [&](const CLI::Option* each) { return each->check_name(name); });
    return it == options.end() ? nullptr : *it;
  };
  const auto type = [&] {
    const CLI::Option* of = option();
    return of ? of->get_type_name() : "";
  };
  if (std::regex_match(said, part, kRange)) {
    if (!to_real(part[2].str())) {
      return fmt::format("{}: \"{}\" is not a number; give one {}{}", part[1].str(), part[2].str(),
                         bounds_text(part[3], part[4], type()),
                         type() == "SECONDS" ? ", in seconds" : "");
    }
    return fmt::format("{}: is {}, must be {}", part[1].str(), part[2].str(),
                       bounds_text(part[3], part[4], type()));
  }
  if (std::regex_match(said, part, kNothing)) {
    const CLI::Option* of = option();
    const bool several = of && of->get_items_expected_min() > 1;
    return fmt::format("{}: needs {}", part[1].str(), several ? allowed_values(*of) : "a value");
  }
  if (std::regex_match(said, part, kTooMany)) {
    return fmt::format("{}: is given {} times; give it once", part[1].str(), part[2].str());
  }
  if (std::regex_match(said, part, kTooFew)) {
    const CLI::Option* of = option();
    return fmt::format("{}: needs {}, has {}", part[1].str(),
                       of ? allowed_values(*of) : "more values", part[2].str());
  }
  if (std::regex_match(said, part, kMember)) {
    const std::vector<std::string> members = split(part[3].str(), ',');
    const auto near = nearest(part[2].str(), members);
    return fmt::format("{}: \"{}\" is not one of {}{}", part[1].str(), part[2].str(),
                       join(members, ", "), near ? "; did you mean " + *near + "?" : "");
  }
  if (std::regex_match(said, part, kConversion)) {
    return fmt::format("{}: is {}, must be {}", part[1].str(), part[2].str(),
                       kind_of_value(type()));
  }
  if (said == "A subcommand is required") {
    std::vector<std::string> verbs;
    for (const CLI::App* each : inner_verbs(verb)) {
      if (!each->get_group().empty()) verbs.push_back(each->get_name());
    }
    return "name a command: " + join(verbs, ", ");
  }
  return said;
}

}  // namespace

std::string complaint(const CLI::App& app, const CLI::ParseError& error,
                      const std::vector<std::string>& command) {
  const Named verb = find_verb(app, command);
  const std::string help = "see " + verb.path + " --help";
  const std::vector<std::string> known = known_words(*verb.app);
  for (std::size_t i = verb.words; i < command.size(); ++i) {
    const std::string word = command[i].substr(0, command[i].find('='));
    const bool is_flag = word.starts_with("--") && word.size() > 2;
    const bool is_verb =
        !inner_verbs(*verb.app).empty() && i == verb.words && !word.starts_with("-");
    if (!is_flag && !is_verb) continue;
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    const auto instead = find_replacement(is_verb ? "command" : "option", word);
    const auto near = nearest(word, known);
    return "unknown " + std::string(is_verb ? "command " : "option ") + word + "; " +
           (instead ? *instead
            : near  ? "did you mean " + *near + "?"
                    : help);
  }
  return in_our_words(*verb.app, error.what()) + "; " + help;
}

}  // namespace paceline
