#include "engine/input/prepare/tfrecord_writer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cerrno>
#include <cstring>

#include "engine/core/error.h"
#include "engine/input/formats/example.pb.h"
#include "engine/input/formats/tfrecord.h"

namespace paceline {

namespace {

[[noreturn]] void fail(const std::filesystem::path& file) {
  throw Error(ErrorKind::input, std::string("the file cannot be written: ") + std::strerror(errno),
              file.string(), "free some space or choose another folder");
}

}  // namespace

TfRecordWriter::TfRecordWriter(const std::filesystem::path& file)
    : file_(file), stream_(file, std::ios::binary | std::ios::trunc) {
  if (!stream_) fail(file_);
}

void TfRecordWriter::write(std::string_view data) {
  stream_ << framed_record(data);
  if (!stream_) fail(file_);
  bytes_ += data.size();
}

void TfRecordWriter::close() {
  stream_.close();
  if (!stream_) fail(file_);
}

std::string image_example(std::string_view image, const std::string& filename, std::int64_t label) {
  wire::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  features["image"].mutable_bytes_list()->add_value(image.data(), image.size());
  features["image/filename"].mutable_bytes_list()->add_value(filename);
  features["label"].mutable_int64_list()->add_value(label);
  // The order of a map's entries is otherwise another each time.
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    example.SerializeToCodedStream(&coded);
  }
  return bytes;
}

}  // namespace paceline
