// The only exception type of Paceline. Users see one line: where, what is wrong, what to do.
#pragma once

#include <exception>
#include <mutex>
#include <optional>
#include <string>

namespace paceline {

// With the exit code of the process. Success is 0, an undecided gate 2.
enum class ErrorKind {
  failed = 1,      // the training diverged, the user's own program failed, or a check did
  usage = 64,      // the request is wrong or impossible
  input = 65,      // a file, record, spec or data set is invalid, or cannot be read or written
  internal = 70,   // a bug in Paceline or in a library
  peer_lost = 71,  // another rank died
  stall = 72,      // a deadline passed
  mismatch = 73,   // ranks disagree
  preempted = 75,  // stopped by request after a complete checkpoint
};

constexpr int exit_code(ErrorKind kind) {
  return static_cast<int>(kind);
}
ErrorKind kind_of_exit_code(int code);

class Error : public std::exception {
 public:
  // `what` has no final full stop. `where` is a file, line, key or object. `fix` is an imperative.
  Error(ErrorKind kind, std::string what, std::string where = "", std::string fix = "");

  ErrorKind kind() const { return kind_; }
  std::optional<int> rank() const { return rank_; }
  Error& on_rank(int rank);

  // "rank 3: where: what; fix", on one line.
  const char* what() const noexcept override { return line_.c_str(); }

 private:
  void compose();

  ErrorKind kind_;
  std::string what_, where_, fix_, line_;
  std::optional<int> rank_;
};

// Of the three kinds that most are of.
Error usage_error(std::string what, std::string where = "", std::string fix = "");
Error input_error(std::string what, std::string where = "", std::string fix = "");
Error internal_error(std::string what, std::string where = "", std::string fix = "");

// The exception that is being handled, as an Error. One of the file system is of kind input and
// names the path.
Error caught_error();

// Of threads that work side by side: the error that explains the others.
class FirstError {
 public:
  // The exception that is being handled, if it is the first, or the first that is no consequence.
  void keep(bool is_consequence = false);
  void rethrow() const;  // if there is one

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
  bool was_consequence_ = false;
};

}  // namespace paceline
