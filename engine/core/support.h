// "Yes", or "no, because ...". Queried before a choice is made; the reason is logged.
#pragma once

#include <string>
#include <utility>

namespace paceline {

class Support {
 public:
  static Support yes() { return {}; }
  static Support no(std::string because) { return Support(std::move(because)); }
  explicit operator bool() const { return because_.empty(); }
  const std::string& because() const { return because_; }

 private:
  Support() = default;
  explicit Support(std::string because) : because_(std::move(because)) {}
  std::string because_;
};

// A row of a generated factory table.
template <typename Function>
struct Factory {
  const char* name;
  Function make;
};

}  // namespace paceline
