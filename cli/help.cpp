#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <memory>
#include <vector>

#include "cli/verb.h"
#include "engine/core/output.h"
#include "engine/core/pattern.h"
#include "engine/core/text.h"
#include "results/names.h"

namespace paceline {

namespace {

constexpr std::size_t kNames = 34, kColumns = 100;
constexpr char kRarely[] = ", rarely used", kGeneral[] = "Options";

using Options = std::vector<const CLI::Option*>;

bool is_repeated(const CLI::Option& option) {
  return option.get_items_expected_max() >= CLI::detail::expected_max_vector_size;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// "N", "{a,b}", "FILE": CLI11 writes "INT:INT in [1 - 1000]", "TEXT:{a,b}", "FILE:POSITIVE".
std::string type_name(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.starts_with("TEXT:{")) return type.substr(5);
  const std::string kind = type.starts_with("{") ? type : type.substr(0, type.find(':'));
  if (kind == "INT" || kind == "UINT") return "N";
  if (kind == "FLOAT") return "X";
  return kind;
}

std::string positional_name(const CLI::Option& option) {
  return upper(option.get_name(true)) + (is_repeated(option) ? "..." : "");
}

// "--record FILE", "--[no-]overlap", "-h, --help".
std::string option_names(const CLI::Option& option) {
  if (option.get_positional()) return positional_name(option);
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  const auto& words = option.get_lnames();
  for (const std::string& name : words) {
    if (name.starts_with("no-") && std::count(words.begin(), words.end(), name.substr(3))) continue;
    const bool both = std::count(words.begin(), words.end(), "no-" + name) > 0;
    names.push_back((both ? "--[no-]" : "--") + name);
  }
  std::string text = join(names, ", ");
  if (option.get_items_expected_max() <= 0) return text;
  const std::string type = type_name(option);
  text += option.get_items_expected_min() == 0 ? " [" + type + "]" : " " + type;
  return is_repeated(option) ? text + "..." : text;
}

std::string option_text(const CLI::Option& option) {
  std::string text = option.get_description();
  if (option.get_required() && !option.get_positional()) text += " (required)";
  std::string initial = option.get_default_str();
  if (initial.starts_with('[')) initial = initial.substr(1, initial.size() - 2);  // of a list
  if (!initial.empty()) text += fmt::format(" [default: {}]", initial);
  return text;
}

std::string entry(const std::string& name, const std::string& text) {
  const std::string left = "  " + name;
  std::string wrapped_text = wrapped(text, kColumns - kNames, "", 0);
  while (wrapped_text.ends_with('\n')) wrapped_text.pop_back();
  std::string line = left.size() + 2 <= kNames ? left + std::string(kNames - left.size(), ' ')
                                               : left + "\n" + std::string(kNames, ' ');
  for (const char c : wrapped_text) {
    line += c;
    if (c == '\n') line += std::string(kNames, ' ');
  }
  return line + "\n";
}

std::string title(const std::string& text) {
  if (!colours_welcome(STDOUT_FILENO)) return text;
  return kBold + text + kPlain;
}

class Help : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string text = app->get_description() + "\n\n" + usage(*app, name);
    text += section("", options(*app, [](const CLI::Option& it) { return it.get_positional(); }));
    text += verbs(*app);
    bool has_more = false;
    for (const std::string& group : list_groups(*app)) {
      const Options often = of_group(*app, group), rarely = of_group(*app, rarely_used(group));
      Options shown = often;
      if (mode == CLI::AppFormatMode::All) shown.insert(shown.end(), rarely.begin(), rarely.end());
      has_more = has_more || shown.size() < often.size() + rarely.size();
      text += section(group, shown);
    }
    if (has_more) text += fmt::format("\n{} --help-all shows all options.\n", name);
    const std::string footer = app->get_footer();
    return footer.empty() ? text : text + "\n" + footer + "\n";
  }

 private:
  template <typename Wanted>
  static Options options(const CLI::App& app, const Wanted& wanted) {
    Options found = app.get_options(
        [&](const CLI::Option* it) { return !it->get_group().empty() && wanted(*it); });
    const auto is_of_every_verb = [](const CLI::Option* it) {
      return it->check_name("--help") || it->check_name("--help-all") ||
             it->check_name("--version");
    };
    std::stable_partition(found.begin(), found.end(),
                          [&](const CLI::Option* it) { return !is_of_every_verb(it); });
    return found;
  }

