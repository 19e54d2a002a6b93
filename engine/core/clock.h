// The monotonic clock of a process, in seconds from an arbitrary start. A call takes about 25 ns.
#pragma once

#include <string>

namespace paceline {

double now_seconds();
double unix_seconds();  // since 1970; the system clock, which can be adjusted

// "2026-11-21T05:15:00Z", UTC.
std::string utc_time_stamp();

// "20261121T051500-3f9a": the time and four random digits.
std::string new_session_id();

}  // namespace paceline
