// Texts that are shown to others, without what must not be.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// Whether a variable or key of this name holds a secret by the names in use: TOKEN, SECRET,
// PASSWORD, PASSWD, CREDENTIAL, KEY, COOKIE, AUTH as a word of it, in any case.
bool names_secret(std::string_view name);

// The text with "[removed]" for: what follows = or : after such a name on a line; the user and
// password of URLs; what follows "Bearer" or "Basic"; blocks of private keys. Everything else stays
// as it is.
std::string without_secrets(std::string_view text);

}  // namespace paceline
