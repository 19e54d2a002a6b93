// TCP over IPv4 and IPv6: descriptors that close themselves, waits that end. No call raises
// SIGPIPE, and no descriptor is inherited by a program we start.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace paceline {

// A moment at which waiting ends, `seconds` from now.
class Deadline {
 public:
  explicit Deadline(double seconds);
  bool passed() const { return milliseconds_left() == 0; }
  int milliseconds_left() const;  // rounded up, as poll() wants it; at most an hour

 private:
  double at_;
};

Deadline earlier(const Deadline& a, const Deadline& b);

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void close() noexcept;

 private:
  int number_ = -1;
};

// A numeric address without a port.
struct Endpoint {
  sockaddr_storage address{};
  socklen_t length = 0;

  bool is_loopback() const;
  bool is_wildcard() const;
  std::string text() const;  // "10.0.0.3", "fe80::1%eth0"
};

// All addresses of a host name or numeric address. Throws usage where there is none. The system's
// resolver keeps its own time.
std::vector<Endpoint> resolve(const std::string& host);

// A name that reaches this machine only, and of it this network namespace; it takes no port. At
// most 100 characters, and no secret: everybody on the machine sees it.
Endpoint local_endpoint(std::string_view name);

// "10.0.0.3:29400", "[::1]:29400"
std::string format_address(std::string_view host, std::uint16_t port);

// Sockets are non-blocking. Both are empty, with errno set, where it cannot be done. Port 0: any.
Descriptor listen_at(const Endpoint& endpoint, std::uint16_t port);
Descriptor connect_to(const Endpoint& endpoint, std::uint16_t port, const Deadline& deadline);

std::string local_host_of(const Descriptor& socket);  // numeric
std::uint16_t local_port_of(const Descriptor& socket);
bool is_local(const Descriptor& socket);  // by a local_endpoint()
std::string peer_host_of(const Descriptor& socket);

// No delay for small messages, and a host that died without a word is noticed within 20 s.
void tune(const Descriptor& socket);

// Whether `events` of poll() came before the deadline.
bool wait_for(const Descriptor& descriptor, short events, const Deadline& deadline);
// Until one of two listeners has a connection to accept; empty: not before the deadline.
Descriptor accept_either(const Descriptor& a, const Descriptor& b, const Deadline& deadline);

enum class Transfer { some, nothing_yet, ended };
// Appends what has come. Never waits.
Transfer receive(const Descriptor& socket, std::string& bytes);
// Sends what fits now and takes it from the front. Never waits.
Transfer send_some(const Descriptor& socket, std::string& bytes);
// False: the peer is gone or the deadline passed.
bool send_all(const Descriptor& socket, std::string bytes, const Deadline& deadline);

// Raises this process's soft limit on open files to `count` where it is lower. Throws usage, naming
// `what` needs them, where the hard limit is.
void allow_open_files(std::size_t count, const std::string& what);

// Wakes a thread out of poll().
class WakeUp {
 public:
  WakeUp();
  const Descriptor& descriptor() const { return event_; }
  void ring() noexcept;

 private:
  Descriptor event_;
};

}  // namespace paceline
