// TCP over IPv4 and IPv6, with RAII descriptors and bounded waits. No call raises SIGPIPE. Child
// processes do not inherit descriptors.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/file.h"

namespace paceline {

// A point in time, `seconds` from now, at which a wait ends.
class Deadline {
 public:
  explicit Deadline(double seconds);
  bool passed() const { return milliseconds_left() == 0; }
  int milliseconds_left() const;  // rounded up, for poll(); at most an hour

 private:
  double at_;
};

Deadline earlier(const Deadline& a, const Deadline& b);

// A numeric address without a port.
struct Endpoint {
  sockaddr_storage address{};
  socklen_t length = 0;

  bool is_loopback() const;
  bool is_wildcard() const;
  std::string text() const;  // "10.0.0.3", "fe80::1%eth0"
};

// All addresses of a host name or numeric address. Throws usage if there are none. The resolver has
// its own timeouts.
std::vector<Endpoint> resolve(const std::string& host);
bool is_numeric_address(const std::string& host);

// An abstract Unix socket address, visible only on this machine and in its network namespace. Takes
// no port. At most kLongestLocalName characters. Not a secret: every user of the machine can see
// it.
inline constexpr std::size_t kLongestLocalName = 100;
Endpoint local_endpoint(std::string_view name);

std::optional<std::uint16_t> to_port(std::string_view text);  // 1 to 65535

// "10.0.0.3:29400", "[::1]:29400"
std::string format_address(std::string_view host, std::uint16_t port);

// Non-blocking sockets. Empty, with errno set, on failure. Port 0: any.
Descriptor listen_at(const Endpoint& endpoint, std::uint16_t port);
Descriptor connect_to(const Endpoint& endpoint, std::uint16_t port, const Deadline& deadline);
// Returns at once. Data can be sent from when it is connected on.
Descriptor begin_to_connect(const Endpoint& endpoint, std::uint16_t port);

std::string find_local_host(const Descriptor& socket);  // numeric
std::uint16_t find_local_port(const Descriptor& socket);
bool is_local(const Descriptor& socket);  // connected through a local_endpoint()
std::string find_peer_host(const Descriptor& socket);

// Whether the process at the other end of a local connection has the same user as this one.
bool is_same_user(const Descriptor& socket);
// "127.0.0.1:29400 (user 65534)"; without the user where nobody of this machine listens.
std::string describe_listener(const Endpoint& endpoint, std::uint16_t port);

// Disables Nagle's algorithm, and enables keep-alive so that a dead host is noticed within 20 s.
void tune(const Descriptor& socket);

// Waits for `events` of poll(). False: the deadline passed.
bool wait_for(const Descriptor& descriptor, short events, const Deadline& deadline);

enum class Transfer { some, nothing_yet, ended };
// Appends the available bytes. Never blocks.
Transfer receive(const Descriptor& socket, std::string& bytes);
// Sends as much as possible and removes it from the front. Never blocks.
Transfer send_some(const Descriptor& socket, std::string& bytes);
// False: the peer is gone, or the deadline passed.
bool send_all(const Descriptor& socket, std::string bytes, const Deadline& deadline);

// Raises this process's soft limit on open files to `count` if it is lower. Throws usage if the
// hard limit is lower; `what` names who needs the files.
void allow_open_files(std::size_t count, const std::string& what);

// Interrupts a thread's poll().
class WakeUp {
 public:
  WakeUp();
  const Descriptor& descriptor() const { return event_; }
  void ring() noexcept;

 private:
  Descriptor event_;
};

}  // namespace paceline
