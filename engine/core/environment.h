// The environment as a value, so that tests can construct one.
//
// Some OpenMP variables bind threads or limit their number. libgomp, which oneDNN loads, reads them
// before main(): it narrows the affinity mask of the process, and a part of the machine goes
// missing. Paceline binds and counts its own threads, so these variables are set aside: they are
// removed from this process before any library is initialized. Programs that it starts have them.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace paceline {

using Environment = std::map<std::string, std::string>;

// As the user set it, including variables set aside.
Environment environment_of_process();

// Empty if the variable is not set.
std::string environment_value(const Environment& environment, const std::string& name);

// The first executable file of that name in PATH.
std::optional<std::filesystem::path> find_program(const std::string& name,
                                                  const Environment& environment);

// A sentence naming the variables set aside. Empty if there are none.
std::string set_aside_note();

// Puts back the variables set aside. Call it before this process becomes another program (exec).
void restore_environment();

// Removes secrets from texts that are shown to others.

// Whether the name of a variable or key suggests a secret: it contains the word TOKEN, SECRET,
// PASSWORD, PASSWD, CREDENTIAL, KEY, COOKIE or AUTH, in any case.
bool names_secret(std::string_view name);

// Replaces with "[removed]": what follows = or : after such a name on a line; user and password in
// URLs; what follows "Bearer" or "Basic"; private key blocks.
std::string without_secrets(std::string_view text);

}  // namespace paceline
