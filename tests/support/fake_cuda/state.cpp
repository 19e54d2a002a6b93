#include "tests/support/fake_cuda/state.h"

#include <chrono>

namespace paceline::fake_cuda {

State& state() {
  static State the_state;
  return the_state;
}

int& current_device() {
  thread_local int device = 0;
  return device;
}
cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}
bool& in_host_function() {
  thread_local bool inside = false;
  return inside;
}

double now() {
  if (state().clock) return state().clock();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void complain(const std::string& what) {
  state().complaints.push_back(what);
}

cudaError_t leave(cudaError_t error) {
  if (error != cudaSuccess) last_error() = error;
  return error;
}

Call::Call(const char* name) : lock_(state().mutex) {
  if (state().observer) state().observer(name, current_device());
  if (in_host_function()) {
    complain(std::string(name) + " in a host function");
    error_ = cudaErrorNotPermitted;
    return;
  }
  const auto planned = state().failures.find(name);
  if (planned != state().failures.end()) {
    error_ = planned->second;
    state().failures.erase(planned);
    return;
  }
  const auto broken = state().broken.find(current_device());
  if (broken != state().broken.end()) error_ = broken->second;
}

void advance(Stream& stream, std::uint64_t position) {
  while (stream.ran < position && !stream.work.empty()) {
    const std::function<void()> work = std::move(stream.work.front());
    stream.work.pop_front();
    ++stream.ran;
    if (state().broken.count(stream.device) == 0) work();
  }
}

void advance_all(int device) {
  for (const auto& [handle, stream] : state().streams) {
    if (stream->device == device) advance(*stream, stream->queued());
  }
  const auto legacy = state().legacy.find(device);
  if (legacy != state().legacy.end()) advance(*legacy->second, legacy->second->queued());
}

cudaError_t queue(Stream& stream, cudaGraphNodeType type, std::function<void()> work,
                  cudaEvent_t event) {
  if (!stream.capture) {
    stream.work.push_back(std::move(work));
    return cudaSuccess;
  }
  if (!stream.capture->valid) return cudaErrorStreamCaptureInvalidated;
  auto& nodes = stream.capture->graph->nodes;
  nodes.push_back(std::make_unique<Node>(
      Node{type, std::move(work), {stream.tail.begin(), stream.tail.end()}, event}));
  stream.tail = {nodes.back().get()};
  return cudaSuccess;
}

cudaError_t refuse_while_capturing() {
  cudaError_t result = cudaSuccess;
  for (const auto& capture : state().captures) {
    const bool own = capture->thread == std::this_thread::get_id();
    if (capture->mode != cudaStreamCaptureModeGlobal && !own) continue;
    capture->valid = false;
    result = cudaErrorStreamCaptureUnsupported;
  }
  return result;
}

StreamPtr make_stream(cudaStream_t stream) {
  if (stream == nullptr) {
    StreamPtr& legacy = state().legacy[current_device()];
    if (!legacy) legacy = std::make_shared<Stream>();
    legacy->device = current_device();
    return legacy;
  }
  const auto found = state().streams.find(stream);
  return found == state().streams.end() ? nullptr : found->second;
}

std::shared_ptr<Event> event_at(cudaEvent_t event) {
  const auto found = state().events.find(event);
  return found == state().events.end() ? nullptr : found->second;
}

std::shared_ptr<Record> record_now(const StreamPtr& stream) {
  return std::make_shared<Record>(Record{stream, stream->queued() + 1, false, 0});
}

void reset(const Machine& machine) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  for (auto& [data, block] : all.blocks) delete[] data;
  all.streams.clear();
  all.legacy.clear();
  all.events.clear();
  all.graphs.clear();
  all.executables.clear();
  all.blocks.clear();
  all.registered.clear();
  all.broken.clear();
  all.to_break.clear();
  all.device_flags.clear();
  all.used.clear();
  all.captures.clear();
  all.failures.clear();
  all.complaints.clear();
  all.clock = nullptr;
  all.machine = machine;
  current_device() = 0;
  last_error() = cudaSuccess;
}

void fail(const std::string& function, cudaError_t error) {
  const std::lock_guard lock(state().mutex);
  state().failures[function] = error;
}

void observe(std::function<void(const std::string& function, int device)> observer) {
  const std::lock_guard lock(state().mutex);
  state().observer = std::move(observer);
}

void set_clock(std::function<double()> clock) {
  const std::lock_guard lock(state().mutex);
  state().clock = std::move(clock);
}

void break_next_kernel(int device) {
  const std::lock_guard lock(state().mutex);
  state().to_break.insert(device);
}

Living living() {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  return {all.streams.size(),    all.events.size(), all.blocks.size(),
          all.registered.size(), all.graphs.size(), all.executables.size()};
}

std::vector<std::string> complaints() {
  const std::lock_guard lock(state().mutex);
  return state().complaints;
}

int stream_priority(cudaStream_t stream) {
  return make_stream(stream)->priority;
}
unsigned find_flags(cudaStream_t stream) {
  return make_stream(stream)->flags;
}
unsigned find_flags(cudaEvent_t event) {
  return event_at(event)->flags;
}
unsigned device_flags(int device) {
  return state().device_flags[device];
}
bool is_registered(const void* data) {
  return state().registered.count(data) > 0;
}

}  // namespace paceline::fake_cuda
