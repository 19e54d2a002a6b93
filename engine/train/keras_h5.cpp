#include <hdf5.h>

#include <string>

#include "engine/core/error.h"
#include "engine/train/weights.h"

namespace paceline {

namespace {

constexpr int kMostDepth = 16;
constexpr std::size_t kMostObjects = 100'000;
constexpr hsize_t kMostElements = hsize_t{1} << 30;  // of all tensors; the file may declare any
constexpr std::uintmax_t kMostFileBytes = std::uintmax_t{4} << 30;
constexpr std::size_t kLargestNumber = 16;  // bytes of one value
constexpr int kMostDimensions = 8;

std::string checked(const std::filesystem::path& file) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(file, error);
  if (error || bytes > kMostFileBytes) {
    throw input_error(
        error ? "the file cannot be read: " + error.message() : "is too large for a weights file",
        file.string(), "get the file again");
  }
  return file.string();
}

// HDF5 prints a stack of errors to the terminal unless told not to.
class Quiet {
 public:
  Quiet() {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Quiet() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  hid_t id() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file)
      : name_(checked(file)), file_(H5Fopen(name_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose) {
    if (!file_.valid()) throw bad("is damaged or cut short: HDF5 cannot open it");
  }

  std::vector<NamedTensor> read() {
    const Handle root(H5Gopen2(file_.id(), "/", H5P_DEFAULT), H5Gclose);
    if (!root.valid()) throw bad("is damaged: HDF5 cannot open its root");
    walk(root.id(), "", 0);
    return std::move(tensors_);
  }

 private:
  Error bad(const std::string& what) const {
    return {ErrorKind::input, what, name_, "get the file again"};
  }

  void walk(hid_t group, const std::string& path, int depth) {
    H5G_info_t info;
    if (depth > kMostDepth || H5Gget_info(group, &info) < 0) {
      throw bad("is damaged at group /" + path);
    }
    for (hsize_t i = 0; i < info.nlinks; ++i) {
      if (++objects_ > kMostObjects) throw bad("has too many objects for a weights file");
      const std::string name = name_at(group, i, path);
      if (path.empty() && name == "optimizer_weights") continue;
      H5L_info_t link;
      if (H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT) < 0) {
        throw bad("is damaged at link /" + path + name);
      }
      if (link.type == H5L_TYPE_HARD) visit(group, name, path, depth);
    }
  }

  std::string name_at(hid_t group, hsize_t index, const std::string& path) const {
    char name[512];
    const ssize_t length = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, name,
                                              sizeof name, H5P_DEFAULT);
    if (length <= 0 || length >= static_cast<ssize_t>(sizeof name)) {
      throw bad("is damaged at a name in /" + path);
    }
    return name;
  }

  void visit(hid_t group, const std::string& name, const std::string& path, int depth) {
    const Handle object(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose);
    if (!object.valid()) throw bad("is damaged at /" + path + name);
    const H5I_type_t type = H5Iget_type(object.id());
    if (type == H5I_GROUP) walk(object.id(), path + name + "/", depth + 1);
    if (type == H5I_DATASET) take(object.id(), path + name);
  }

  // A file may declare any size, other files to read from, and code to load for its filters; HDF5
  // 1.10 itself reads past the end of chunks that unpack to less than they should. Keras writes
  // values as they are, in one piece.
  void check_storage(hid_t dataset, const std::string& path, hsize_t bytes) const {
    const Handle layout(H5Dget_create_plist(dataset), H5Pclose);
    if (!layout.valid()) throw bad("is damaged at /" + path);
    const H5D_layout_t kind = H5Pget_layout(layout.id());
    if (kind != H5D_CONTIGUOUS && kind != H5D_COMPACT) {
      throw input_error("chunked values are not supported, at /" + path, name_,
                        "save the weights with Keras, or as safetensors");
    }
    if (H5Pget_external_count(layout.id()) != 0) {
      throw bad("keeps values in another file at /" + path);
    }
    if (bytes > H5Dget_storage_size(dataset)) {
      throw bad("declares more values than it holds at /" + path);
    }
  }

  void take(hid_t dataset, const std::string& path) {
    const Handle type(H5Dget_type(dataset), H5Tclose);
    const Handle space(H5Dget_space(dataset), H5Sclose);
    if (!type.valid() || !space.valid()) throw bad("is damaged at /" + path);
    if (H5Tget_class(type.id()) != H5T_FLOAT) return;
    if (H5Tget_size(type.id()) > kLargestNumber) throw bad("has no usable numbers at /" + path);
    const int rank = H5Sget_simple_extent_ndims(space.id());
    hsize_t extents[kMostDimensions] = {};
    if (rank < 0 || rank > kMostDimensions ||
        H5Sget_simple_extent_dims(space.id(), extents, nullptr) < 0) {
      throw bad("has no usable shape at /" + path);
    }
    NamedTensor tensor{path, {}, {}};
    hsize_t elements = 1;
    for (int d = 0; d < rank; ++d) {
      if (extents[d] > kMostElements || elements * extents[d] > kMostElements) {
        throw bad("is too large at /" + path);
      }
      elements *= extents[d];
      tensor.shape.push_back(static_cast<int>(extents[d]));
    }
    check_storage(dataset, path, elements * H5Tget_size(type.id()));
    elements_ += elements;
    if (elements_ > kMostElements) throw bad("has more values than a weights file");
    tensor.values.resize(elements);
    if (elements > 0 && H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                                tensor.values.data()) < 0) {
      throw bad("cannot be read at /" + path + ": damaged or cut short");
    }
    tensors_.push_back(std::move(tensor));
  }

  Quiet quiet_;
  std::string name_;
  Handle file_;
  std::size_t objects_ = 0;
  hsize_t elements_ = 0;
  std::vector<NamedTensor> tensors_;
};

}  // namespace

std::vector<NamedTensor> read_keras_h5(const std::filesystem::path& file) {
  return Reader(file).read();
}

}  // namespace paceline
