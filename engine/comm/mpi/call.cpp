#include "engine/comm/mpi/call.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/log.h"

namespace paceline::mpi {

namespace {

// MPI knows no code for a lost peer (before MPI 5); these are what broken connections become.
bool may_be_lost_peer(int error_class) {
  return error_class == MPI_ERR_OTHER || error_class == MPI_ERR_UNKNOWN ||
         error_class == MPI_ERR_INTERN;
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

void wait_for(MPI_Request request, const Patience& patience, std::string_view label) {
  const double start = now_seconds();
  bool warned = false;
  while (true) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return;
    const double waited = now_seconds() - start;
    if (waited < patience.spin_seconds) continue;
    if (patience.interrupt) patience.interrupt();
    if (waited > patience.deadlines.abort_seconds) {
      throw Error(ErrorKind::stall,
                  fmt::format("the other nodes did not come within {:.0f} s",
                              patience.deadlines.abort_seconds),
                  std::string(label), "see what their ranks were doing");
    }
    if (waited > patience.deadlines.warn_seconds && !warned) {
      log::warning("waited {:.0f} s for the other nodes at {}", waited, label);
      warned = true;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(waited < 0.1 ? 20 : 500));
  }
}

}  // namespace paceline::mpi
