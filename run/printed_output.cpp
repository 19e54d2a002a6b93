#include "run/printed_output.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMostInMemory = 32 << 20;

}  // namespace

PrintedOutput::PrintedOutput(std::filesystem::path folder) : folder_(std::move(folder)) {}

PrintedOutput::~PrintedOutput() {
  if (mapped_ != nullptr) munmap(mapped_, bytes_);
}

void PrintedOutput::add(std::string_view text) noexcept {
  try {
    if (!is_lost_) is_lost_ = !spill(text);
  } catch (const std::exception&) {
    is_lost_ = true;
  }
  bytes_ += text.size();
}

// False: there is no room.
bool PrintedOutput::spill(std::string_view text) {
  if (!file_ && memory_.size() + text.size() <= kMostInMemory) {
    memory_ += text;
    return true;
  }
  if (!file_) {
    file_ = std::make_unique<UnlinkedFile>(folder_);
    if (!file_->write(0, memory_.data(), memory_.size())) return false;
    std::string().swap(memory_);
  }
  return file_->write(static_cast<std::int64_t>(bytes_), text.data(), text.size());
}

std::string_view PrintedOutput::text() {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorKind::input,
                fmt::format("{} of output cannot be searched for results: {}",
                            format_bytes(static_cast<double>(bytes_)), why),
                folder_.string(), "make room, print less, or write the results to a file");
  };
  if (is_lost_) fail("there was no room to keep it");
  if (!file_) return memory_;
  if (mapped_ == nullptr) {
    void* const place = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file_->descriptor(), 0);
    if (place == MAP_FAILED) fail(std::strerror(errno));
    mapped_ = place;
  }
  return {static_cast<const char*>(mapped_), bytes_};
}

}  // namespace paceline
