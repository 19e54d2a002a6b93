#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/input/prepare/fetch.h"

namespace paceline {

namespace {

constexpr char kMnist[] = "https://storage.googleapis.com/cvdf-datasets/mnist";

std::vector<PublishedSet> make_sets() {
  return {
      {"mnist",
       "handwritten digits, 60000 and 10000 of 28 x 28",
       {{"train-images-idx3-ubyte.gz", kMnist, 9912422, "sha256",
         "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
        {"train-labels-idx1-ubyte.gz", kMnist, 28881, "sha256",
         "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
        {"t10k-images-idx3-ubyte.gz", kMnist, 1648877, "sha256",
         "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
        {"t10k-labels-idx1-ubyte.gz", kMnist, 4542, "sha256",
         "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}},
       "",
       0},
      {"cifar10",
       "60000 photographs of 32 x 32 in 10 classes, binary version",
       {{"cifar-10-binary.tar.gz", "https://www.cs.toronto.edu/~kriz", 170052171, "sha256",
         "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}},
       "cifar-10-batches-bin",
       184'400'000},
      {"cassava",
       "9430 photographs of cassava leaves in 5 classes (iCassava 2019)",
       {{"cassavaleafdata.zip", "https://storage.googleapis.com/emcassavadata", 1354096203,
         "sha256", "8ae63d2ef7dee0899d252a748523e603f97e2ae7022f103f92fc42a9fce74d95"}},
       "cassavaleafdata",
       1'360'000'000},
      {"resnet50-imagenet",
       "ImageNet weights of Keras' ResNet-50 without its head",
       {{"resnet50_weights_tf_dim_ordering_tf_kernels_notop.h5",
         "https://storage.googleapis.com/tensorflow/keras-applications/resnet", 94765736, "md5",
         "4d473c1dd8becc155b73f8504c6f6626"}},
       "",
       0},
  };
}

}  // namespace

std::uint64_t PublishedSet::bytes() const {
  return summed(files, &PublishedFile::bytes);
}

const std::vector<PublishedSet>& published_sets() {
  static const std::vector<PublishedSet> sets = make_sets();
  return sets;
}

const PublishedSet& published_set_at(const std::string& name) {
  return row_named(published_sets(), &PublishedSet::name, name, "data set", "");
}

std::string make_url(const PublishedFile& file, const FetchOptions& options) {
  std::string base = options.mirror.empty() ? file.base : options.mirror;
  while (base.ends_with('/')) base.pop_back();
  return base + "/" + file.name;
}

std::string describe_fetch(const PublishedSet& set, const FetchOptions& options) {
  if (options.tfrecord && set.name != "cassava") {
    throw usage_error(set.name + " does not come as class folders", "--tfrecord", "leave it out");
  }
  if (!options.mirror.empty() && options.mirror.find("://") == std::string::npos) {
    throw usage_error("not a URL", "--mirror " + options.mirror,
                      "give one that begins with https://, http:// or file://");
  }
  std::string text = fmt::format("{}: {}\n", set.name, set.about);
  for (const PublishedFile& file : set.files) {
    text += fmt::format("  {}\n    {} ({} bytes), {} {}\n", make_url(file, options),
                        format_bytes(static_cast<double>(file.bytes)), file.bytes, file.algorithm,
                        file.digest);
  }
  text += fmt::format("  {} to download", format_bytes(static_cast<double>(set.bytes())));
  if (set.unpacked_bytes > 0) {
    text +=
        fmt::format(", about {} unpacked", format_bytes(static_cast<double>(set.unpacked_bytes)));
  }
  return text + "\n";
}

}  // namespace paceline
