#include "engine/comm/rendezvous/socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr int kBacklog = 4096;  // the kernel has its own limit, too: net.core.somaxconn

const sockaddr* generic(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

Endpoint with_port(Endpoint endpoint, std::uint16_t port) {
  if (endpoint.address.ss_family == AF_UNIX) return endpoint;
  if (endpoint.address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&endpoint.address)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(&endpoint.address)->sin_port = htons(port);
  }
  return endpoint;
}

Descriptor new_socket(const Endpoint& endpoint) {
  return Descriptor(
      socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void set_option(const Descriptor& socket, int level, int name, int value) {
  setsockopt(socket.number(), level, name, &value, sizeof value);
}

Endpoint socket_endpoint(const Descriptor& socket, decltype(&getsockname) which) {
  Endpoint endpoint;
  endpoint.length = sizeof endpoint.address;
  if (which(socket.number(), reinterpret_cast<sockaddr*>(&endpoint.address), &endpoint.length) !=
      0) {
    endpoint.length = 0;
  }
  return endpoint;
}

}  // namespace

Deadline::Deadline(double seconds) : at_(now_seconds() + seconds) {}

int Deadline::milliseconds_left() const {
  const double left = std::ceil((at_ - now_seconds()) * 1000);
  return static_cast<int>(std::clamp(left, 0.0, 3.6e6));
}

Deadline earlier(const Deadline& a, const Deadline& b) {
  return a.milliseconds_left() < b.milliseconds_left() ? a : b;
}

bool Endpoint::is_loopback() const {
  if (address.ss_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in*>(&address)->sin_addr.s_addr) >> 24 == 127;
  }
  return address.ss_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr);
}

bool Endpoint::is_wildcard() const {
  if (address.ss_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(&address)->sin_addr.s_addr == INADDR_ANY;
  }
  return address.ss_family == AF_INET6 &&
         IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr);
}

std::string Endpoint::text() const {
  std::array<char, NI_MAXHOST> host{};
  const int result = getnameinfo(generic(address), length, host.data(), host.size(), nullptr, 0,
                                 NI_NUMERICHOST | NI_NUMERICSERV);
  return result == 0 ? host.data() : "?";
}

std::optional<std::uint16_t> to_port(std::string_view text) {
  const auto number = to_integer(text);
  if (!number || *number < 1 || *number > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(*number);
}

std::vector<Endpoint> resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int result = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (result != 0) {
    throw usage_error(fmt::format("host \"{}\" cannot be resolved: {}", host, gai_strerror(result)),
                      "bootstrap store", "set PACELINE_STORE to an address of rank 0's node");
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  std::vector<Endpoint> endpoints;
  for (const addrinfo* entry = found; entry; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    Endpoint endpoint;
    std::memcpy(&endpoint.address, entry->ai_addr, entry->ai_addrlen);
    endpoint.length = entry->ai_addrlen;
    endpoints.push_back(endpoint);
  }
  return endpoints;
}

// The name is Linux's abstract one, which begins with a zero and is not a file.
bool is_numeric_address(const std::string& host) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  freeaddrinfo(found);
  return true;
}

Endpoint local_endpoint(std::string_view name) {
  Endpoint endpoint;
  auto& address = reinterpret_cast<sockaddr_un&>(endpoint.address);
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  endpoint.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return endpoint;
}

std::string format_address(std::string_view host, std::uint16_t port) {
  const bool v6 = host.find(':') != std::string_view::npos;
  return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Descriptor listen_at(const Endpoint& endpoint, std::uint16_t port) {
  const Endpoint target = with_port(endpoint, port);
  Descriptor socket = new_socket(target);
  if (!socket) return {};
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(socket.number(), generic(target.address), target.length) != 0 ||
      listen(socket.number(), kBacklog) != 0) {
    const int cause = errno;
    socket.close();
    errno = cause;
  }
  return socket;
}

Descriptor begin_to_connect(const Endpoint& endpoint, std::uint16_t port) {
  const Endpoint target = with_port(endpoint, port);
  Descriptor socket = new_socket(target);
  // An interrupted connect goes on by itself.
  if (socket && connect(socket.number(), generic(target.address), target.length) != 0 &&
      errno != EINPROGRESS && errno != EINTR) {
    const int cause = errno;
    socket.close();
    errno = cause;
  }
  return socket;
}

