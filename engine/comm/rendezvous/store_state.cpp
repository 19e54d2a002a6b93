#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/comm/rendezvous/server.h"
#include "engine/core/error.h"

namespace paceline {

namespace {

Error out_of_order() {
  return {ErrorKind::input, "a message that does not belong here", "bootstrap store"};
}

// Sorted ranks as runs, as in MessageType::late: if all ranks are late, all ask and get all.
std::vector<std::uint64_t> compress_ranks(const std::vector<int>& ranks) {
  std::vector<std::uint64_t> runs;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0 && ranks[i] == ranks[i - 1] + 1) {
      runs.back() += kOneMoreRank;
    } else {
      runs.push_back(static_cast<std::uint64_t>(ranks[i]));
    }
  }
  return runs;
}

Message with_value(MessageType type, std::string value) {
  Message message{type};
  message.value = std::move(value);
  return message;
}

}  // namespace

StoreState::StoreState(std::string token, std::string address, int ranks)
    : token_(std::move(token)), address_(std::move(address)), ranks_(ranks) {}

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
  const auto guest = guests_.extract(connection);
  if (!guest) {
    if (message.type != MessageType::hello_control && message.type != MessageType::hello_store) {
      throw out_of_order();
    }
    Message challenge{MessageType::challenge};
    challenge.key = random_token();
    challenge.value = make_proof(token_, ProofSide::store, address_, message, challenge.key);
    guests_[connection] = {message, challenge.key};
    answers.push_back({connection, std::move(challenge)});
    return;
  }
  const auto& [hello, nonce] = guest.mapped();
  const std::string right = make_proof(token_, ProofSide::rank, address_, hello, nonce);
  if (message.type != MessageType::proof || !is_same_proof(message.value, right)) {
    throw input_error("it does not know this run's token", "bootstrap store",
                      "give all ranks of a run the same PACELINE_TOKEN");
  }
  if (std::string objection = objection_to(hello); !objection.empty()) {
    answers.push_back({connection, with_value(MessageType::refused, std::move(objection)), true});
    return;
  }
  Member member;
  member.rank = static_cast<int>(hello.number);
  member.control = hello.type == MessageType::hello_control;
  member.host = hello.value.substr(std::min(kTokenBytes, hello.value.size()));
  if (member.control) controls_[member.rank] = connection;
  const bool is_late = member.control && first_;
  members_.emplace(connection, std::move(member));
  Message welcome{MessageType::welcome};
  welcome.number = static_cast<std::uint64_t>(ranks_);
  answers.push_back({connection, std::move(welcome)});
  if (is_late) answers.push_back({connection, *first_});
}

// A rank that waited too long for its welcome tries again, and its first attempt may be read later
// than it was given up.
std::string StoreState::objection_to(const Message& hello) const {
  if (hello.number >= static_cast<std::uint64_t>(ranks_)) {
    return fmt::format("rank {} does not belong to this world of {} ranks", hello.number, ranks_);
  }
  if (hello.type != MessageType::hello_control) return "";
  const auto control = controls_.find(static_cast<int>(hello.number));
  if (control == controls_.end()) return "";
  const Member& other = members_.at(control->second);
  if (!other.confirmed) return "";
  return fmt::format("rank {} is here already, on {}", hello.number, other.host);
}

void StoreState::serve_store(int connection, Member& member, const Message& message,
                             std::vector<Answer>& answers) {
  Message answer{MessageType::set_done, message.ticket};
  if (message.type == MessageType::set) {
    const std::string& value = values_[message.key] = message.value;
    answers.push_back({connection, answer});
    answer = with_value(MessageType::got, value);
    const auto waiting = waiting_.extract(message.key);
    if (!waiting) return;
    for (const int other : waiting.mapped()) {
      const auto found = members_.find(other);
      if (found == members_.end() || found->second.get_key != message.key) continue;
      const auto ticket = std::exchange(found->second.get_ticket, std::nullopt);
      if (!ticket) continue;
      answer.ticket = *ticket;
      answers.push_back({other, answer});
    }
  } else if (message.type == MessageType::get) {
    const auto entry = values_.find(message.key);
    if (entry == values_.end()) {
      const bool waits_for_it = member.get_ticket && member.get_key == message.key;
      if (!waits_for_it) waiting_[message.key].push_back(connection);
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
  member.confirmed = true;
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
      if (!question_ || message.ticket != question_number_) return;
      if (question_->waiting_for.erase(connection) == 0) return;
      question_->progress[member.rank] = message.number;
      tick(now, answers);
      return;
    }
    default:
      throw out_of_order();
  }
}

void StoreState::end(int connection, std::vector<Answer>& answers) {
  guests_.erase(connection);
  const auto found = members_.find(connection);
  if (found == members_.end()) return;
  const Member member = std::move(found->second);
  members_.erase(found);
  if (question_) question_->askers.erase(connection);
  const auto control = controls_.find(member.rank);
  if (control == controls_.end() || control->second != connection) return;
  controls_.erase(control);
  if (member.confirmed && !member.left) {
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
  if (!question_) {
    question_ = Question{{}, now + kProgressSeconds, {}, {}};
    ++question_number_;
    for (const auto& [other, member] : members_) {
      if (!member.control || member.left) continue;
      question_->waiting_for.insert(other);
      answers.push_back({other, Message{MessageType::ask_progress, question_number_}});
    }
  }
  question_->askers[connection] = ticket;
}

void StoreState::tick(double now, std::vector<Answer>& answers) {
  if (!question_ || (!question_->waiting_for.empty() && now < question_->until)) return;
  answer_late(*question_, answers);
  question_.reset();
}

std::optional<double> StoreState::next_tick() const {
  return question_ ? std::optional(question_->until) : std::nullopt;
}

void StoreState::answer_late(const Question& question, std::vector<Answer>& answers) const {
  const std::vector<std::uint64_t> late = compress_ranks(late_ranks(question));
  for (const auto& [connection, ticket] : question.askers) {
    for (const std::uint64_t run : late) {
      answers.push_back({connection, Message{MessageType::late, ticket, run}});
    }
    answers.push_back({connection, Message{MessageType::late_end, ticket}});
  }
}

// Where all that answered are equally far, it is the silent ones whom they wait for.
std::vector<int> StoreState::late_ranks(const Question& question) const {
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
  std::vector<int> late;
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto said = question.progress.find(rank);
    const bool behind =
        smallest_is_late && said != question.progress.end() && said->second == smallest;
    if (is_silent(rank) || behind) late.push_back(rank);
  }
  return late;
}

void StoreState::say_goodbye(std::vector<Answer>& answers) const {
  for (const auto& [connection, member] : members_) {
    if (member.control) answers.push_back({connection, Message{MessageType::goodbye}});
  }
}

}  // namespace paceline
