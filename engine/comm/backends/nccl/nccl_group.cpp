#include "engine/comm/backends/nccl/nccl_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "engine/comm/checks/stall_monitor.h"
#include "engine/comm/rendezvous/liveness.h"
#include "engine/core/child.h"
#include "engine/core/clock.h"
#include "engine/core/log.h"
#include "engine/core/text.h"

namespace paceline::nccl {

namespace {

constexpr auto kPause = std::chrono::milliseconds(1);
constexpr auto kWatchInterval = std::chrono::milliseconds(50);
constexpr double kLeaveSeconds = 10;
constexpr double kCallSeconds = 0.1;
constexpr double kSpinSeconds = 1e-3;  // calls mostly end sooner: no sleep between two questions

constexpr char kNetworkCure[] =
    "set NCCL_SOCKET_IFNAME to the interface between the nodes, let its ports through the "
    "firewall, or see NCCL_DEBUG=INFO";

bool is_error(ncclResult_t result) {
  return result != ncclSuccess && result != ncclInProgress;
}

ncclDataType_t nccl_type(DType type) {
  switch (type) {
    case DType::f16:
      return ncclFloat16;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f32:
      return ncclFloat32;
    case DType::f64:
      return ncclFloat64;
    default:
      throw internal_error(fmt::format("no sum of {}", to_string(type)));
  }
}

std::string one_line(const char* text) {
  std::string line = text == nullptr ? "" : text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  return std::string(trim(line));
}

}  // namespace

NcclGroup::NcclGroup(Setup setup)
    : quirks_(std::move(setup.quirks)),
      warnings_(std::move(setup.warnings)),
      library_(std::move(setup.library)),
      membership_(std::move(setup.membership)),
      gpus_(*membership_.gpus),
      size_(membership_.process.size * membership_.replicas_here) {
  for (int i = 0; i < membership_.replicas_here; ++i) {
    members_.push_back(std::make_unique<Member>());
    const int rank = membership_.process.rank * membership_.replicas_here + i;
    members_.back()->rank = rank;
    members_.back()->name =
        setup.names.empty() ? rank : setup.names[static_cast<std::size_t>(rank)];
  }
  try {
    // Joining is watched by await_join(); a library that blocks in spite of that, by the stall
    // monitor.
    const StallMonitor::Call joining(membership_.stall_monitor, "connecting the ranks by NCCL",
                                     kNetworkCure);
    join(setup);
    await_join(setup.check_others);
  } catch (...) {
    abort_members();
    throw;
  }
  watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

NcclGroup::~NcclGroup() {
  watcher_.request_stop();
  watcher_.join();
  if (!ended_) finalize_members();
}

void NcclGroup::join(const Setup& setup) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = setup.blocking || quirks_.blocking ? 1 : 0;
  library_->group_start();
  ncclResult_t result = ncclSuccess;
  for (std::size_t i = 0; i < members_.size() && !is_error(result); ++i) {
    Member& member = *members_[i];
    gpus_.select(static_cast<int>(i));
    result = library_->init_rank(&member.comm, size_, setup.id, member.rank, &config);
  }
  const ncclResult_t ended = library_->group_end();
  if (!is_error(result)) result = ended;
  if (is_error(result)) throw make_error(*members_.front(), result, "joining");
}

void NcclGroup::await_join(const std::function<void()>& check_others) {
  const double start = now_seconds();
  bool warned = false;
  for (auto& member : members_) {
    ncclResult_t state = ncclInProgress;
    while ((state = poll_state(*member)) == ncclInProgress) {
      if (check_others) check_others();
      const double waited = now_seconds() - start;
      if (!warned && waited > membership_.deadlines.warn_seconds) {
        warned = true;
        log::warning("rank {} has waited {} for NCCL to connect {} ranks; {}", member->rank,
                     format_seconds(waited), size_, kNetworkCure);
      }
      if (waited > membership_.deadlines.limit_seconds()) {
        throw Error(ErrorKind::stall,
                    fmt::format("NCCL did not connect {} ranks within {:g} s: {}", size_,
                                membership_.deadlines.limit_seconds(),
                                one_line(library_->last_error(member->comm))),
                    "", kNetworkCure)
            .on_rank(member->name);
      }
      std::this_thread::sleep_for(kPause);
    }
    if (is_error(state)) throw make_error(*member, state, "joining");
  }
}

void NcclGroup::settle(Member& member, ncclResult_t result, std::string_view label) {
  const double start = now_seconds();
  while (result == ncclInProgress) {
    const double waited = now_seconds() - start;
    if (waited > membership_.deadlines.limit_seconds()) {
      end(Error(ErrorKind::stall,
                fmt::format("a call of NCCL did not return within {:g} s",
                            membership_.deadlines.limit_seconds()),
                std::string(label), "see the other ranks' errors, or NCCL_DEBUG=INFO")
              .on_rank(member.name));
      throw_why();
    }
    if (waited > kSpinSeconds) std::this_thread::sleep_for(kPause);
    const std::lock_guard lock(member.mutex);
    if (member.comm == nullptr) throw_why();
    result = poll_state(member);
  }
  if (!is_error(result)) return;
  end(make_error(member, result, label));
  throw_why();
}

Memory NcclGroup::allocate(int replica, std::size_t bytes) {
  Member& member = member_at(replica);
  gpus_.select(replica);
  void* data = nullptr;
  if (const ncclResult_t result = library_->allocate(&data, bytes); result != ncclSuccess) {
    throw usage_error(fmt::format("{} of GPU memory for gradients cannot be allocated: {}",
                                  format_bytes(static_cast<double>(bytes)),
                                  one_line(library_->last_error(member.comm))),
                      "", "lower the batch of a replica")
        .on_rank(member.name);
  }
  void* handle = nullptr;
  ncclResult_t result = ncclSuccess;
  try {
    gpus_.clear(data, bytes);
    if (!quirks_.no_registration) {
      const std::lock_guard lock(member.mutex);
      if (member.comm == nullptr) throw_why();
      result = library_->register_buffer(member.comm, data, bytes, &handle);
    }
    settle(member, result, "registering the gradients' memory");
  } catch (...) {
    library_->release(data);
    throw;
  }
  return Memory(data, bytes, MemoryKind::device,
                [self = shared_from_this(), &member, handle](void* memory) {
                  self->release(member, memory, handle);
                });
}

// Graphs that sum in this memory are gone.
void NcclGroup::release(Member& member, void* data, void* handle) noexcept {
  {
    const std::lock_guard aborting(member.aborting);
    const std::lock_guard lock(member.mutex);
    if (member.comm != nullptr && handle != nullptr) {
      library_->deregister_buffer(member.comm, handle);
    }
  }
  library_->release(data);
}

void NcclGroup::all_reduce(int replica, void* data, std::size_t count, DType type, void* stream,
                           std::string_view label) {
  if (count == 0) return;
  Member& member = member_at(replica);
  const ncclDataType_t as = nccl_type(type);
  note_progress(member);
  ncclResult_t result = ncclSuccess;
  {
    const std::lock_guard lock(member.mutex);
    if (ended_ || member.comm == nullptr) throw_why();
    result = library_->all_reduce(data, data, count, as, ncclSum, member.comm,
                                  static_cast<cudaStream_t>(stream));
  }
  settle(member, result, label);
}

void NcclGroup::note_replay(int replica) {
  note_progress(member_at(replica));
  throw_if_ended();
}

void NcclGroup::throw_if_ended() {
  if (ended_) throw_why();
}

void NcclGroup::begin_wait(int replica, std::string_view label) noexcept {
  Member& member = member_at(replica);
  note_progress(member);
  const std::lock_guard lock(mutex_);
  member.waits_at = label;
  member.waits_since = now_seconds();
  member.warned = false;
}

void NcclGroup::end_wait(int replica) noexcept {
  const std::lock_guard lock(mutex_);
  member_at(replica).waits_since = 0;
}

// The task is as far as the last of its replicas.
void NcclGroup::note_progress(Member& member) noexcept {
  ++member.progress;
  if (membership_.control == nullptr || membership_.progress_is_noted) return;
  std::uint64_t least = member.progress;
  for (const auto& other : members_) least = std::min(least, other->progress.load());
  membership_.control->note_progress(least);
}

void NcclGroup::abort(std::string_view why) noexcept {
  try {
    end(Error(ErrorKind::peer_lost, std::string(why), "", "see that rank's error"));
  } catch (const std::exception&) {
    ended_ = true;  // without memory for the words, the end itself still arrives
    changed_.notify_all();
  }
}

void NcclGroup::end(const Error& error) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!why_) why_ = error;
    ended_ = true;
  }
  changed_.notify_all();
}

