// A small HTTP server on 127.0.0.1, with ranges, that can be told to fail.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace paceline {

class HttpServer {
 public:
  struct File {
    std::string body = {};
    bool ranges = true;
    std::vector<std::size_t> cuts = {};  // request i ends after so many bytes of its answer
    std::vector<int> statuses = {};      // request i gets this answer, if not 200
    std::string location = {};           // of a redirection
    bool silent = false;                 // promises the body and sends nothing
  };

  // `files` by name, without a slash. One connection at a time.
  explicit HttpServer(std::map<std::string, File> files) : files_(std::move(files)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (listener_ < 0 || bind(listener_, generic, length) != 0 || listen(listener_, 8) != 0 ||
        getsockname(listener_, generic, &length) != 0) {
      throw std::runtime_error("no server");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this] { serve(); });
  }
  ~HttpServer() {
    stop_ = true;
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // "name from FIRST" of every request so far.
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    while (!stop_) {
      const int connection = accept(listener_, nullptr, nullptr);
      if (connection < 0) continue;
      answer(connection);
      close(connection);
    }
  }

  static void send_all(int connection, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  void answer(int connection) {
    std::string request;
    char buffer[2048];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t n = recv(connection, buffer, sizeof buffer, 0);
      if (n <= 0) return;
      request.append(buffer, static_cast<std::size_t>(n));
    }
    const std::size_t slash = request.find('/') + 1;
    const std::string name = request.substr(slash, request.find(' ', slash) - slash);
    std::size_t first = 0;
    if (const auto range = request.find("Range: bytes="); range != std::string::npos) {
      first = std::strtoull(request.c_str() + range + 13, nullptr, 10);
    }
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(name + " from " + std::to_string(first));
    }
    const auto found = files_.find(name);
    if (found == files_.end()) {
      send_all(connection, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
      return;
    }
    reply(connection, found->second, first, answered_[name]++);
  }

  void reply(int connection, const File& file, std::size_t first, std::size_t turn) {
    int status = turn < file.statuses.size() ? file.statuses[turn] : 200;
    if (!file.ranges) first = 0;
    if (status == 200 && first >= file.body.size() && first > 0) status = 416;
    if (status == 200 && first > 0) status = 206;
    const bool good = status == 200 || status == 206;
    const std::string body = good ? file.body.substr(first) : "";
    std::string head = "HTTP/1.1 " + std::to_string(status) +
                       " x\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size());
    if (!file.location.empty()) head += "\r\nLocation: " + file.location;
    send_all(connection, head + "\r\n\r\n");
    if (file.silent) {
      char nothing = 0;
      (void)!recv(connection, &nothing, 1, 0);  // until the client gives up
      return;
    }
    const std::size_t cut = turn < file.cuts.size() ? file.cuts[turn] : body.size();
    send_all(connection, std::string_view(body).substr(0, cut));
  }

  std::map<std::string, File> files_;
  std::map<std::string, std::size_t> answered_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::jthread thread_;
};

}  // namespace paceline
