#include "engine/comm/rendezvous/store_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/core/error.h"

namespace paceline {

namespace {

// Takes as long for a wrong token as for a right one, so that it cannot be guessed letter by
// letter.
bool same_token(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

Error out_of_order() {
  return {ErrorKind::input, "a message that does not belong here", "bootstrap store"};
}

Message with_value(MessageType type, std::string value) {
  Message message{type};
  message.value = std::move(value);
  return message;
}

}  // namespace

StoreState::StoreState(std::string token, int ranks) : token_(std::move(token)), ranks_(ranks) {}

void StoreState::receive(int connection, const Message& message, double now,
                         std::vector<Answer>& answers) {
  const auto member = members_.find(connection);
  if (member == members_.end()) {
    greet(connection, message, answers);
  } else if (member->second.control) {
    serve_control(connection, member->second, message, now, answers);
  } else {
    serve_store(connection, member->second, message, answers);
  }
}

void StoreState::greet(int connection, const Message& message, std::vector<Answer>& answers) {
  const bool control = message.type == MessageType::hello_control;
  if (!control && message.type != MessageType::hello_store) throw out_of_order();
  if (!same_token(message.key, token_)) {
    answers.push_back({connection, Message{MessageType::wrong_token}, true});
    return;
  }
  if (std::string objection = objection_to(message); !objection.empty()) {
    answers.push_back({connection, with_value(MessageType::refused, std::move(objection)), true});
    return;
  }
  Member member;
  member.rank = static_cast<int>(message.number);
  member.control = control;
  member.host = message.value;
  members_.emplace(connection, std::move(member));
  Message welcome{MessageType::welcome};
  welcome.number = static_cast<std::uint64_t>(ranks_);
  answers.push_back({connection, std::move(welcome)});
  if (control && first_) answers.push_back({connection, *first_});
}

std::string StoreState::objection_to(const Message& hello) const {
  if (hello.number >= static_cast<std::uint64_t>(ranks_)) {
    return fmt::format("rank {} does not belong to this world of {} ranks", hello.number, ranks_);
  }
  if (hello.type != MessageType::hello_control) return "";
  for (const auto& [connection, member] : members_) {
    if (member.control && static_cast<std::uint64_t>(member.rank) == hello.number) {
      return fmt::format("rank {} is here already, on {}", hello.number, member.host);
    }
  }
  return "";
}

void StoreState::serve_store(int connection, Member& member, const Message& message,
                             std::vector<Answer>& answers) {
  Message answer{MessageType::set_done, message.ticket};
  if (message.type == MessageType::set) {
    const std::string& value = values_[message.key] = message.value;
    answers.push_back({connection, answer});
    answer = with_value(MessageType::got, value);
    for (auto& [waiting, other] : members_) {
      if (!other.get_ticket || other.get_key != message.key) continue;
      answer.ticket = *std::exchange(other.get_ticket, std::nullopt);
      answers.push_back({waiting, answer});
    }
  } else if (message.type == MessageType::get) {
    const auto entry = values_.find(message.key);
    if (entry == values_.end()) {
      member.get_ticket = message.ticket;
      member.get_key = message.key;
      return;
    }
    member.get_ticket.reset();
    answer = with_value(MessageType::got, entry->second);
    answer.ticket = message.ticket;
    answers.push_back({connection, std::move(answer)});
  } else {
    throw out_of_order();
  }
}

void StoreState::serve_control(int connection, Member& member, const Message& message, double now,
                               std::vector<Answer>& answers) {
  switch (message.type) {
    case MessageType::goodbye:
      if (!std::exchange(member.left, true)) finished_.insert(member.rank);
      return;
    case MessageType::abort:
      if (!std::exchange(member.left, true)) report(member.rank, message.value, answers);
      return;
    case MessageType::ask_late:
      ask(connection, message.ticket, now, answers);
      return;
    case MessageType::progress: {
      const auto found = questions_.find(message.ticket);
      if (found == questions_.end() || found->second.waiting_for.erase(connection) == 0) return;
      found->second.progress[member.rank] = message.number;
      tick(now, answers);
      return;
    }
    default:
      throw out_of_order();
  }
}

void StoreState::end(int connection, std::vector<Answer>& answers) {
  const auto found = members_.find(connection);
  if (found == members_.end()) return;
  const Member member = std::move(found->second);
  members_.erase(found);
  std::erase_if(questions_,
                [&](const auto& entry) { return entry.second.connection == connection; });
  if (member.control && !member.left) {
    report(member.rank, fmt::format("rank {} on {} is gone", member.rank, member.host), answers);
  }
}

void StoreState::report(int rank, const std::string& why, std::vector<Answer>& answers) {
  if (first_) return;
  first_ = with_value(MessageType::gone, why);
  first_->number = static_cast<std::uint64_t>(rank);
  for (const auto& [connection, member] : members_) {
    if (member.control && member.rank != rank) answers.push_back({connection, *first_});
  }
}

void StoreState::ask(int connection, std::uint64_t ticket, double now,
                     std::vector<Answer>& answers) {
  // One question a rank: a newer one replaces it.
  std::erase_if(questions_,
                [&](const auto& entry) { return entry.second.connection == connection; });
  const std::uint64_t number = next_question_++;
  Question question{connection, ticket, now + kProgressSeconds, {}, {}};
  for (const auto& [other, member] : members_) {
    if (!member.control || member.left) continue;
    question.waiting_for.insert(other);
    answers.push_back({other, Message{MessageType::ask_progress, number}});
  }
  questions_.emplace(number, std::move(question));
}

void StoreState::tick(double now, std::vector<Answer>& answers) {
  std::erase_if(questions_, [&](const auto& entry) {
    const Question& question = entry.second;
    const bool over = question.waiting_for.empty() || now >= question.until;
    if (over) answer_late(question, answers);
    return over;
  });
}

std::optional<double> StoreState::next_tick() const {
  std::optional<double> first;
  for (const auto& [number, question] : questions_) {
    first = std::min(first.value_or(question.until), question.until);
  }
  return first;
}

// Where all that answered are equally far, it is the silent ones whom they wait for.
void StoreState::answer_late(const Question& question, std::vector<Answer>& answers) const {
  std::uint64_t smallest = std::numeric_limits<std::uint64_t>::max(), largest = 0;
  for (const auto& [rank, progress] : question.progress) {
    smallest = std::min(smallest, progress);
    largest = std::max(largest, progress);
  }
  const auto is_silent = [&](int rank) {
    return question.progress.count(rank) == 0 && finished_.count(rank) == 0;
  };
  bool anyone_silent = false;
  for (int rank = 0; rank < ranks_; ++rank) anyone_silent = anyone_silent || is_silent(rank);
  const bool smallest_is_late = smallest < largest || !anyone_silent;
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto said = question.progress.find(rank);
    const bool behind =
        smallest_is_late && said != question.progress.end() && said->second == smallest;
    if (!is_silent(rank) && !behind) continue;
    answers.push_back({question.connection, Message{MessageType::late, question.ticket,
                                                    static_cast<std::uint64_t>(rank)}});
  }
  answers.push_back({question.connection, Message{MessageType::late_end, question.ticket}});
}

void StoreState::say_goodbye(std::vector<Answer>& answers) const {
  for (const auto& [connection, member] : members_) {
    if (member.control) answers.push_back({connection, Message{MessageType::goodbye}});
  }
}

}  // namespace paceline
