// Wall clock of one process, in seconds from an arbitrary start. About 25 ns a call.
#pragma once

#include <string>

namespace paceline {

double now_seconds();
double unix_seconds();  // since 1970, by the system's clock, which may be set

// "2026-11-21T05:15:00Z", UTC.
std::string utc_time_stamp();

// "20261121T051500-3f9a": the time and four random digits.
std::string new_session_id();

}  // namespace paceline
