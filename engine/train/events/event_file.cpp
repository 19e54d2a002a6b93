#include "engine/train/events/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "engine/core/error.h"
#include "engine/input/formats/tfrecord.h"

namespace paceline {

namespace {

constexpr char kVersion[] = "brain.Event:2";

std::string file_name(int number) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("events.out.tfevents.{:010}.{}.{}.{}.v2", std::time(nullptr), host.data(),
                     getpid(), number);
}

[[noreturn]] void fail(const std::filesystem::path& file, int why) {
  throw Error(ErrorKind::input,
              fmt::format("an event file cannot be written: {}", std::strerror(why)), file.string(),
              "free some space, or give --tensorboard another folder");
}

}  // namespace

EventFile::EventFile(const std::filesystem::path& folder, int number)
    : path_(folder / file_name(number)) {
  descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(path_, errno);
  Event first;
  first.wall_time = static_cast<double>(std::time(nullptr));
  first.file_version = kVersion;
  append(first);
}

EventFile::~EventFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void EventFile::append(const Event& event) {
  const std::string record = framed_record(encode(event));
  std::size_t done = 0;
  while (done < record.size()) {
    const ssize_t written = write(descriptor_, record.data() + done, record.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int why = written < 0 ? errno : ENOSPC;
      if (ftruncate(descriptor_, static_cast<off_t>(size_)) == 0) {
        lseek(descriptor_, static_cast<off_t>(size_), SEEK_SET);
      }
      fail(path_, why);
    }
    done += static_cast<std::size_t>(written);
  }
  size_ += record.size();
}

EventsRead read_events(const std::filesystem::path& file) {
  const TfRecordFile records(file, 0, TfRecordFile::OnDamage::keep_what_precedes);
  EventsRead read;
  std::string bytes;
  for (std::size_t i = 0; i < records.records(); ++i) {
    records.read(i, bytes);
    Event event = decode_event(bytes, records.where(i));
    if (i > 0) {
      read.events.push_back(std::move(event));
    } else if (event.file_version != kVersion) {
      throw Error(ErrorKind::input, "not an event file", file.string(),
                  fmt::format("give one that begins with {}", kVersion));
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
