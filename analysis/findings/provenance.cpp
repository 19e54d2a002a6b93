#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/findings/findings.h"
#include "engine/core/text.h"
#include "results/names.h"

namespace paceline {

namespace {

constexpr std::size_t kMostValues = 12;  // of one fact

// The words of a command as a POSIX shell splits them, without its expansions.
std::vector<std::string> split_words(const std::string& command) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    const bool escapes = c == '\\' && quote != '\'' && i + 1 < command.size();
    if (escapes) {
      word += command[++i];
      in_word = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word) words.push_back(word);
  return words;
}

// Where its record, logs and state go is no part of what a run measures.
bool is_a_place(const std::string& option) {
  static const std::set<std::string, std::less<>> kPlaces = {"--store", "--context", "--record",
                                                             "--run-dir", "--log-dir"};
  return kPlaces.contains(option);
}

bool is_about_printing(const std::string& word) {
  return word == "--quiet" || word == "--verbose" || word == "--json" || word == "--log-ranks";
}

bool is_workload(const std::string& name) {
  const auto& all = known_names().workloads;
  return std::any_of(all.begin(), all.end(), [&](const Name& each) { return each.name == name; });
}

std::string derived_command(const Run& run) {
  if (!is_workload(run->workload)) return "";
  std::vector<std::string> words = {"paceline", "train", shell_quote(run->workload)};
  for (const auto& [name, value] : run->parameters.values()) {
    const std::string option = option_name(name);
    if (const bool* on = std::get_if<bool>(&value)) {
      words.push_back(*on ? option : "--no-" + option.substr(2));
    } else {
      words.push_back(option + "=" + shell_quote(to_text(value)));
    }
  }
  return join(words, " ");
}

ProvenanceFact fact_of_counts(const std::string& name,
                              const std::map<std::string, std::size_t>& counts) {
  ProvenanceFact fact{name, {counts.begin(), counts.end()}};
  std::stable_sort(fact.values.begin(), fact.values.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (fact.values.size() <= kMostValues) return fact;
  std::size_t rest = 0;
  for (std::size_t i = kMostValues; i < fact.values.size(); ++i) rest += fact.values[i].second;
  const std::size_t others = fact.values.size() - kMostValues;
  fact.values.resize(kMostValues);
  fact.values.emplace_back(fmt::format("{} more", others), rest);
  return fact;
}

}  // namespace

std::vector<ProvenanceFact> provenance(const Study& study) {
  std::map<std::string, std::map<std::string, std::size_t>> counts;
  std::string first, last;
  for (const Row& row : study.rows) {
    for (const Run& run : row.runs) {
      for (const auto& [name, value] : run.origin) ++counts[name][value];
      if (run->provenance.started_at.empty()) continue;
      if (first.empty() || run->provenance.started_at < first) first = run->provenance.started_at;
      last = std::max(last, run->provenance.started_at);
    }
  }
  std::vector<ProvenanceFact> facts;
  for (const std::string& name : origin_names()) {
    if (counts.contains(name)) facts.push_back(fact_of_counts(name, counts[name]));
  }
  if (!first.empty()) {
    const auto runs = summed(study.rows, [](const Row& row) { return row.runs.size(); });
    facts.push_back({"started", {{first == last ? first : first + " to " + last, runs}}});
  }
  return facts;
}

std::string format_sentence(const ProvenanceFact& fact) {
  const auto parts = mapped(fact.values, [](const auto& each) {
    return fmt::format("{} ({})", each.first, counted(each.second, "run"));
  });
  return fact.name + ": " + join(parts, "; ");
}

std::string typed_command(const std::string& recorded) {
  const std::vector<std::string> words = split_words(recorded);
  if (words.size() < 3 || (words[1] != "train" && words[1] != "bench")) return "";
  std::vector<std::string> kept = {"paceline"};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string option = words[i].substr(0, words[i].find('='));
    if (is_about_printing(words[i])) continue;
    if (is_a_place(option)) {
      if (option == words[i]) ++i;  // its value is the next word
      continue;
    }
    kept.push_back(shell_quote(words[i]));
  }
  return join(kept, " ");
}

std::string find_command(const Row& row) {
  const Run& run = row.first();
  if (run->provenance.program) return "";  // a run of it needs the study around it
  if (const std::string recorded = typed_command(run->provenance.command); !recorded.empty())
    return recorded;
  return run.made_elsewhere() ? "" : derived_command(run);
}

}  // namespace paceline
