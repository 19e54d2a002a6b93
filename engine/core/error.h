// The only exception type of Paceline. Users see one line: where, what is wrong, what to do.
#pragma once

#include <exception>
#include <optional>
#include <string>

namespace paceline {

enum class ErrorKind {
  usage,      // the request is wrong or impossible
  input,      // a file, record, spec or data set is invalid, or cannot be read or written
  internal,   // a bug in Paceline or in a library
  peer_lost,  // another rank died
  stall,      // a deadline passed
  mismatch,   // ranks disagree
  preempted,  // stopped by request after a complete checkpoint
  failed,     // the training diverged, or the user's own program failed
};

// Process exit code: 64 usage, 65 input, 70 internal, 71 peer lost, 72 stall, 73 mismatch,
// 75 preempted. Success is 0, a failed check or run 1, an undecided gate 2.
int exit_code(ErrorKind kind);
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

}  // namespace paceline
