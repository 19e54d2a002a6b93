// paceline completion bash|zsh|fish: a script for the shell, made from the verbs as they are.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "analysis/findings/best.h"
#include "analysis/gate/quantity.h"
#include "analysis/history/series.h"
#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "results/names.h"
#include "results/parameters.h"
#include "results/shipped.h"

namespace paceline {

namespace {

enum class Takes { nothing, few, number, any };  // any: a file's name, as far as a shell knows

struct OptionWords {
  std::string name;  // "--backend"
  Takes takes = Takes::nothing;
  std::vector<std::string> values;  // of `few`; "gpus=" where more is to follow
};

struct Verb {
  std::string name, summary;
  std::vector<OptionWords> options;
  std::vector<std::string>
      choices;  // verbs of this verb, values of positionals that have a fixed few
};

// CLI11 shows the values that IsMember allows as "TEXT:{a,b}".
std::vector<std::string> listed_values(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto open = type.find('{'), close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return split(type.substr(open + 1, close - open - 1), ',');
}

std::vector<std::string> built(const std::vector<Name>& names) {
  return mapped_if(names, &Name::built, &Name::name);
}

// Of what an option, its value or a positional is named after.
std::vector<std::string> names_of_kind(const std::string& kind) {
  if (kind == "workload") return built(known_names().workloads);
  if (kind == "backend") return built(known_names().backends);
  if (kind == "device") return built(known_names().devices);
  if (kind == "spec" || kind == "SPEC") return shipped_names("sweeps");
  if (kind == "site") return shipped_names("slurm/sites");
  if (kind == "columns") return split(kColumnGroups, ',');
  std::vector<std::string> keys;
  if (kind == "QUANTITY") {
    for (const QuantityInfo& info : quantities()) keys.emplace_back(info.key);
  } else if (kind == "metric") {
    for (const HistoryMetricInfo& info : history_metrics()) {
      if (info.metric != HistoryMetric::slowness) keys.emplace_back(info.key);
    }
  } else if (kind == "least") {
    for (const CostMetric& metric : expenses()) keys.emplace_back(metric.name);
  }
  return keys;
}

std::vector<std::string> assignments() {
  return mapped_if(parameters(), &Parameter::identity,
                   [](const Parameter& each) { return std::string(each.name) + '='; });
}

OptionWords option_words(const CLI::Option& option, const std::string& name) {
  OptionWords words{"--" + name, Takes::few, listed_values(option)};
  if (option.get_items_expected_max() == 0) return {words.name, Takes::nothing, {}};
  if (!words.values.empty()) return words;
  std::string key = name;
  std::replace(key.begin(), key.end(), '-', '_');
  words.values = names_of_kind(key);
  if (words.values.empty()) words.values = names_of_kind(option.get_type_name());
  if (option.get_type_name().ends_with("=VALUE")) words.values = assignments();
  const Parameter* parameter = find_parameter(key);
  if (parameter != nullptr && parameter->values.find('|') != std::string_view::npos) {
    words.values = split(parameter->values, '|');
  }
  if (!words.values.empty()) return words;
  const std::string type = option.get_type_name();
  const bool is_number =
      type.starts_with("INT") || type.starts_with("FLOAT") || type.starts_with("SECONDS") ||
      type.starts_with("HOURS") || type.starts_with("MIB") || type == "N" ||
      (parameter != nullptr &&
       (parameter->kind == ValueKind::integer || parameter->kind == ValueKind::real));
  words.takes = is_number ? Takes::number : Takes::any;
  return words;
}

// A verb of a verb is offered as a choice, with its options.
void add_inner(Verb& verb, const Verb& inner) {
  verb.choices.push_back(inner.name);
  for (const OptionWords& option : inner.options) {
    if (std::ranges::count(verb.options, option.name, &OptionWords::name) == 0) {
      verb.options.push_back(option);
    }
  }
}

std::vector<Verb> list_verbs(const CLI::App& app) {
  std::vector<Verb> verbs;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_group().empty()) continue;  // for scripts, not for people
    Verb verb{sub->get_name(), sub->get_description(), {}, {}};
    for (const CLI::Option* option : sub->get_options()) {
      if (option->get_group().empty()) continue;
      for (const std::string& name : option->get_lnames()) {
        verb.options.push_back(option_words(*option, name));
      }
      if (!option->get_positional()) continue;
      for (const auto& values : {listed_values(*option), names_of_kind(option->get_name())}) {
        verb.choices.insert(verb.choices.end(), values.begin(), values.end());
      }
    }
    for (const Verb& inner : list_verbs(*sub)) add_inner(verb, inner);
    verbs.push_back(verb);
  }
  return verbs;
}

