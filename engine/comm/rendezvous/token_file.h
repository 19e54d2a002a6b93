// How the ranks of a run get a token that no environment gave them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace paceline {

// A file that only its user can read, in a folder where all ranks look: a random token and the
// store's port. The end of its name is random, so that nobody else can have taken it before.
class TokenFile {
 public:
  struct Content {
    std::string token;
    std::uint16_t port;
  };

  // Rank 0's. `prefix` is the path without the random end. Removes what a killed run left there.
  // Throws input.
  TokenFile(const std::filesystem::path& prefix, const Content& content);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  // The newest of this user. Passes over files of others, and files that others can read.
  static std::optional<Content> read(const std::filesystem::path& prefix);

 private:
  std::filesystem::path file_;
};

}  // namespace paceline
