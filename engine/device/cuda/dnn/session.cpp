#include "engine/device/cuda/dnn/session.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <utility>

#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/core/text.h"

namespace paceline::cuda {

void CudnnTable::check(cudnnStatus_t status, const std::string& what) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char words[1024] = "";
  last_error_string(words, sizeof words);
  struct Group {
    const char* name;
    ErrorKind kind;
    const char* fix;
  };
  const Group group = [&]() -> Group {
    switch (CUDNN_STATUS_CATEGORY(static_cast<int>(status))) {
      case CUDNN_STATUS_NOT_INITIALIZED - 1:
        return {"not ready", ErrorKind::usage,
                "check the driver, and that all parts of cuDNN are of one version"};
      case CUDNN_STATUS_NOT_SUPPORTED:
        return {"not supported", ErrorKind::usage, "another precision or batch may be served"};
      case CUDNN_STATUS_EXECUTION_FAILED:
        return {"execution failed", ErrorKind::internal, "check the GPU with nvidia-smi"};
      default:
        return {"refused", ErrorKind::internal,
                "run again with CUDNN_LOGLEVEL_DBG=2 CUDNN_LOGDEST_DBG=stderr for the reasons"};
    }
  }();
  throw Error(group.kind, fmt::format("cuDNN, {}: {}", what, group.name),
              fmt::format("{}{}{}", error_string(status), *words ? ": " : "", words), group.fix);
}

Descriptor::Descriptor(const CudnnTable& table, cudnnBackendDescriptorType_t type, const char* noun)
    : table_(&table), noun_(noun) {
  table.check(table.create_descriptor(type, &raw_), noun);
}

Descriptor::~Descriptor() {
  if (raw_) table_->destroy_descriptor(raw_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : table_(other.table_), raw_(std::exchange(other.raw_, nullptr)), noun_(other.noun_) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(table_, other.table_);
  std::swap(raw_, other.raw_);
  std::swap(noun_, other.noun_);
  return *this;
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                            std::int64_t count, const void* values) {
  const cudnnStatus_t status = table_->set_attribute(raw_, name, type, count, values);
  if (status != CUDNN_STATUS_SUCCESS) {
    table_->check(status, fmt::format("{}, attribute {}", noun_, static_cast<int>(name)));
  }
  return *this;
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name,
                            std::span<const std::int64_t> values) {
  return set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.raw_);
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& value : values) raw.push_back(value.raw_);
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(raw.size()),
             raw.data());
}

Descriptor& Descriptor::finalize() {
  const cudnnStatus_t status = table_->finalize(raw_);
  if (status != CUDNN_STATUS_SUCCESS) table_->check(status, noun_);
  return *this;
}

std::int64_t Descriptor::integer(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0;
  get(name, CUDNN_TYPE_INT64, 1, &value);
  return value;
}

std::int64_t Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                             std::int64_t room, void* values) const {
  std::int64_t count = 0;
  const cudnnStatus_t status = table_->get_attribute(raw_, name, type, room, &count, values);
  if (status != CUDNN_STATUS_SUCCESS) {
    table_->check(status, fmt::format("{}, asked for {}", noun_, static_cast<int>(name)));
  }
  return count;
}

void Descriptor::get(cudnnBackendAttributeName_t name, Descriptor& value) const {
  get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.raw_);
}

std::vector<Descriptor> Descriptor::get_all(cudnnBackendAttributeName_t name, std::int64_t most,
                                            cudnnBackendDescriptorType_t type,
                                            const char* noun) const {
  std::vector<Descriptor> values;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < most; ++i) {
    values.emplace_back(*table_, type, noun);
    raw.push_back(values.back().raw_);
  }
  const std::int64_t count =
      most > 0 ? get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, raw.data()) : 0;
  while (static_cast<std::int64_t>(values.size()) > count) values.pop_back();
  return values;
}

