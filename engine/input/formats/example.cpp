#include "engine/input/formats/example.h"

#include <fmt/format.h>

#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/input/formats/example.pb.h"

namespace paceline {

namespace {

wire::Feature* find_feature(wire::Example& example, const std::string& key) {
  auto& features = *example.mutable_features()->mutable_feature();
  const auto found = features.find(key);
  return found == features.end() ? nullptr : &found->second;
}

std::string list_keys(const wire::Example& example) {
  std::vector<std::string> keys;
  for (const auto& [key, feature] : example.features().feature()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys.empty() ? "no feature at all" : join(keys, ", ");
}

}  // namespace

void take_example(EncodedSample& sample, const ExampleKeys& keys, std::size_t classes,
                  const std::function<std::string()>& where) {
  const auto bad = [&](const std::string& what) {
    return Error(ErrorKind::input, what, where(), "write the data set again");
  };
  wire::Example example;
  if (!example.ParseFromString(sample.bytes)) throw bad("the record is not a tf.train.Example");
  wire::Feature* image = find_feature(example, keys.image);
  if (!image || image->bytes_list().value_size() != 1) {
    throw bad(image ? fmt::format("feature \"{}\" does not hold one image", keys.image)
                    : fmt::format("the Example has no image: it holds {}, not \"{}\"",
                                  list_keys(example), keys.image));
  }
  wire::Feature* label = find_feature(example, keys.label);
  if (!label || label->int64_list().value_size() != 1) {
    throw bad(label ? fmt::format("feature \"{}\" is not one whole number", keys.label)
                    : fmt::format("the Example has no label: it holds {}, not \"{}\"",
                                  list_keys(example), keys.label));
  }
  const std::int64_t value = label->int64_list().value(0);
  if (value < 0 || static_cast<std::uint64_t>(value) >= classes) {
    throw bad(fmt::format("label {} is out of range: there are {} classes", value, classes));
  }
  sample.label = static_cast<std::int32_t>(value);
  sample.bytes.swap(*image->mutable_bytes_list()->mutable_value(0));
  sample.image = sample.bytes;
  sample.height = sample.width = 0;
}

}  // namespace paceline