// What may follow an option: a few words, nothing that a shell knows, or files (its default).
void print_bash_values(const Verb& verb) {
  std::vector<std::string> numbers, files;
  for (const OptionWords& option : verb.options) {
    const std::string pattern = '"' + verb.name + ' ' + option.name + '"';
    if (option.takes == Takes::few) {
      print("    {}) words=\"{}\"; after=value ;;\n", pattern, join(option.values, " "));
    } else if (option.takes == Takes::number) {
      numbers.push_back(pattern);
    } else if (option.takes == Takes::any) {
      files.push_back(pattern);
    }
  }
  if (!numbers.empty()) print("    {}) after=number ;;\n", join(numbers, "|"));
  if (!files.empty()) print("    {}) after=file ;;\n", join(files, "|"));
}

void print_bash(const std::vector<Verb>& verbs) {
  std::vector<std::string> names = mapped(verbs, &Verb::name);
  print(R"(_paceline() {{
  local words= after= cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}"
  if [ "$cur" = "=" ]; then
    cur=
  elif [ "$prev" = "=" ]; then
    prev="${{COMP_WORDS[COMP_CWORD-2]}}"
  fi
  COMPREPLY=()
  case "${{COMP_WORDS[1]}} $prev" in
)");
  for (const Verb& verb : verbs) print_bash_values(verb);
  print(R"(  esac
  if [ "$after" = file ]; then return; fi
  if [ "$after" = number ]; then compopt +o default 2> /dev/null; return; fi
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{} --help --version"
  elif [ -z "$after" ]; then
    case "${{COMP_WORDS[1]}} $cur" in
)",
        join(names, " "));
  for (const Verb& verb : verbs) {
    print("      \"{} -\"*) words=\"{}\" ;;\n", verb.name,
          join(mapped(verb.options, &OptionWords::name), " "));
    if (!verb.choices.empty()) {
      print("      \"{} \"*) words=\"{}\" ;;\n", verb.name, join(verb.choices, " "));
    }
  }
  print(R"(    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  if [[ "${{COMPREPLY[0]-}}" == *= ]]; then compopt -o nospace 2> /dev/null; fi
}}
complete -o default -F _paceline paceline
)");
}

void print_fish(const std::vector<Verb>& verbs) {
  for (const Verb& verb : verbs) {
    print("complete -c paceline -n __fish_use_subcommand -a {} -d {}\n", verb.name,
          shell_quote(verb.summary));
    for (const OptionWords& option : verb.options) {
      std::string rest;
      if (option.takes == Takes::few) rest = " -x -a " + shell_quote(join(option.values, " "));
      if (option.takes == Takes::number) rest = " -x";
      if (option.takes == Takes::any) rest = " -r";
      print("complete -c paceline -n '__fish_seen_subcommand_from {}' -l {}{}\n", verb.name,
            option.name.substr(2), rest);
    }
    for (const std::string& choice : verb.choices) {
      print("complete -c paceline -n '__fish_seen_subcommand_from {}' -a {}\n", verb.name, choice);
    }
  }
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("completion", "Print a completion script for your shell");
  auto shell = std::make_shared<std::string>();
  verb->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb->footer("Example:\n  source <(paceline completion bash)");
  verb->callback([shell, &app, &action] {
    action = [shell, &app] {
      const auto verbs = list_verbs(app);
      if (*shell == "zsh") print("autoload -U +X bashcompinit && bashcompinit\n");
      if (*shell != "fish") print_bash(verbs);
      if (*shell == "fish") print_fish(verbs);
      return 0;
    };
  });
}

}  // namespace paceline
