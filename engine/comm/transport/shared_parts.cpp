#include "engine/comm/transport/shared_parts.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>

#include "engine/comm/rendezvous/address.h"
#include "engine/comm/rendezvous/socket.h"

namespace paceline {

namespace {

constexpr std::size_t kPage = 4096;
constexpr char kFolder[] = "/dev/shm/paceline-";

using FileName = std::array<char, 64>;  // empty: there is none

// A part's room is taken at once: a sparse file in a full /dev/shm shows as SIGBUS at the first
// touch. By its rank, as the pages lie near who takes them; in pieces, as a signal ends the call
// and undoes what it did.
bool take_room(const Descriptor& file, std::size_t begin, std::size_t bytes) {
  constexpr std::size_t kPiece = std::size_t{16} << 20;
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    const auto piece = static_cast<off_t>(std::min(kPiece, bytes - at));
    int result = EINTR;
    while (result == EINTR) {
      result = posix_fallocate(file.number(), static_cast<off_t>(begin + at), piece);
    }
    if (result != 0) return false;
  }
  return true;
}

// Rank 0's: the name goes with the end of make(), also where a peer is lost on the way.
struct Unlinked {
  const FileName& name;
  bool is_mine;
  ~Unlinked() {
    if (is_mine && name[0] != '\0') unlink(name.data());
  }
};

Descriptor new_file(FileName& name, std::size_t bytes) {
  const std::string path = kFolder + random_token();
  Descriptor file(open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (!file) return file;
  if (ftruncate(file.number(), static_cast<off_t>(bytes)) != 0) {
    unlink(path.c_str());
    return {};
  }
  path.copy(name.data(), name.size() - 1);
  return file;
}

std::byte* mapped(const Descriptor& file, std::size_t bytes) {
  if (!file) return nullptr;
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
}

bool all_agree(Communicator& ranks, bool mine) {
  std::vector<char> all(static_cast<std::size_t>(ranks.size()));
  const char word = mine ? 1 : 0;
  ranks.all_gather(&word, 1, all.data());
  return std::memchr(all.data(), 0, all.size()) == nullptr;
}

}  // namespace

std::unique_ptr<SharedParts> SharedParts::make(Communicator& ranks, std::size_t bytes) {
  const std::size_t part = (bytes + kPage - 1) / kPage * kPage + kBetweenParts;
  const std::size_t whole = part * static_cast<std::size_t>(ranks.size());
  FileName name{};
  const Unlinked at_the_end{name, ranks.rank() == 0};
  Descriptor file;
  if (ranks.rank() == 0) file = new_file(name, whole);
  ranks.broadcast(name.data(), name.size(), 0);
  if (name[0] == '\0') return nullptr;
  if (ranks.rank() != 0) file = Descriptor(open(name.data(), O_RDWR | O_CLOEXEC));
  const auto begin = part * static_cast<std::size_t>(ranks.rank());
  const bool has_room = file && take_room(file, begin, part);
  std::byte* all = mapped(file, whole);
  const bool is_there = all_agree(ranks, has_room && all != nullptr);
  if (is_there) {
    return std::unique_ptr<SharedParts>(new SharedParts(all, part, ranks.rank(), ranks.size()));
  }
  if (all != nullptr) munmap(all, whole);
  return nullptr;
}

SharedParts::SharedParts(std::byte* all, std::size_t part_bytes, int rank, int size)
    : part_bytes_(part_bytes), rank_(static_cast<std::size_t>(rank)) {
  for (int i = 0; i < size; ++i) parts_.push_back(all + static_cast<std::size_t>(i) * part_bytes);
  std::memset(mine(), 0, part_bytes_);
}

SharedParts::~SharedParts() {
  munmap(parts_.front(), part_bytes_ * parts_.size());
}

bool SharedParts::holds(const void* data, std::size_t bytes) const {
  const auto* first = static_cast<const std::byte*>(data);
  const std::less_equal<> before;  // of pointers into different objects
  return before(mine(), first) && before(first + bytes, mine() + part_bytes_);
}

}  // namespace paceline
