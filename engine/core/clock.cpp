#include "engine/core/clock.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <random>

namespace paceline {

double now_seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

double unix_seconds() {
  using namespace std::chrono;
  return duration<double>(system_clock::now().time_since_epoch()).count();
}

std::string utc_time_stamp() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::string new_session_id() {
  return fmt::format("{:%Y%m%dT%H%M%S}-{:04x}", fmt::gmtime(std::time(nullptr)),
                     std::random_device{}() & 0xffff);
}

}  // namespace paceline
