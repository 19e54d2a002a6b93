#include "engine/comm/transport/mesh.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "engine/comm/rendezvous/join.h"
#include "engine/comm/rendezvous/socket.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr double kGreetingSeconds = 2;
constexpr std::size_t kGreetingBytes = 40;  // 32 of the token, 8 of the rank

std::set<int> list_peers(int rank, int size) {
  std::set<int> peers;
  for (int distance = 1; distance < size; distance <<= 1) {
    peers.insert((rank + distance) % size);
    peers.insert((rank - distance + size) % size);
  }
  peers.erase(rank);
  return peers;
}

std::string greeting(const std::string& token, int rank) {
  return fmt::format("{}{:08x}", token, rank);
}

struct MeshHandshake {
  StoreClient& store;
  std::string_view name;
  const RankGroup& group;
  Deadlines deadlines;
  Deadline end{deadlines.limit_seconds()};

  std::string make_key(int peer) const { return fmt::format("{}/{}", name, peer); }
  int name_of_member(int peer) const { return group.names[static_cast<std::size_t>(peer)]; }

  Descriptor reach(int peer) const {
    const std::string where =
        store.get(make_key(peer), end.milliseconds_left() / 1000.0,
                  fmt::format("the address of rank {}", name_of_member(peer)));
    const std::vector<std::string> parts = split(where, ' ');
    const auto port = parts.size() == 4 ? to_integer(parts[1]) : std::nullopt;
    if (!port) throw Error(ErrorKind::internal, "the store holds no address of a rank", where);
    Descriptor socket = connect_to(local_endpoint(parts[3]), 0, end);
    if (!socket) {  // on another machine
      socket = connect_to(resolve(parts[0]).front(), static_cast<std::uint16_t>(*port), end);
    }
    if (!socket || !send_all(socket, greeting(parts[2], group.rank), end)) {
      throw Error(ErrorKind::peer_lost,
                  fmt::format("no connection to rank {}", name_of_member(peer)),
                  format_address(parts[0], static_cast<std::uint16_t>(*port)),
                  "see that rank's error, and check for a firewall between the nodes")
          .on_rank(group.name());
    }
    tune(socket);
    return socket;
  }

  // Nothing where it was a stranger.
  int rank_behind(const Descriptor& socket, const std::string& token) const {
    const Deadline deadline = earlier(end, Deadline(kGreetingSeconds));
    // No byte more: what follows is the peer's first message.
    std::string bytes(kGreetingBytes, '\0');
    for (std::size_t have = 0; have < bytes.size();) {
      if (!wait_for(socket, POLLIN, deadline)) return -1;
      const ssize_t got = recv(socket.number(), bytes.data() + have, bytes.size() - have, 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got <= 0) return -1;
      have += static_cast<std::size_t>(got);
    }
    for (const int peer : peers) {
      if (bytes == greeting(token, peer)) return peer;
    }
    return -1;
  }

  std::set<int> peers = {};  // that have yet to come
};

[[noreturn]] void throw_missing(const MeshHandshake& handshake) {
  std::vector<int> ranks;
  for (const int peer : handshake.peers) ranks.push_back(handshake.name_of_member(peer));
  throw Error(ErrorKind::stall,
              fmt::format("no connection from {} within {:g} s", ranks_text(ranks),
                          handshake.deadlines.limit_seconds()),
              "control connections",
              "see those ranks' errors, and check for a firewall between the nodes")
      .on_rank(handshake.group.name());
}

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

}  // namespace

std::map<int, Descriptor> connect_mesh(StoreClient& store, const RankGroup& group,
                                       const Deadlines& deadlines, std::string_view name) {
  const std::string host = store.local_address(), token = random_token();
  const std::string local_name = "paceline-" + random_token();
  const Descriptor listener = listen_at(resolve(host).front(), 0);
  const Descriptor local_listener = listen_at(local_endpoint(local_name), 0);
  if (!listener || !local_listener) {
    throw Error(ErrorKind::internal, "this rank cannot listen for the others", host,
                "raise the limit on open files (ulimit -n)");
  }
  MeshHandshake handshake{store, name, group, deadlines};
  store.set(handshake.make_key(group.rank),
            fmt::format("{} {} {} {}", host, find_local_port(listener), token, local_name));

  std::map<int, Descriptor> connections;
  for (const int peer : list_peers(group.rank, group.size())) {
    if (peer < group.rank) connections[peer] = handshake.reach(peer);
    if (peer > group.rank) handshake.peers.insert(peer);
  }
  while (!handshake.peers.empty()) {
    Descriptor socket = accept_either(listener, local_listener, handshake.end);
    if (!socket) throw_missing(handshake);
    const int peer = handshake.rank_behind(socket, token);
    if (handshake.peers.erase(peer) == 0) continue;
    tune(socket);
    connections[peer] = std::move(socket);
  }
  return connections;
}

bool all_agree(Communicator& ranks, bool mine) {
  std::vector<char> all(static_cast<std::size_t>(ranks.size()));
  const char word = mine ? 1 : 0;
  ranks.all_gather(&word, 1, all.data());
  return std::memchr(all.data(), 0, all.size()) == nullptr;
}

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