Session::Session(const SharedLibrary& library, const std::string& description) : table_{library} {
  if (description.empty()) {
    table_.check(table_.create(&handle_), "no GPU can be used");
    if (table_.cudart_version() / 1000 != CUDART_VERSION / 1000) {
      log::warning(
          "cuDNN {}: some of its engines cannot load; let PACELINE_CUDA_LIBS name the folder of "
          "one that fits",
          version());
    }
    return;
  }
#if CUDNN_VERSION >= 90800
  description_ = std::make_unique<Descriptor>(table_, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR,
                                              "description of a device");
  description_
      ->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
            static_cast<std::int64_t>(description.size()), description.c_str())
      .finalize();
#else
  throw usage_error("this program was built with headers that describe no cards", "cuDNN",
                    "build it with cuDNN 9.8 or later");
#endif
}

Session::~Session() {
  if (handle_) table_.destroy(handle_);
}

std::string Session::version() const {
  return cudnn_version_text(table_.version(), table_.cudart_version());
}

std::string cudnn_version_text(std::size_t version, std::size_t cudart) {
  const std::string text =
      fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  if (cudart / 1000 == CUDART_VERSION / 1000) return text;
  return fmt::format("{} for CUDA {}, where this program needs one for CUDA {}", text,
                     cudart / 1000, CUDART_VERSION / 1000);
}

void Session::name_card(Descriptor& descriptor, CardAttribute by_handle,
                        CardAttribute by_description) const {
  if (handle_ && by_handle) descriptor.set(*by_handle, CUDNN_TYPE_HANDLE, 1, &handle_);
  if (!handle_ && by_description) descriptor.set(*by_description, *description_);
}

void Session::execute(const Descriptor& plan, const Descriptor& pack, Stream stream) {
  if (!handle_) {
    throw usage_error("this plan was made from a description and cannot run", "cuDNN",
                      "run where the GPU is");
  }
  if (stream != stream_) {
    table_.check(table_.set_stream(handle_, static_cast<cudaStream_t>(stream)), "stream");
    stream_ = stream;
  }
  const cudnnStatus_t status = table_.execute(handle_, plan.raw(), pack.raw());
  if (status != CUDNN_STATUS_SUCCESS) table_.check(status, "a plan");
}

namespace {

constexpr int kMajor = CUDART_VERSION / 1000, kMinor = CUDART_VERSION / 10 % 100;

void require(const SharedLibrary& library, const char* name, const std::string& install) {
  if (library) return;
  std::vector<std::string> places =
      mapped(gpu_library_folders(), [](const auto& folder) { return folder.string(); });
  places.push_back("the system's libraries");
  throw usage_error(std::string(name) + " cannot be opened: " + library.problem() + ", looked in " +
                        join(places, ", "),
                    "", "install " + install + " or name its folder in PACELINE_CUDA_LIBS");
}

}  // namespace

// NVRTC's other half is of its very version, which need not be the one of the build.
LibraryNames::LibraryNames()
    : nvrtc{fmt::format("libnvrtc.so.{}", kMajor)},
      cublas_lt{fmt::format("libcublasLt.so.{}", kMajor)},
      cudnn{"libcudnn_graph.so.9"} {
  constexpr int kMinors = 10;
  for (int i = 0; i < kMinors; ++i) {
    nvrtc_builtins.push_back(
        fmt::format("libnvrtc-builtins.so.{}.{}", kMajor, (kMinor + i) % kMinors));
  }
}

Libraries::Libraries(const LibraryNames& names)
    : nvrtc_builtins(names.nvrtc_builtins, gpu_library_folders()),
      nvrtc(names.nvrtc, gpu_library_folders()),
      cublas_lt(names.cublas_lt, gpu_library_folders()),
      cudnn(names.cudnn, gpu_library_folders()) {
  require(cublas_lt, "cuBLASLt", fmt::format("the libraries of CUDA {}", kMajor));
  require(cudnn, "cuDNN", fmt::format("cuDNN 9 for CUDA {}", kMajor));
}

}  // namespace paceline::cuda
