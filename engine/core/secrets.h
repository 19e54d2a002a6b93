// Removes secrets from texts that are shown to others.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// Whether the name of a variable or key suggests a secret: it contains the word TOKEN, SECRET,
// PASSWORD, PASSWD, CREDENTIAL, KEY, COOKIE or AUTH, in any case.
bool names_secret(std::string_view name);

// Replaces with "[removed]": what follows = or : after such a name on a line; user and password in
// URLs; what follows "Bearer" or "Basic"; private key blocks.
std::string without_secrets(std::string_view text);

}  // namespace paceline
