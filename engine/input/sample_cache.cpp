#include "engine/input/sample_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "engine/core/error.h"

namespace paceline {

bool MemoryBudget::take(std::size_t count) {
  std::size_t used = used_.load();
  do {
    if (count > bytes_ || used > bytes_ - count) return false;
  } while (!used_.compare_exchange_weak(used, used + count));
  return true;
}

NamelessFile::NamelessFile(const std::filesystem::path& folder) : folder_(folder) {
  descriptor_ = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor_ >= 0) return;
  std::string name = (folder / "paceline-cache-XXXXXX").string();  // where O_TMPFILE is unknown
  descriptor_ = mkostemp(name.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    throw Error(ErrorKind::input, std::string("cannot hold the cache: ") + std::strerror(errno),
                folder.string(), "give another folder by --cache-dir");
  }
  unlink(name.c_str());
}

NamelessFile::~NamelessFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::int64_t NamelessFile::append(const char* data, std::size_t count) {
  const std::int64_t offset = end_.fetch_add(static_cast<std::int64_t>(count));
  for (std::size_t done = 0; done < count;) {
    const ssize_t n = pwrite(descriptor_, data + done, count - done,
                             static_cast<off_t>(offset + static_cast<std::int64_t>(done)));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return -1;
    done += static_cast<std::size_t>(n);
  }
  return offset;
}

void NamelessFile::read(std::int64_t offset, std::size_t count, char* out) const {
  while (count > 0) {
    const ssize_t n = pread(descriptor_, out, count, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      throw Error(ErrorKind::input,
                  std::string("the cache cannot be read: ") +
                      (n < 0 ? std::strerror(errno) : "its file is too short"),
                  folder_.string(), "give another folder by --cache-dir");
    }
    out += n;
    offset += n;
    count -= static_cast<std::size_t>(n);
  }
}

SampleCache::SampleCache(std::size_t samples, std::shared_ptr<MemoryBudget> memory,
                         std::shared_ptr<NamelessFile> file)
    : budget_(std::move(memory)), file_(std::move(file)), entries_(samples) {}

SampleCache::~SampleCache() {
  budget_->give_back(memory_bytes_);
}

std::size_t SampleCache::size(std::size_t i) const {
  const State state = entries_[i].state.load(std::memory_order_acquire);
  return state == State::in_memory || state == State::in_file ? entries_[i].count : 0;
}

void SampleCache::get(std::size_t i, char* out) const {
  const Entry& entry = entries_[i];
  if (entry.state.load(std::memory_order_acquire) == State::in_memory) {
    std::memcpy(out, entry.memory.get(), entry.count);
  } else {
    file_->read(entry.offset, entry.count, out);
  }
}

void SampleCache::put(std::size_t i, std::int32_t label, const char* data, std::size_t count) {
  Entry& entry = entries_[i];
  State expected = State::empty;
  if (!entry.state.compare_exchange_strong(expected, State::being_filled)) return;
  entry.label = label;
  entry.state.store(keep(entry, data, count), std::memory_order_release);
}

SampleCache::State SampleCache::keep(Entry& entry, const char* data, std::size_t count) {
  if (count > ~std::uint32_t{0}) return State::no_room;
  entry.count = static_cast<std::uint32_t>(count);
  if (budget_->take(count)) {
    entry.memory = std::make_unique_for_overwrite<char[]>(count);
    std::memcpy(entry.memory.get(), data, count);
    memory_bytes_ += count;
    return State::in_memory;
  }
  if (file_ && (entry.offset = file_->append(data, count)) >= 0) {
    file_bytes_ += count;
    return State::in_file;
  }
  return State::no_room;
}

}  // namespace paceline
