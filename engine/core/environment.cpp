#include "engine/core/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <string_view>

namespace paceline {

namespace {

// The last two make teams of threads smaller than asked.
constexpr std::string_view kOpenMpVariables[] = {"OMP_PROC_BIND",     "OMP_PLACES",
                                                 "GOMP_CPU_AFFINITY", "KMP_AFFINITY",
                                                 "OMP_THREAD_LIMIT",  "OMP_MAX_ACTIVE_LEVELS"};

char* entries_set_aside[std::size(kOpenMpVariables)];  // "OMP_PLACES=cores", or null

bool is_entry_named(std::string_view entry, std::string_view name) {
  return entry.starts_with(name) && entry.substr(name.size()).starts_with('=');
}

bool set_aside(char* entry) {
  for (std::size_t i = 0; i < std::size(kOpenMpVariables); ++i) {
    if (!is_entry_named(entry, kOpenMpVariables[i])) continue;
    if (entries_set_aside[i] == nullptr) entries_set_aside[i] = entry;  // getenv() takes the first
    return true;
  }
  return false;
}

void set_variables_aside(int, char**, char** environment) {
  char** kept = environment;
  for (char** entry = environment; *entry != nullptr; ++entry) {
    if (!set_aside(*entry)) *kept++ = *entry;
  }
  *kept = nullptr;
}

// The dynamic loader calls it before the constructors of all shared libraries. It may use only what
// works before the C library is initialized.
[[gnu::used,
  gnu::section(".preinit_array")]] void (*before_libraries)(int, char**,
                                                            char**) = set_variables_aside;

void add_entry(std::string_view entry, Environment& environment) {
  const auto equals = entry.find('=');
  if (equals == entry.npos) return;
  environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
}

}  // namespace

Environment environment_of_process() {
  Environment environment;
  for (char** entry = environ; entry && *entry; ++entry) add_entry(*entry, environment);
  for (const char* entry : entries_set_aside) {
    if (entry != nullptr) add_entry(entry, environment);
  }
  return environment;
}

std::string environment_value(const Environment& environment, const std::string& name) {
  const auto entry = environment.find(name);
  return entry == environment.end() ? "" : entry->second;
}

std::string set_aside_note() {
  std::string names;
  for (const char* entry : entries_set_aside) {
    if (entry == nullptr) continue;
    const std::string_view text = entry;
    names += (names.empty() ? "" : ", ") + std::string(text.substr(0, text.find('=')));
  }
  if (names.empty()) return "";
  return names +
         " set aside: Paceline binds its own threads; programs of a study keep your setting";
}

void restore_environment() {
  for (char* entry : entries_set_aside) {
    if (entry != nullptr) putenv(entry);
  }
}

namespace {

constexpr std::string_view kRemoved = "[removed]";

bool is_alnum(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}
bool is_name(char c) {
  return is_alnum(c) || c == '_' || c == '-';
}
bool is_space(char c) {
  return c == ' ' || c == '\t';
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

// The end of a value: of what stands in quotes, else of the word; after ':' or '=' with spaces
// around it, of the line.
std::size_t end_of_value(std::string_view line, std::size_t begin) {
  if (begin < line.size() && (line[begin] == '"' || line[begin] == '\'')) {
    const auto end = line.find(line[begin], begin + 1);
    return end == std::string_view::npos ? line.size() : end + 1;
  }
  const bool is_set_apart = begin > 0 && is_space(line[begin - 1]);
  return is_set_apart ? line.size() : std::min(line.size(), line.find_first_of(" \t,;'\"", begin));
}

std::string without_named(std::string_view line) {
  std::string result;
  for (std::size_t at = 0; at < line.size();) {
    if (!is_name(line[at])) {
      result += line[at++];
      continue;
    }
    std::size_t end = at;
    while (end < line.size() && is_name(line[end])) ++end;
    result += line.substr(at, end - at);
    std::size_t value = end;
    if (value < line.size() && (line[value] == '"' || line[value] == '\'')) ++value;  // of a key
    while (value < line.size() && is_space(line[value])) ++value;
    const bool is_assigned = value < line.size() && (line[value] == '=' || line[value] == ':');
    const bool is_secret = is_assigned && names_secret(line.substr(at, end - at));
    at = end;
    if (!is_secret) continue;
    ++value;
    while (value < line.size() && is_space(line[value])) ++value;
    result += line.substr(end, value - end);
    at = end_of_value(line, value);
    if (at > value) result += kRemoved;
  }
  return result;
}

// "https://user:word@host" and "https://word@host".
std::string without_users(std::string line) {
  for (auto at = line.find("://"); at != std::string::npos; at = line.find("://", at + 3)) {
    const std::size_t begin = at + 3;
    const std::size_t end = std::min(line.size(), line.find_first_of("/ \t\"'<>?#", begin));
    const auto host = line.substr(begin, end - begin).rfind('@');
    if (host != std::string::npos) line.replace(begin, host, kRemoved);
  }
  return line;
}

std::string without_bearers(std::string line) {
  for (const std::string_view kind : {"BEARER ", "BASIC "}) {
    const std::string big = upper(line);
    const auto at = big.find(kind);
    if (at == std::string::npos || (at > 0 && is_alnum(big[at - 1]))) continue;
    const std::size_t begin = at + kind.size();
    const std::size_t end = std::min(line.size(), line.find_first_of(" \t\"'", begin));
    if (end - begin >= 8) line.replace(begin, end - begin, kRemoved);
  }
  return line;
}

}  // namespace

bool names_secret(std::string_view name) {
  constexpr std::array<std::string_view, 10> kWords = {"TOKEN", "SECRET", "PASSWORD",   "PASSWD",
                                                       "PASS",  "KEY",    "CREDENTIAL", "APIKEY",
                                                       "AUTH",  "COOKIE"};
  const std::string big = upper(name);
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
    for (auto at = big.find(word); at != std::string::npos; at = big.find(word, at + 1)) {
      std::size_t end = at + word.size();
      if (end < big.size() && big[end] == 'S') ++end;
      const bool begins = at == 0 || !is_alnum(big[at - 1]);
      const bool ends = end == big.size() || !is_alnum(big[end]);
      if (ends && (begins || word.size() > 4)) return true;  // "accesstoken", but not "compass"
    }
    return false;
  });
}

std::string without_secrets(std::string_view text) {
  std::string result;
  bool in_key = false;
  while (!text.empty()) {
    const auto end = std::min(text.size(), text.find('\n'));
    const std::string_view line = text.substr(0, end);
    const bool has_break = end < text.size();
    text.remove_prefix(end + (has_break ? 1 : 0));
    const bool begins_key = line.find("-----BEGIN") != std::string_view::npos &&
                            line.find("PRIVATE KEY") != std::string_view::npos;
    if (begins_key) result.append(kRemoved).append(has_break ? "\n" : "");
    in_key = in_key || begins_key;
    if (!in_key) {
      result += without_bearers(without_users(without_named(line)));
      if (has_break) result += '\n';
    }
    if (in_key && line.find("-----END") != std::string_view::npos) in_key = false;
  }
  return result;
}

}  // namespace paceline
