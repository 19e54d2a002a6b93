#include "engine/device/cuda/dnn/early_builds.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>

#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/device/cuda/dnn/fused_graph.h"
#include "engine/device/cuda/dnn/requests.h"

namespace paceline::cuda {

namespace {

void build_now(Candidate& candidate, int& compiled) {
  try {
    std::shared_ptr<Implementation> built = candidate.build();
    if (candidate.compiles) ++compiled;
    candidate.build = [built = std::move(built)] { return built; };
  } catch (const Error& error) {
    candidate.build = [error]() -> std::shared_ptr<Implementation> { throw error; };
  }
}

void build(const std::shared_ptr<Session>& session, EarlyBuild& wanted, int most_compiled) {
  const EngineRules rules{wanted.request.shape.math, false, true};
  if (wanted.recipe) {
    wanted.implementation = build_fused(session, wanted.request, rules, *wanted.recipe);
    return;
  }
  Offered offered = fused_offer(session, wanted.request, rules);
  int compiled = 0;
  std::size_t tried = 0;
  while (tried < offered.candidates.size() && compiled < most_compiled) {
    build_now(offered.candidates[tried++], compiled);
  }
  offered.candidates.resize(tried);
  wanted.offered = std::move(offered);
}

}  // namespace

void build_early(std::vector<EarlyBuild>& builds, int threads, const MakeSession& make_session,
                 int most_compiled) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&](int thread) {
    try {
      const std::shared_ptr<Session> session = make_session(thread);
      for (std::size_t at = 0; (at = next++) < builds.size();) {
        try {
          build(session, builds[at], most_compiled);
        } catch (const std::exception& error) {
          log::debug("{}: {}", to_text(builds[at].request), error.what());
        }
      }
    } catch (const std::exception& error) {
      log::debug("no session of a thread's own: {}", error.what());
    }
  };
  std::vector<std::jthread> all;
  const int count = std::min(threads, static_cast<int>(builds.size()));
  try {
    for (int thread = 0; thread < count; ++thread) all.emplace_back(work, thread);
  } catch (const std::system_error& error) {
    log::debug("compiling on {} threads: {}", all.size(), error.what());
  }
}

}  // namespace paceline::cuda