void NcclGroup::throw_why() {
  const std::lock_guard lock(mutex_);
  if (why_) throw *why_;
  throw Error(ErrorKind::peer_lost, "another rank gave up");
}

void NcclGroup::watch(const std::stop_token& stop) noexcept {
  block_signals();
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested() && !ended_) {
    changed_.wait_for(lock, stop, kWatchInterval, [this] { return ended_.load(); });
    lock.unlock();
    try {
      look_for_errors();
      look_for_stalls();
    } catch (const std::exception& error) {
      abort(error.what());
    }
    lock.lock();
  }
  lock.unlock();
  if (ended_) abort_members();
}

void NcclGroup::look_for_errors() {
  for (auto& member : members_) {
    ncclResult_t state = ncclSuccess;
    {
      const std::lock_guard lock(member->mutex);
      state = poll_state(*member);
    }
    if (is_error(state)) end(make_error(*member, state, "found by NCCL"));
  }
}

void NcclGroup::look_for_stalls() {
  const Deadlines& deadlines = membership_.deadlines;
  for (auto& member : members_) {
    std::unique_lock lock(mutex_);
    if (member->waits_since == 0) continue;
    const double waited = now_seconds() - member->waits_since;
    const std::string label(member->waits_at);
    const bool warn = !member->warned && waited > deadlines.warn_seconds;
    if (warn) member->warned = true;
    lock.unlock();
    if (warn) {
      log::warning("rank {} has waited {} at {}", member->rank, format_seconds(waited), label);
    }
    if (waited <= deadlines.limit_seconds()) continue;
    const std::string late = late_ranks();
    end(Error(
            ErrorKind::stall,
            fmt::format("{} within {:g} s",
                        late.empty() ? "sums on the GPUs did not end" : late + " did not come",
                        deadlines.limit_seconds()),
            label,
            late.empty() ? "see NCCL_DEBUG=INFO, or try --no-step-graph" : "see what it was doing")
            .on_rank(member->name));
  }
}