Descriptor connect_to(const Endpoint& endpoint, std::uint16_t port, const Deadline& deadline) {
  Descriptor socket = begin_to_connect(endpoint, port);
  // The listener has no room for now.
  while (!socket && errno == EAGAIN && !deadline.passed()) {
    poll(nullptr, 0, 5);
    socket = begin_to_connect(endpoint, port);
  }
  if (!socket) return socket;
  int cause = ETIMEDOUT;
  socklen_t length = sizeof cause;
  if (wait_for(socket, POLLOUT, deadline)) {
    getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &cause, &length);
  }
  if (cause != 0) {
    socket.close();
    errno = cause;
  }
  return socket;
}

std::string find_local_host(const Descriptor& socket) {
  return socket_endpoint(socket, &getsockname).text();
}

std::string find_peer_host(const Descriptor& socket) {
  return socket_endpoint(socket, &getpeername).text();
}

std::uint16_t find_local_port(const Descriptor& socket) {
  const Endpoint end = socket_endpoint(socket, &getsockname);
  return ntohs(end.address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&end.address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&end.address)->sin_port);
}

bool is_same_user(const Descriptor& socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         peer.uid == geteuid();
}

std::string describe_listener(const Endpoint& endpoint, std::uint16_t port) {
  const std::string address = format_address(endpoint.text(), port);
  const bool is_v6 = endpoint.address.ss_family == AF_INET6;
  std::array<std::uint32_t, 4> words{};
  if (is_v6) {
    std::memcpy(words.data(), &reinterpret_cast<const sockaddr_in6*>(&endpoint.address)->sin6_addr,
                sizeof words);
  } else {
    words[0] = reinterpret_cast<const sockaddr_in*>(&endpoint.address)->sin_addr.s_addr;
  }
  std::string local;
  for (std::size_t i = 0; i < (is_v6 ? 4 : 1); ++i) local += fmt::format("{:08X}", words[i]);
  local += fmt::format(":{:04X}", port);
  std::ifstream table(is_v6 ? "/proc/net/tcp6" : "/proc/net/tcp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream row(line);
    std::string at, remote, state, skipped, user;
    row >> skipped >> at >> remote >> state >> skipped >> skipped >> skipped >> user;
    if (at == local && state == "0A") return fmt::format("{} (user {})", address, user);
  }
  return address;
}

bool is_local(const Descriptor& socket) {
  return socket_endpoint(socket, &getsockname).address.ss_family == AF_UNIX;
}

void tune(const Descriptor& socket) {
  if (is_local(socket)) return;
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 2);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 20000);
}

bool wait_for(const Descriptor& descriptor, short events, const Deadline& deadline) {
  pollfd entry{descriptor.number(), events, 0};
  while (true) {
    const int ready = poll(&entry, 1, deadline.milliseconds_left());
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (deadline.passed()) return false;
  }
}

Transfer receive(const Descriptor& socket, std::string& bytes) {
  std::array<char, 65536> chunk;
  while (true) {
    const ssize_t count = recv(socket.number(), chunk.data(), chunk.size(), 0);
    if (count > 0) {
      bytes.append(chunk.data(), static_cast<std::size_t>(count));
      return Transfer::some;
    }
    if (count < 0 && errno == EINTR) continue;
    const bool later = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    return later ? Transfer::nothing_yet : Transfer::ended;
  }
}

Transfer send_some(const Descriptor& socket, std::string& bytes) {
  std::size_t sent = 0;
  Transfer result = Transfer::some;
  while (sent < bytes.size() && result == Transfer::some) {
    const ssize_t count =
        send(socket.number(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      result = Transfer::nothing_yet;
    } else if (errno != EINTR) {
      result = Transfer::ended;
    }
  }
  bytes.erase(0, sent);
  return result;
}

bool send_all(const Descriptor& socket, std::string bytes, const Deadline& deadline) {
  while (true) {
    const Transfer result = send_some(socket, bytes);
    if (result == Transfer::some) return true;
    if (result == Transfer::ended || !wait_for(socket, POLLOUT, deadline)) return false;
  }
}

void allow_open_files(std::size_t count, const std::string& what) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count) return;
  if (limit.rlim_max >= count) {
    limit.rlim_cur = count;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  }
  throw usage_error(
      fmt::format("{} needs {} open files, the limit is {}", what, count, limit.rlim_max), "",
      fmt::format("raise the limit (ulimit -n {})", count));
}

WakeUp::WakeUp() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (event_) return;
  throw usage_error(fmt::format("no event descriptor: {}", std::strerror(errno)), "eventfd",
                    "raise the limit on open files (ulimit -n)");
}

void WakeUp::ring() noexcept {
  const std::uint64_t one = 1;
  // Full means that it rings already.
  [[maybe_unused]] const ssize_t written = write(event_.number(), &one, sizeof one);
}

}  // namespace paceline
