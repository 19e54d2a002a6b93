// The part of cuDNN's backend API that Paceline uses, and the card for its plans.
#pragma once

#include <cudnn_graph.h>
#include <cudnn_version.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/core/shared_library.h"
#include "engine/device/cuda/products.h"

namespace paceline::cuda {

// The functions of an opened library. To make it throws usage if one is missing.
struct CudnnTable {
  SharedLibrary library;

  PACELINE_FUNCTION(library, version, cudnnGetVersion);
  PACELINE_FUNCTION(library, cudart_version, cudnnGetCudartVersion);
  PACELINE_FUNCTION(library, error_string, cudnnGetErrorString);
  PACELINE_FUNCTION(library, last_error_string, cudnnGetLastErrorString);
  PACELINE_FUNCTION(library, create, cudnnCreate);
  PACELINE_FUNCTION(library, destroy, cudnnDestroy);
  PACELINE_FUNCTION(library, set_stream, cudnnSetStream);
  PACELINE_FUNCTION(library, create_descriptor, cudnnBackendCreateDescriptor);
  PACELINE_FUNCTION(library, destroy_descriptor, cudnnBackendDestroyDescriptor);
  PACELINE_FUNCTION(library, finalize, cudnnBackendFinalize);
  PACELINE_FUNCTION(library, set_attribute, cudnnBackendSetAttribute);
  PACELINE_FUNCTION(library, get_attribute, cudnnBackendGetAttribute);
  PACELINE_FUNCTION(library, execute, cudnnBackendExecute);

  // Throws `what` with the status, its group and the library's message.
  void check(cudnnStatus_t status, const std::string& what) const;
};

// A node of a graph or plan: created, given attributes, finalized. The table outlives it. cuDNN
// does not own the descriptors that an attribute refers to, so keep them alive.
class Descriptor {
 public:
  // `noun` is for error messages: "convolution".
  Descriptor(const CudnnTable& table, cudnnBackendDescriptorType_t type, const char* noun);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;

  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  std::int64_t count, const void* values);
  Descriptor& set(cudnnBackendAttributeName_t name, std::int64_t value) {
    return set(name, CUDNN_TYPE_INT64, 1, &value);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  Descriptor& set(cudnnBackendAttributeName_t name, float value) {
    return set(name, CUDNN_TYPE_FLOAT, 1, &value);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, bool value) {
    return set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    return set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& value);
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values);
  Descriptor& finalize();

  std::int64_t integer(cudnnBackendAttributeName_t name) const;
  // Returns the number of values. Copies at most `room` of them to `values`, which may be null for
  // none.
  std::int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   std::int64_t room, void* values) const;
  // Into a created, not finalized descriptor of the right type.
  void get(cudnnBackendAttributeName_t name, Descriptor& value) const;
  // All of them, at most `most`. `type` and `noun` are those of the descriptors.
  std::vector<Descriptor> get_all(cudnnBackendAttributeName_t name, std::int64_t most,
                                  cudnnBackendDescriptorType_t type, const char* noun) const;

  cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  const CudnnTable* table_;
  cudnnBackendDescriptor_t raw_ = nullptr;
  const char* noun_;
};

// "9.19.0". If cuDNN was built for another CUDA than this program (`cudart`: 12090), also says
// which: its engines then look for libraries that are missing.
std::string cudnn_version_text(std::size_t version, std::size_t cudart);

// The attributes by which descriptors take a described card. cuDNN has them since 9.8; built with
// older headers, this program knows only cards that are there.
using CardAttribute = std::optional<cudnnBackendAttributeName_t>;
#if CUDNN_VERSION >= 90800
inline constexpr CardAttribute kCardOfHeuristics = CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                               kCardOfEngine = CUDNN_ATTR_ENGINE_DEVICEPROP,
                               kCardOfPlan = CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP;
#else
inline constexpr CardAttribute kCardOfHeuristics, kCardOfEngine, kCardOfPlan;
#endif

// The card for which plans are made: the calling thread's current one, or one that is only
// described, whose plans are built and checked but never run. Not thread-safe.
class Session {
 public:
  // Empty description: the current card. Throws usage if there is none.
  Session(const SharedLibrary& library, const std::string& description);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const CudnnTable& table() const { return table_; }
  std::string version() const;  // "9.19.0"
  bool runs() const { return handle_ != nullptr; }

  Descriptor make(cudnnBackendDescriptorType_t type, const char* noun) const {
    return Descriptor(table_, type, noun);
  }
  // Sets the card of a descriptor, by the attribute that takes a handle or the one that takes a
  // description. Does nothing if it has no such attribute.
  void name_card(Descriptor& descriptor, CardAttribute by_handle,
                 CardAttribute by_description) const;
  void execute(const Descriptor& plan, const Descriptor& pack, Stream stream);

 private:
  CudnnTable table_;
  std::unique_ptr<Descriptor> description_;
  cudnnHandle_t handle_ = nullptr;
  Stream stream_ = nullptr;
};

// The GPU libraries for products. None is linked, so the program starts without them.

// File names in order of preference, for the CUDA major version of the build, with any minor
// version. Tests use others.
struct LibraryNames {
  LibraryNames();

  std::vector<std::string> nvrtc_builtins, nvrtc, cublas_lt, cudnn;
};

// Opens the libraries in the order of their dependencies: cuDNN looks up NVRTC and cuBLASLt by name
// and finds the open ones. Throws usage if cuBLASLt or cuDNN is missing. Without NVRTC, cuDNN
// offers fewer engines.
struct Libraries {
  explicit Libraries(const LibraryNames& names);

  SharedLibrary nvrtc_builtins, nvrtc, cublas_lt, cudnn;
};

}  // namespace paceline::cuda