  static Options of_group(const CLI::App& app, const std::string& group) {
    return options(app, [&](const CLI::Option& it) {
      return !it.get_positional() && it.get_group() == group;
    });
  }

  // In the order in which they were added, what belongs to no task last.
  static std::vector<std::string> list_groups(const CLI::App& app) {
    std::vector<std::string> groups;
    for (std::string group : app.get_groups()) {
      if (group.ends_with(kRarely)) group.resize(group.size() - std::string_view(kRarely).size());
      if (!group.empty() && !std::ranges::count(groups, group)) groups.push_back(group);
    }
    std::stable_partition(groups.begin(), groups.end(),
                          [](const std::string& group) { return group == kMostUsed; });
    const auto general = std::find(groups.begin(), groups.end(), kGeneral);
    if (general != groups.end()) std::rotate(general, general + 1, groups.end());
    return groups;
  }

  static std::string usage(const CLI::App& app, const std::string& name) {
    std::string text = title("Usage:") + " " + name;
    if (!verbs(app).empty()) return text + " COMMAND [OPTIONS]\n";
    text += " [OPTIONS]";
    for (const CLI::Option* each : app.get_options()) {
      if (!each->get_positional() || each->get_group().empty()) continue;
      text +=
          each->get_required() ? " " + positional_name(*each) : " [" + positional_name(*each) + "]";
    }
    return text + "\n";
  }

  static std::string section(const std::string& name, const Options& options) {
    if (options.empty()) return "";
    std::string text = name.empty() ? "\n" : "\n" + title(name + ":") + "\n";
    for (const CLI::Option* each : options) text += entry(option_names(*each), option_text(*each));
    return text;
  }

  static std::string verbs(const CLI::App& app) {
    std::vector<std::string> groups;
    std::string text;
    const auto all = app.get_subcommands([](const CLI::App*) { return true; });
    for (const CLI::App* verb : all) {
      const std::string group = verb->get_group();
      if (group.empty() || std::find(groups.begin(), groups.end(), group) != groups.end()) continue;
      groups.push_back(group);
      text += "\n" + title((group == "Subcommands" ? "Commands" : group) + ":") + "\n";
      for (const CLI::App* each : all) {
        if (each->get_group() == group) text += entry(each->get_name(), each->get_description());
      }
    }
    return text;
  }
};

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
  std::vector<std::string> part;
  const auto matches = [&](const char* pattern) {
    const auto found = Pattern(pattern).match(said);
    if (found) part = *found;
    return found.has_value();
  };
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
  if (matches("(.+?): Value (.*) not in range \\[?(\\S+) (?:to|-) (\\S+?)\\]?")) {
    if (!to_real(part[2])) {
      return fmt::format("{}: \"{}\" is not a number; give one {}{}", part[1], part[2],
                         bounds_text(part[3], part[4], type()),
                         type() == "SECONDS" ? ", in seconds" : "");
    }
    return fmt::format("{}: is {}, must be {}", part[1], part[2],
                       bounds_text(part[3], part[4], type()));
  }
  if (matches("(.+?): (\\d+) required .* missing")) {
    const CLI::Option* of = option();
    const bool several = of && of->get_items_expected_min() > 1;
    return fmt::format("{}: needs {}", part[1], several ? allowed_values(*of) : "a value");
  }
  if (matches("(.+?): At Most 1 required but received (\\d+)")) {
    return fmt::format("{}: is given {} times; give it once", part[1], part[2]);
  }
  if (matches("(.+?): At least \\d+ required but received (\\d+)")) {
    const CLI::Option* of = option();
    return fmt::format("{}: needs {}, has {}", part[1], of ? allowed_values(*of) : "more values",
                       part[2]);
  }
  if (matches("(.+?): (.*) not in \\{(.*)\\}")) {
    const std::vector<std::string> members = split(part[3], ',');
    const auto near = nearest(part[2], members);
    return fmt::format("{}: \"{}\" is not one of {}{}", part[1], part[2], join(members, ", "),
                       near ? "; did you mean " + *near + "?" : "");
  }
  if (matches("Could not convert: (.+?) = (.*)")) {
    return fmt::format("{}: is {}, must be {}", part[1], part[2], kind_of_value(type()));
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

void set_help_format(CLI::App& app) {
  app.formatter(std::make_shared<Help>());
  app.set_help_flag("-h,--help", "show this help");
}

std::string rarely_used(std::string_view title) {
  return std::string(title) + kRarely;
}

void add_help_all(CLI::App& verb) {
  verb.set_help_all_flag("--help-all", "show all options");
}

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
