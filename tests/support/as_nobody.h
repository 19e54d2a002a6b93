// Runs part of a test with the rights of a user to whom nothing belongs, where the tests are run by
// root, whom no permission stops.
#pragma once

#include <unistd.h>

namespace paceline {

class AsNobody {
 public:
  AsNobody() : is_root_(geteuid() == 0) {
    if (is_root_ && (setegid(kNobody) != 0 || seteuid(kNobody) != 0)) is_root_ = false;
  }
  ~AsNobody() {
    if (is_root_ && (seteuid(0) != 0 || setegid(0) != 0)) _exit(1);
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  static constexpr unsigned kNobody = 65534;
  bool is_root_;
};

}  // namespace paceline
