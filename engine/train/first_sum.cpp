#include "engine/train/first_sum.h"

#include <fmt/format.h>

#include <memory>

#include "engine/comm/checks/abort_timer.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/failure/rank_status.h"

namespace paceline {

void check_first_sum(Communicator& communicator, double seconds, std::size_t bytes,
                     const std::function<void()>& sum) {
  if (communicator.size() == 1) return;
  const std::string what =
      fmt::format("{}{} over {} ranks did not end within {:g} s", kFirstSum,
                  format_bytes(static_cast<double>(bytes)), communicator.size(), seconds);
  std::unique_ptr<AbortTimer> limit;
  if (seconds > 0) limit = std::make_unique<AbortTimer>(communicator, seconds, what);
  const double begin = now_seconds();
  // The thread that looks at the clock may be late.
  const auto has_passed = [&] {
    return limit && (limit->has_passed() || now_seconds() - begin > seconds);
  };
  try {
    sum();
  } catch (const Error&) {
    if (!has_passed()) throw;
  }
  if (!has_passed()) return;
  throw Error(ErrorKind::stall, what, "before the first step",
              "see which network the backend chose and whether it joins all nodes, or try another "
              "backend")
      .on_rank(communicator.rank());
}

}  // namespace paceline
