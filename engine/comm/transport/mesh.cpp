#include "engine/comm/transport/mesh.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
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
constexpr std::size_t kMostGuests = 256;
constexpr std::size_t kGreetingBytes = kTokenBytes + 8;  // 8 of the rank

std::set<int> list_peers(int rank, int size) {
  std::set<int> peers;
  for (int distance = 1; distance < size; distance <<= 1) {
    peers.insert((rank + distance) % size);
    peers.insert((rank - distance + size) % size);
  }
  peers.erase(rank);
  return peers;
}

std::string greeting(const std::string& secret, int rank) {
  return fmt::format("{}{:08x}", secret, rank);
}

// Has connected, and has not said yet who it is.
struct Guest {
  Descriptor socket;
  std::string bytes = {};
  Deadline until{kGreetingSeconds};

  // False: the greeting is not whole yet, and may become so. Reads no byte more: what follows is
  // the peer's first message.
  bool is_done() {
    char rest[kGreetingBytes];
    const ssize_t got = recv(socket.number(), rest, kGreetingBytes - bytes.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return until.passed();
    if (got <= 0) return true;
    bytes.append(rest, static_cast<std::size_t>(got));
    return bytes.size() == kGreetingBytes;
  }
};

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
    const auto peers_address = parse_mesh_address(where);
    if (!peers_address) {
      throw Error(
          ErrorKind::peer_lost, fmt::format("this is no address of rank {}", name_of_member(peer)),
          printable(where.substr(0, 100)), "see the log of the process that hosts the store")
          .on_rank(group.name());
    }
    const auto& [host, port, secret, local_name] = *peers_address;
    Descriptor socket = connect_to(local_endpoint(local_name), 0, end);
    if (!socket || !is_same_user(socket)) {  // on another machine
      socket = connect_to(resolve(host).front(), port, end);
    }
    if (!socket || !send_all(socket, greeting(secret, group.rank), end)) {
      throw Error(ErrorKind::peer_lost,
                  fmt::format("no connection to rank {}", name_of_member(peer)),
                  format_address(host, port),
                  "see that rank's error, and check for a firewall between the nodes")
          .on_rank(group.name());
    }
    tune(socket);
    return socket;
  }

  // Lets in who waits at a listener. Those of other users would only take room.
  void accept(const Descriptor& listener) {
    for (std::size_t i = 0; i < kMostGuests; ++i) {
      Descriptor socket(accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket) return;
      if (!is_local(socket) || is_same_user(socket)) guests.push_back({std::move(socket)});
    }
  }

  // Waits for the next event, and returns the peers that have said who they are.
  std::map<int, Descriptor> receive_peers(const Descriptor& listener,
                                          const Descriptor& local_listener,
                                          const std::string& secret) {
    std::vector<pollfd> entries{{listener.number(), POLLIN, 0},
                                {local_listener.number(), POLLIN, 0}};
    for (const Guest& guest : guests) entries.push_back({guest.socket.number(), POLLIN, 0});
    const Deadline next = guests.empty() ? end : earlier(end, guests.front().until);
    poll(entries.data(), entries.size(), next.milliseconds_left());
    accept(listener);
    accept(local_listener);
    std::map<int, Descriptor> found;
    std::erase_if(guests, [&](Guest& guest) {
      if (!guest.is_done()) return false;
      for (const int peer : peers) {
        if (guest.bytes != greeting(secret, peer)) continue;
        found[peer] = std::move(guest.socket);
        peers.erase(peer);
        break;
      }
      return true;
    });
    if (guests.size() > kMostGuests) {
      guests.erase(guests.begin(), guests.end() - static_cast<std::ptrdiff_t>(kMostGuests));
    }
    return found;
  }

  std::vector<Guest> guests = {};
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

std::byte* map_memory(const Descriptor& file, std::size_t bytes) {
  if (!file) return nullptr;
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
}

}  // namespace

std::string to_text(const MeshAddress& address) {
  return fmt::format("{} {} {} {}", address.host, address.port, address.secret, address.local_name);
}

std::optional<MeshAddress> parse_mesh_address(const std::string& text) {
  const std::vector<std::string> parts = split(text, ' ');
  const auto port = parts.size() == 4 ? to_port(parts[1]) : std::nullopt;
  if (!port || !is_numeric_address(parts[0]) || parts[2].size() != kTokenBytes ||
      parts[3].size() > kLongestLocalName) {
    return std::nullopt;
  }
  return MeshAddress{parts[0], *port, parts[2], parts[3]};
}

std::map<int, Descriptor> connect_mesh(StoreClient& store, const RankGroup& group,
                                       const Deadlines& deadlines, std::string_view name) {
  const std::string host = store.local_address(), secret = random_token();
  const std::string local_name = "paceline-" + random_token();
  const Descriptor listener = listen_at(resolve(host).front(), 0);
  const Descriptor local_listener = listen_at(local_endpoint(local_name), 0);
  if (!listener || !local_listener) {
    throw usage_error("this rank cannot listen for the others", host,
                      "raise the limit on open files (ulimit -n)");
  }
  MeshHandshake handshake{store, name, group, deadlines};
  store.set(handshake.make_key(group.rank),
            to_text({host, find_local_port(listener), secret, local_name}));

  std::map<int, Descriptor> connections;
  for (const int peer : list_peers(group.rank, group.size())) {
    if (peer < group.rank) connections[peer] = handshake.reach(peer);
    if (peer > group.rank) handshake.peers.insert(peer);
  }
  while (!handshake.peers.empty()) {
    if (handshake.end.passed()) throw_missing(handshake);
    for (auto& [peer, socket] : handshake.receive_peers(listener, local_listener, secret)) {
      tune(socket);
      connections[peer] = std::move(socket);
    }
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
  std::byte* all = map_memory(file, whole);
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
