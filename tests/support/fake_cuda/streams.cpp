// Devices, memory, streams, events and kernels.
#include <algorithm>
#include <cstring>

#include "tests/support/fake_cuda/state.h"

using namespace paceline::fake_cuda;

namespace {

constexpr unsigned char kGarbage = 0xA5, kFreed = 0xDB;
constexpr int kGreatestPriority = -5;

// The block that holds these bytes; null: ordinary memory of the host.
const Block* find_block(const void* data, std::size_t bytes, const char* what) {
  auto* at = const_cast<char*>(static_cast<const char*>(data));
  auto next = state().blocks.upper_bound(at);
  if (next == state().blocks.begin()) return nullptr;
  const auto& [begin, block] = *std::prev(next);
  if (at >= begin + block.bytes) return nullptr;
  if (at + bytes > begin + block.bytes)
    complain(std::string(what) + " beyond the end of its memory");
  return &block;
}

cudaError_t allocate(void** data, std::size_t bytes, bool on_host) {
  if (const cudaError_t refused = refuse_while_capturing()) return refused;
  std::size_t used = 0;
  for (const auto& [at, block] : state().blocks) {
    if (!block.on_host && block.device == current_device()) used += block.bytes;
  }
  const std::size_t most =
      state().machine.cards[static_cast<std::size_t>(current_device())].memory_bytes;
  if (!on_host && (bytes > most || used > most - bytes)) return cudaErrorMemoryAllocation;
  auto* made = new char[bytes];
  std::memset(made, kGarbage, bytes);
  state().blocks[made] = {bytes, on_host, current_device(), ++state().blocks_made};
  *data = made;
  return cudaSuccess;
}

cudaError_t release(void* data, bool on_host) {
  const auto found = state().blocks.find(static_cast<char*>(data));
  if (found == state().blocks.end() || found->second.on_host != on_host)
    return cudaErrorInvalidValue;
  if (const cudaError_t refused = refuse_while_capturing()) return refused;
  advance_all(found->second.device);  // as cudaFree waits
  std::memset(found->first, kFreed, found->second.bytes);
  delete[] found->first;
  state().blocks.erase(found);
  return cudaSuccess;
}

// Of a stream that is captured, or by a thread that captures.
cudaError_t refuse_to_wait(const Stream& stream) {
  if (!stream.capture) return refuse_while_capturing();
  stream.capture->valid = false;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t broken(int device) {
  const auto found = state().broken.find(device);
  return found == state().broken.end() ? cudaSuccess : found->second;
}

}  // namespace

// clang-format off
#define ENTER(name) const Call call(name); if (!call) return call.error()
// clang-format on

extern "C" {

cudaError_t CUDARTAPI cudaGetLastError() {
  const cudaError_t error = last_error();
  last_error() = cudaSuccess;
  return error;
}
cudaError_t CUDARTAPI cudaPeekAtLastError() {
  return last_error();
}
const char* CUDARTAPI cudaGetErrorName(cudaError_t error) {
  static const std::map<cudaError_t, const char*> names = {
      {cudaErrorIllegalAddress, "cudaErrorIllegalAddress"},
      {cudaErrorNotReady, "cudaErrorNotReady"},
      {cudaErrorInvalidValue, "cudaErrorInvalidValue"},
      {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle"},
      {cudaErrorCapturedEvent, "cudaErrorCapturedEvent"},
      {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined"}};
  const auto found = names.find(error);
  return found == names.end() ? "another" : found->second;
}
const char* CUDARTAPI cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorIllegalAddress ? "an illegal memory access was encountered"
                                          : "another error";
}

cudaError_t CUDARTAPI cudaGetDeviceCount(int* count) {
  *count = 0;
  if (state().machine.count != cudaSuccess) return leave(state().machine.count);
  *count = static_cast<int>(state().machine.cards.size());
  return *count == 0 ? leave(cudaErrorNoDevice) : cudaSuccess;
}
cudaError_t CUDARTAPI cudaDriverGetVersion(int* version) {
  *version = state().machine.driver;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaSetDevice(int device) {
  const std::lock_guard lock(state().mutex);
  if (device < 0 || device >= static_cast<int>(state().machine.cards.size())) {
    return leave(cudaErrorInvalidDevice);
  }
  if (state().machine.cards[static_cast<std::size_t>(device)].exclusive) {
    return leave(cudaErrorDevicesUnavailable);
  }
  current_device() = device;
  state().used.insert(device);
  return leave(broken(device));
}
cudaError_t CUDARTAPI cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}
// Of use only before the device has a context.
cudaError_t CUDARTAPI cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
  ENTER("cudaInitDevice");
  if (device < 0 || device >= static_cast<int>(state().machine.cards.size())) {
    return leave(cudaErrorInvalidDevice);
  }
  const bool valid = (flags & cudaInitDeviceFlagsAreValid) != 0;
  if (valid && state().used.count(device) == 0) state().device_flags[device] = device_flags;
  state().used.insert(device);
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  ENTER("cudaGetDeviceProperties");
  const Card& card = state().machine.cards.at(static_cast<std::size_t>(device));
  *properties = {};
  card.name.copy(properties->name, sizeof properties->name - 1);
  properties->major = card.major;
  properties->minor = card.minor;
  properties->totalGlobalMem = card.memory_bytes;
  for (int i = 0; i < 16; ++i) properties->uuid.bytes[i] = static_cast<char>(0xF0 + device + i);
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  ENTER("cudaDeviceGetAttribute");
  if (attribute != cudaDevAttrMultiProcessorCount) return leave(cudaErrorInvalidValue);
  *value = state().machine.cards.at(static_cast<std::size_t>(device)).multiprocessors;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaDeviceGetPCIBusId(char* text, int length, int device) {
  ENTER("cudaDeviceGetPCIBusId");
  const std::string id = "0000:0" + std::to_string(device + 1) + ":00.0";
  if (length <= static_cast<int>(id.size())) return leave(cudaErrorInvalidValue);
  std::strcpy(text, id.c_str());
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  ENTER("cudaFuncGetAttributes");
  auto& kernel = *const_cast<Kernel*>(static_cast<const Kernel*>(function));
  if (!kernel.built) return leave(cudaErrorNoKernelImageForDevice);
  kernel.loaded = true;
  *attributes = {};
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute,
                                           int value) {
  ENTER("cudaFuncSetAttribute");
  constexpr int kMost = 227 << 10;  // of sm_90
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value > kMost) {
    return leave(cudaErrorInvalidValue);
  }
  auto& kernel = *const_cast<Kernel*>(static_cast<const Kernel*>(function));
  kernel.most_shared_bytes = static_cast<std::size_t>(value);
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMalloc(void** data, std::size_t bytes) {
  ENTER("cudaMalloc");
  return leave(allocate(data, bytes, false));
}
cudaError_t CUDARTAPI cudaFree(void* data) {
  ENTER("cudaFree");
  return leave(data ? release(data, false) : cudaSuccess);
}
cudaError_t CUDARTAPI cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
  ENTER("cudaHostAlloc");
  return leave(allocate(data, bytes, true));
}
cudaError_t CUDARTAPI cudaFreeHost(void* data) {
  ENTER("cudaFreeHost");
  return leave(data ? release(data, true) : cudaSuccess);
}
cudaError_t CUDARTAPI cudaHostRegister(void* data, std::size_t bytes, unsigned) {
  ENTER("cudaHostRegister");
  if (bytes == 0 || !state().registered.emplace(data, bytes).second) {
    return leave(bytes == 0 ? cudaErrorInvalidValue : cudaErrorHostMemoryAlreadyRegistered);
  }
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaHostUnregister(void* data) {
  ENTER("cudaHostUnregister");
  return leave(state().registered.erase(data) > 0 ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}
cudaError_t CUDARTAPI cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  ENTER("cudaMemGetInfo");
  *total = state().machine.cards.at(static_cast<std::size_t>(current_device())).memory_bytes;
  *free = *total;
  for (const auto& [at, block] : state().blocks) {
    if (!block.on_host && block.device == current_device()) *free -= block.bytes;
  }
  return cudaSuccess;
}

// On the default stream, and not before somebody waits for that.
cudaError_t CUDARTAPI cudaMemset(void* data, int value, std::size_t bytes) {
  ENTER("cudaMemset");
  if (const cudaError_t refused = refuse_while_capturing()) return leave(refused);
  const Block* block = find_block(data, bytes, "cudaMemset");
  if (block == nullptr || block->on_host) return leave(cudaErrorInvalidValue);
  return leave(queue(*make_stream(nullptr), cudaGraphNodeTypeMemset,
                     [=] { std::memset(data, value, bytes); }));
}
cudaError_t CUDARTAPI cudaMemsetAsync(void* data, int value, std::size_t bytes,
                                      cudaStream_t stream) {
  ENTER("cudaMemsetAsync");
  const StreamPtr on = make_stream(stream);
  const Block* block = find_block(data, bytes, "cudaMemsetAsync");
  if (!on || on->device != current_device()) return leave(cudaErrorInvalidResourceHandle);
  if (block == nullptr || block->on_host) return leave(cudaErrorInvalidValue);
  return leave(queue(*on, cudaGraphNodeTypeMemset, [=, number = block->number] {
    const Block* still = find_block(data, bytes, "cudaMemsetAsync");
    if (still == nullptr || still->number != number) return complain("clears memory that is freed");
    std::memset(data, value, bytes);
  }));
}
cudaError_t CUDARTAPI cudaMemcpyAsync(void* to, const void* from, std::size_t bytes,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  ENTER("cudaMemcpyAsync");
  const StreamPtr on = make_stream(stream);
  if (!on) return leave(cudaErrorInvalidResourceHandle);
  if (kind != cudaMemcpyDefault) return leave(cudaErrorInvalidMemcpyDirection);
  const auto number = [bytes](const void* data) {
    const Block* block = find_block(data, bytes, "cudaMemcpyAsync");
    return block == nullptr ? 0 : block->number;
  };
  return leave(queue(*on, cudaGraphNodeTypeMemcpy, [=, reads = number(from), writes = number(to)] {
    if (number(from) != reads || number(to) != writes) {
      return complain("a copy of memory that is freed");
    }
    std::memmove(to, from, bytes);
  }));
}

cudaError_t CUDARTAPI cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  ENTER("cudaDeviceGetStreamPriorityRange");
  *least = 0;
  *greatest = kGreatestPriority;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags,
                                                   int priority) {
  ENTER("cudaStreamCreateWithPriority");
  auto made = std::make_shared<Stream>();
  made->device = current_device();
  made->priority = std::clamp(priority, kGreatestPriority, 0);
  made->flags = flags;
  *stream = reinterpret_cast<cudaStream_t>(made.get());
  state().streams[*stream] = std::move(made);
  return cudaSuccess;
}
// Its work goes on.
cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t stream) {
  ENTER("cudaStreamDestroy");
  const StreamPtr on = make_stream(stream);
  if (stream == nullptr || !on) return leave(cudaErrorInvalidResourceHandle);
  if (on->capture) complain("destroys a stream that is captured");
  advance(*on, on->queued());
  state().streams.erase(stream);
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t stream) {
  ENTER("cudaStreamSynchronize");
  const StreamPtr on = make_stream(stream);
  if (!on) return leave(cudaErrorInvalidResourceHandle);
  if (const cudaError_t refused = refuse_to_wait(*on)) return leave(refused);
  advance(*on, on->queued());
  return leave(broken(on->device));
}
cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  ENTER("cudaStreamWaitEvent");
  const StreamPtr on = make_stream(stream);
  const auto waited = event_at(event);
  if (!on || !waited) return leave(cudaErrorInvalidResourceHandle);
  if (waited->capture) {
    if (waited->capture->ended) return leave(cudaErrorCapturedEvent);
    if (on->capture && on->capture != waited->capture) return leave(cudaErrorStreamCaptureMerge);
    on->capture = waited->capture;
    on->capture->streams.insert(on.get());
    on->tail.insert(waited->nodes.begin(), waited->nodes.end());
    return cudaSuccess;
  }
  if (on->capture) {
    on->capture->valid = false;
    return leave(cudaErrorStreamCaptureIsolation);
  }
  if (!waited->record) return cudaSuccess;  // never recorded: no wait
  return leave(queue(*on, cudaGraphNodeTypeEmpty,
                     [record = waited->record] { advance(*record->stream, record->position); }));
}

cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  ENTER("cudaEventCreateWithFlags");
  auto made = std::make_shared<Event>();
  made->device = current_device();
  made->flags = flags;
  *event = reinterpret_cast<cudaEvent_t>(made.get());
  state().events[*event] = std::move(made);
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t event) {
  ENTER("cudaEventDestroy");
  return leave(state().events.erase(event) > 0 ? cudaSuccess : cudaErrorInvalidResourceHandle);
}
cudaError_t CUDARTAPI cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                               unsigned flags) {
  ENTER("cudaEventRecord");
  const StreamPtr on = make_stream(stream);
  const auto recorded = event_at(event);
  if (!on || !recorded || on->device != recorded->device) {
    return leave(cudaErrorInvalidResourceHandle);
  }
  const bool external = (flags & cudaEventRecordExternal) != 0;
  if (external && !on->capture) return leave(cudaErrorIllegalState);
  if (external)
    return leave(queue(
        *on, cudaGraphNodeTypeEventRecord, [] {}, event));
  if (on->capture) {
    recorded->capture = on->capture;
    recorded->nodes = on->tail;
    return cudaSuccess;
  }
  recorded->capture = nullptr;
  recorded->record = record_now(on);
  return leave(queue(*on, cudaGraphNodeTypeEmpty, [record = recorded->record] {
    record->done = true;
    record->time = now();
  }));
}
cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}
// Nothing goes on by being asked for, but who asks again has waited meanwhile.
cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t event) {
  ENTER("cudaEventQuery");
  const auto asked = event_at(event);
  if (!asked) return leave(cudaErrorInvalidResourceHandle);
  if (const cudaError_t refused = refuse_while_capturing()) return leave(refused);
  if (asked->capture) return leave(cudaErrorCapturedEvent);
  if (!asked->record || asked->record->done) return leave(broken(asked->device));
  advance(*asked->record->stream, asked->record->position);
  return leave(cudaErrorNotReady);
}
cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t event) {
  ENTER("cudaEventSynchronize");
  const auto waited = event_at(event);
  if (!waited) return leave(cudaErrorInvalidResourceHandle);
  if (const cudaError_t refused = refuse_while_capturing()) return leave(refused);
  if (waited->capture) return leave(cudaErrorCapturedEvent);
  if (waited->record) advance(*waited->record->stream, waited->record->position);
  return leave(broken(waited->device));
}
cudaError_t CUDARTAPI cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin,
                                           cudaEvent_t end) {
  ENTER("cudaEventElapsedTime");
  const auto first = event_at(begin), last = event_at(end);
  if (!first || !last || !first->record || !last->record || first->device != last->device ||
      ((first->flags | last->flags) & cudaEventDisableTiming) != 0) {
    return leave(cudaErrorInvalidResourceHandle);
  }
  if (first->capture || last->capture) return leave(cudaErrorCapturedEvent);
  if (!first->record->done || !last->record->done) return leave(cudaErrorNotReady);
  *milliseconds = static_cast<float>(1e3 * (last->record->time - first->record->time));
  return cudaSuccess;
}

