// Reads event files back, as TensorBoard does.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/input/formats/tfrecord.h"
#include "engine/train/events/event.pb.h"
#include "engine/train/events/event_log.h"

namespace paceline {

inline constexpr char kEventVersion[] = "brain.Event:2";
inline constexpr int kTensorOfFloats = 1, kTensorOfDoubles = 2, kHistogramColumns = 3;

[[noreturn]] inline void refuse_event(const std::string& what, const std::string& where) {
  throw Error(ErrorKind::input, what, where, "write the event file again");
}

inline double read_scalar(const wire::Tensor& tensor, const std::string& where) {
  if (tensor.dtype() == kTensorOfFloats && tensor.float_val_size() == 1) {
    return static_cast<double>(tensor.float_val(0));
  }
  if (tensor.dtype() == kTensorOfFloats && tensor.tensor_content().size() == sizeof(float)) {
    float value = 0;
    std::memcpy(&value, tensor.tensor_content().data(), sizeof value);
    return static_cast<double>(value);
  }
  refuse_event("a scalar that is not a single float", where);
}

inline Histogram read_histogram(const wire::Tensor& tensor, const std::string& where) {
  const std::string& content = tensor.tensor_content();
  constexpr std::size_t kRow = kHistogramColumns * sizeof(double);
  if (tensor.dtype() != kTensorOfDoubles || content.size() % kRow != 0) {
    refuse_event("a histogram that has no three columns of doubles", where);
  }
  Histogram buckets(content.size() / kRow);
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    double row[kHistogramColumns];
    std::memcpy(row, content.data() + i * kRow, kRow);
    buckets[i] = {row[0], row[1], row[2]};
  }
  return buckets;
}

// Skips other kinds of values. Throws input for bytes that are not an event, or tensors of the
// wrong shape.
inline Event decode_event(std::string_view bytes, const std::string& where) {
  wire::Event message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    refuse_event("a record that is not an event", where);
  }
  Event event;
  event.wall_time = message.wall_time();
  event.step = message.step();
  event.file_version = message.file_version();
  for (const wire::Summary::Value& value : message.summary().value()) {
    const std::string& plugin = value.metadata().plugin_data().plugin_name();
    if (value.has_simple_value()) {
      event.scalars.push_back({value.tag(), static_cast<double>(value.simple_value())});
    } else if (plugin == "scalars") {
      event.scalars.push_back({value.tag(), read_scalar(value.tensor(), where)});
    } else if (plugin == "histograms") {
      event.histograms.push_back({value.tag(), read_histogram(value.tensor(), where)});
    }
  }
  return event;
}

struct EventsRead {
  std::vector<Event> events;  // without the first one, which names the format
  std::string damage;         // why reading stopped; empty: at the end of the file
};

// Also reads files that are being written. Throws input for other files.
inline EventsRead read_events(const std::filesystem::path& file) {
  const TfRecordFile records(file, 0, TfRecordFile::OnDamage::keep_what_precedes);
  EventsRead read;
  std::string bytes;
  for (std::size_t i = 0; i < records.records(); ++i) {
    records.read(i, bytes);
    Event event = decode_event(bytes, records.where(i));
    if (i > 0) {
      read.events.push_back(std::move(event));
    } else if (event.file_version != kEventVersion) {
      throw Error(ErrorKind::input, "not an event file", file.string(),
                  fmt::format("give one that begins with {}", kEventVersion));
    }
  }
  if (records.records() == 0) {
    throw Error(ErrorKind::input, "not an event file", file.string(), "give another file");
  }
  if (!records.damage().empty()) {
    read.damage = fmt::format("{} {}", records.where_end(), records.damage());
  }
  return read;
}

}  // namespace paceline