// "rank 3", "ranks 3, 5"; empty where all are equally far.
std::string NcclGroup::late_ranks() const {
  std::uint64_t least = members_.front()->progress, most = least;
  for (const auto& member : members_) {
    least = std::min(least, member->progress.load());
    most = std::max(most, member->progress.load());
  }
  std::vector<int> late;
  if (least < most) {
    for (const auto& member : members_) {
      if (member->progress == least) late.push_back(member->rank);
    }
  } else if (membership_.control != nullptr) {
    const std::vector<int> tasks = membership_.control->late_ranks();
    if (static_cast<int>(tasks.size()) == membership_.process.size) return "";
    for (const int task : tasks) {
      late.push_back(task * membership_.replicas_here);
    }
  }
  return late.empty() ? "" : ranks_text(late);
}

// A thread of NCCL's may be queuing a sum into a capture, which must not end under it.
void NcclGroup::await_call(Member& member) noexcept {
  const double start = now_seconds();
  while (now_seconds() - start < kCallSeconds) {
    ncclResult_t state = ncclSuccess;
    {
      const std::lock_guard lock(member.mutex);
      if (member.comm != nullptr) state = poll_state(member);
    }
    if (state != ncclInProgress) return;
    std::this_thread::sleep_for(kPause);
  }
}

// NCCL aborts a communicator once no graph has its sums any more: whoever has such graphs must not
// be held up meanwhile.
void NcclGroup::abort_members() noexcept {
  for (auto& member : members_) {
    const std::lock_guard aborting(member->aborting);
    await_call(*member);
    ncclComm_t comm = nullptr;
    {
      const std::lock_guard lock(member->mutex);
      comm = std::exchange(member->comm, nullptr);
    }
    if (comm != nullptr) library_->abort(comm);
  }
}

// Where one cannot leave in order, the others need not wait for it.
void NcclGroup::finalize_members() noexcept {
  library_->group_start();
  ncclResult_t result = ncclSuccess;
  for (auto& member : members_) {
    if (!is_error(result)) result = library_->finalize(member->comm);
  }
  const ncclResult_t ended = library_->group_end();
  if (!is_error(result)) result = ended;
  const double start = now_seconds();
  for (auto& member : members_) {
    ncclResult_t state = result;
    while (!is_error(result) && (state = poll_state(*member)) == ncclInProgress) {
      if (now_seconds() - start > kLeaveSeconds) break;
      std::this_thread::sleep_for(kPause);
    }
    if (state == ncclSuccess) {
      library_->destroy(member->comm);
    } else {
      library_->abort(member->comm);
    }
  }
}

// The call itself fails on a communicator that is none.
ncclResult_t NcclGroup::poll_state(const Member& member) const {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = library_->async_error(member.comm, &state);
  return is_error(asked) ? asked : state;
}

Error NcclGroup::make_error(const Member& member, ncclResult_t result,
                            std::string_view label) const {
  const bool others = result == ncclRemoteError || result == ncclSystemError;
  std::string what = fmt::format("NCCL: {}", library_->error_string(result));
  const std::string detail = one_line(library_->last_error(member.comm));
  if (!detail.empty()) what += fmt::format(": {}", detail);
  const std::string warnings = warnings_ ? warnings_() : "";
  if (!warnings.empty()) what += fmt::format("; it warned: {}", warnings);
  return Error(others ? ErrorKind::peer_lost : ErrorKind::internal, what, std::string(label),
               others ? "see the other ranks' errors, or NCCL_DEBUG=INFO" : "see NCCL_DEBUG=INFO")
      .on_rank(member.name);
}

}  // namespace paceline::nccl
