// The server of the bootstrap store: keys and values through which ranks find each other, and the
// other end of their control sockets.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/comm/rendezvous/join.h"
#include "engine/comm/rendezvous/message.h"

namespace paceline {

// One background thread. Drops peers that violate the protocol, do not know the token, or send
// nothing within kGreetingSeconds. This does not affect other peers.
class StoreServer {
 public:
  static constexpr double kGreetingSeconds = 5;

  // Binds to `where.host`, never to all interfaces, at the first free port of `where.ports` (0:
  // any). With a token file, makes the token and writes the file, which goes when all ranks have
  // joined. Throws usage if no port is free, or if the host is not an address of this machine.
  StoreServer(const BootstrapAddress& where, int ranks);
  // Announces a clean end to the ranks, within a second, and joins the thread. A process that ends
  // for another reason calls LivenessConnection::abort first.
  ~StoreServer();

  // The actual address, "10.0.0.3:29400", for PACELINE_STORE.
  const std::string& address() const { return address_; }

 private:
  class Loop;

  std::string address_;
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

// The state machine of the server: which answers it sends to whom. Without sockets, threads or a
// clock.

inline constexpr double kProgressSeconds = 1;  // how long ranks have to report their progress

class StoreState {
 public:
  struct Answer {
    int connection;
    Message message;
    bool then_close = false;
  };

  // `address`: the store's. `ranks`: the size of the world. Other ranks are rejected.
  StoreState(std::string token, std::string address, int ranks);

  // `connection` is a number that the caller chooses and never reuses. Appends the messages to send
  // to `answers`. Throws input if the peer violates the protocol.
  void receive(int connection, const Message& message, double now, std::vector<Answer>& answers);
  // The connection ended: end-of-file, error or protocol violation.
  void end(int connection, std::vector<Answer>& answers);
  // Handles questions whose time is up.
  void tick(double now, std::vector<Answer>& answers);
  std::optional<double> next_tick() const;
  // Announces the end of the world to every control connection.
  void say_goodbye(std::vector<Answer>& answers) const;

  bool admitted(int connection) const { return members_.count(connection) != 0; }
  bool is_complete() const { return controls_.size() == static_cast<std::size_t>(ranks_); }

 private:
  struct Member {
    int rank = 0;
    bool control = false;
    std::string host;
    bool confirmed = false;                   // has read its welcome
    bool left = false;                        // said goodbye, or was reported as lost
    std::optional<std::uint64_t> get_ticket;  // a pending get, and its key
    std::string get_key;
  };
  struct Guest {  // has greeted, and not proved yet that it knows the token
    Message hello;
    std::string nonce;
  };
  // The question which ranks are late. Those who ask while it is open get the same answer.
  struct Question {
    std::map<int, std::uint64_t> askers;  // connection, ticket
    double until;
    std::set<int> waiting_for;
    std::map<int, std::uint64_t> progress;
  };

  void greet(int connection, const Message& message, std::vector<Answer>& answers);
  std::string objection_to(const Message& hello) const;
  void serve_store(int connection, Member& member, const Message& message,
                   std::vector<Answer>& answers);
  void serve_control(int connection, Member& member, const Message& message, double now,
                     std::vector<Answer>& answers);
  void report(int rank, const std::string& why, std::vector<Answer>& answers);
  void ask(int connection, std::uint64_t ticket, double now, std::vector<Answer>& answers);
  void answer_late(const Question& question, std::vector<Answer>& answers) const;
  std::vector<int> late_ranks(const Question& question) const;

  std::string token_, address_;
  int ranks_;
  std::map<int, Guest> guests_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<int>> waiting_;  // connections, for a key; some no longer
  std::map<int, Member> members_;
  std::map<int, int> controls_;   // by rank: its control connection
  std::set<int> finished_;        // ranks that said goodbye
  std::optional<Message> first_;  // the first loss; later ones are consequences
  std::optional<Question> question_;
  std::uint64_t question_number_ = 0;
};

}  // namespace paceline