cudaError_t CUDARTAPI cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                                         void* argument) {
  ENTER("cudaLaunchHostFunc");
  const StreamPtr on = make_stream(stream);
  if (!on) return leave(cudaErrorInvalidResourceHandle);
  return leave(queue(*on, cudaGraphNodeTypeHost, [=] {
    in_host_function() = true;
    function(argument);
    in_host_function() = false;
  }));
}
cudaError_t CUDARTAPI cudaLaunchKernel(const void* function, dim3 grid, dim3 block,
                                       void** arguments, std::size_t shared_bytes,
                                       cudaStream_t stream) {
  ENTER("cudaLaunchKernel");
  constexpr unsigned kMostThreads = 1024;
  const StreamPtr on = make_stream(stream);
  auto* kernel = const_cast<Kernel*>(static_cast<const Kernel*>(function));
  if (!on || on->device != current_device()) return leave(cudaErrorInvalidResourceHandle);
  if (!kernel->built) return leave(cudaErrorNoKernelImageForDevice);
  if (grid.x == 0 || block.x == 0 || block.x > kMostThreads ||
      shared_bytes > kernel->most_shared_bytes) {
    return leave(cudaErrorInvalidConfiguration);
  }
  if (!kernel->loaded) complain("a kernel is loaded by its launch");
  kernel->loaded = true;
  const auto* first = static_cast<const char*>(arguments[0]);
  auto parameters =
      std::make_shared<std::vector<double>>(kernel->parameter_bytes / sizeof(double) + 1);
  std::memcpy(parameters->data(), first, kernel->parameter_bytes);
  return leave(queue(*on, cudaGraphNodeTypeKernel, [=, device = on->device] {
    if (state().to_break.erase(device) > 0) {
      state().broken[device] = cudaErrorIllegalAddress;
      return;
    }
    if (state().observer) state().observer("kernel", device);
    kernel->run(parameters->data(), {grid.x, block.x, shared_bytes});
  }));
}

}  // extern "C"
