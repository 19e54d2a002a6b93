#include "engine/core/lane.h"

#include <pthread.h>
#include <sched.h>

#include <cstddef>
#include <utility>

namespace paceline {

void InlineLane::submit(HostTask task) {
  task();
  ++done_;
}

void InlineLane::after(Marker marker) {
  if (marker.lane && marker.lane != this) marker.lane->wait_for(marker);
}

ThreadLane::ThreadLane(HostTask at_start) : thread_([this, at_start] { work(at_start); }) {}

ThreadLane::~ThreadLane() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ThreadLane::submit(HostTask task) {
  push({task, {}});
}

Marker ThreadLane::mark() {
  std::lock_guard lock(mutex_);
  return {this, queued_};
}

void ThreadLane::after(Marker marker) {
  if (!marker.lane || marker.lane == this) return;
  push({HostTask([] {}), marker});
}

bool ThreadLane::reached(Marker marker) const {
  std::lock_guard lock(mutex_);
  return done_ >= marker.position;
}

void ThreadLane::wait_for(Marker marker) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= marker.position; });
}

void ThreadLane::drain() {
  std::unique_lock lock(mutex_);
  const std::uint64_t end = queued_;
  changed_.wait(lock, [&] { return done_ >= end; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadLane::push(const Entry& entry) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queued_ - done_ < kSlots; });
  ring_[queued_ % kSlots] = entry;
  ++queued_;
  lock.unlock();
  changed_.notify_all();
}

void ThreadLane::work(HostTask at_start) {
  name_this_thread("lane");
  at_start();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || done_ < queued_; });
    if (done_ == queued_) return;
    Entry entry = ring_[done_ % kSlots];
    const bool failed = error_ != nullptr;
    lock.unlock();
    std::exception_ptr error;
    if (!failed) {  // work behind a failure is dropped; drain() tells
      try {
        if (entry.wait.lane) entry.wait.lane->wait_for(entry.wait);
        entry.task();
      } catch (...) {
        error = std::current_exception();
      }
    }
    lock.lock();
    if (error) error_ = error;
    ++done_;
    lock.unlock();
    changed_.notify_all();
    lock.lock();
  }
}

void bind_to(int cpu) {
  bind_to_cpus({cpu});
}

void bind_to_cpus(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &set);
  sched_setaffinity(0, sizeof set, &set);
}

void name_this_thread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

}  // namespace paceline
