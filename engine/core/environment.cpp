#include "engine/core/environment.h"

#include <unistd.h>

#include <iterator>
#include <string_view>

#include "engine/core/pattern.h"
#include "engine/core/text.h"

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

// A word of a name: "tokens", "accesstoken", but not "compass".
const std::string kSecretWord =
    "(?i:(?:(?<![a-z0-9])(?:pass|key|auth)|token|secret|password|passwd|credential|apikey|cookie)"
    "s?(?![a-z0-9]))";

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

std::optional<std::filesystem::path> find_program(const std::string& name,
                                                  const Environment& environment) {
  const auto path = environment.find("PATH");
  if (path == environment.end()) return std::nullopt;
  for (const std::string& folder : split(path->second, ':')) {
    const std::filesystem::path file = std::filesystem::path(folder.empty() ? "." : folder) / name;
    std::error_code error;
    if (std::filesystem::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0) {
      return std::filesystem::absolute(file);
    }
  }
  return std::nullopt;
}

void restore_environment() {
  for (char* entry : entries_set_aside) {
    if (entry != nullptr) putenv(entry);
  }
}

bool names_secret(std::string_view name) {
  thread_local const Pattern word(kSecretWord);
  return word.find(name).has_value();
}

std::string without_secrets(std::string_view text) {
  thread_local const Replacements secrets = {
      {R"((?<![^\n])[^\n]*?-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?s:.*?)(?:-----END[^\n]*\n?|\z))",
       "[removed]\n"},
      // A value: in quotes; after ':' or '=' with spaces the rest of the line; else a word.
      {R"((?<![\w-])(?=[\w-]*?)" + kSecretWord + R"()[\w-]++["']?[ \t]*+[=:][ \t]*+\K)" +
           R"((?:"[^"\n]*+"?|'[^'\n]*+'?|(?<=[ \t])[^\n]++|[^ \t,;'"\n]++))",
       "[removed]"},
      {R"(://\K[^/ \t\n"'<>?#]*(?=@))", "[removed]"},
      {R"((?i)(?<![a-z0-9])(?:bearer|basic) \K[^ \t\n"']{8,})", "[removed]"}};
  return secrets(std::string(text));
}

}  // namespace paceline
