// paceline completion bash|zsh|fish: a script for the shell, made from the verbs as they are.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/verb.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

struct Verb {
  std::string name, summary;
  std::vector<std::string> options;
  std::vector<std::string>
      choices;  // verbs of this verb, values of positionals that have a fixed few

  std::string words() const { return join(options, " ") + " " + join(choices, " "); }
};

// CLI11 shows the values that IsMember allows as "TEXT:{a,b}".
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto open = type.find('{'), close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return split(type.substr(open + 1, close - open - 1), ',');
}

// A verb of a verb is offered as a choice, with its options.
void add_inner(Verb& verb, const Verb& inner) {
  verb.choices.push_back(inner.name);
  for (const std::string& option : inner.options) {
    if (std::find(verb.options.begin(), verb.options.end(), option) == verb.options.end()) {
      verb.options.push_back(option);
    }
  }
}

std::vector<Verb> verbs_of(const CLI::App& app) {
  std::vector<Verb> verbs;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_group().empty()) continue;  // for scripts, not for people
    Verb verb{sub->get_name(), sub->get_description(), {}, {}};
    for (const CLI::Option* option : sub->get_options()) {
      if (option->get_group().empty()) continue;
      for (const std::string& name : option->get_lnames()) verb.options.push_back("--" + name);
      if (!option->get_positional()) continue;
      for (const std::string& choice : choices_of(*option)) verb.choices.push_back(choice);
    }
    for (const Verb& inner : verbs_of(*sub)) add_inner(verb, inner);
    verbs.push_back(verb);
  }
  return verbs;
}

void print_bash(const std::vector<Verb>& verbs) {
  std::vector<std::string> names;
  for (const Verb& verb : verbs) names.push_back(verb.name);
  fmt::print("_paceline() {{\n  local words\n  case \"${{COMP_WORDS[1]}}\" in\n");
  for (const Verb& verb : verbs) {
    fmt::print("    {}) words=\"{}\" ;;\n", verb.name, verb.words());
  }
  fmt::print("    *) words=\"--help --version\" ;;\n  esac\n");
  fmt::print("  [ \"$COMP_CWORD\" -eq 1 ] && words=\"{} --help --version\"\n", join(names, " "));
  fmt::print("  COMPREPLY=($(compgen -W \"$words\" -- \"${{COMP_WORDS[COMP_CWORD]}}\"))\n}}\n");
  fmt::print("complete -o default -F _paceline paceline\n");
}

void print_zsh(const std::vector<Verb>& verbs) {
  fmt::print("autoload -U +X bashcompinit && bashcompinit\n");
  print_bash(verbs);
}

void print_fish(const std::vector<Verb>& verbs) {
  for (const Verb& verb : verbs) {
    fmt::print("complete -c paceline -n __fish_use_subcommand -a {} -d {}\n", verb.name,
               shell_quote(verb.summary));
    for (const std::string& option : verb.options) {
      fmt::print("complete -c paceline -n '__fish_seen_subcommand_from {}' -l {}\n", verb.name,
                 option.substr(2));
    }
    for (const std::string& choice : verb.choices) {
      fmt::print("complete -c paceline -n '__fish_seen_subcommand_from {}' -a {}\n", verb.name,
                 choice);
    }
  }
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("completion", "A completion script for your shell");
  auto shell = std::make_shared<std::string>();
  verb->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb->footer("Example:\n  source <(paceline completion bash)");
  verb->callback([shell, &app, &action] {
    action = [shell, &app] {
      const auto verbs = verbs_of(app);
      if (*shell == "bash") print_bash(verbs);
      if (*shell == "zsh") print_zsh(verbs);
      if (*shell == "fish") print_fish(verbs);
      return 0;
    };
  });
}

}  // namespace paceline
