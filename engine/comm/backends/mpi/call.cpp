#include "engine/comm/backends/mpi/call.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/core/text.h"

namespace paceline::mpi {

namespace {

// MPI knows no code for a lost peer (before MPI 5); these are what broken connections become.
bool may_be_lost_peer(int error_class) {
  return error_class == MPI_ERR_OTHER || error_class == MPI_ERR_UNKNOWN ||
         error_class == MPI_ERR_INTERN;
}

constexpr double kSecondsToBlame = 2;

std::string describe(const Awaited& who) {
  return who.rank < 0 ? "another rank" : fmt::format("rank {}", who.rank);
}

[[noreturn]] void throw_stall(double seconds, std::string_view label, const Awaited& who) {
  const std::string what =
      who.came ? fmt::format("{} came but did not continue within {:g} s", describe(who), seconds)
               : fmt::format("{} did not come within {:g} s", describe(who), seconds);
  throw Error(ErrorKind::stall, what, std::string(label),
              who.came ? "see which rank it waited for" : "see what it was doing");
}

}  // namespace

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  int error_class = MPI_ERR_UNKNOWN, length = 0;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  MPI_Error_class(code, &error_class);
  MPI_Error_string(code, text.data(), &length);
  const bool lost = may_be_lost_peer(error_class);
  throw Error(lost ? ErrorKind::peer_lost : ErrorKind::internal,
              std::string(text.data(), static_cast<std::size_t>(length)), call,
              lost ? "see the other ranks' errors" : "please report it with the command");
}

void wait_for(MPI_Request& request, const WaitDeadline& deadline, std::string_view label,
              Awaited who) {
  const double start = now_seconds();
  bool warned = false;
  while (true) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return;
    const double waited = now_seconds() - start;
    if (waited < deadline.spin_seconds) continue;
    if (deadline.interrupt) deadline.interrupt();
    const double limit = deadline.deadlines.limit_seconds() + (who.came ? kSecondsToBlame : 0);
    if (waited > limit) throw_stall(limit, label, who);
    if (waited > deadline.deadlines.warn_seconds && !warned) {
      log::warning("waited {} for {} at {}", format_seconds(waited), describe(who), label);
      warned = true;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(waited < 0.1 ? 20 : 500));
  }
}

}  // namespace paceline::mpi
