#include "engine/core/error.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "engine/core/text.h"

namespace paceline {

namespace {

// Keeps both ends of a long text, which usually show what is wrong. Never cuts a UTF-8 character.
std::string shortened(const std::string& text) {
  constexpr std::size_t kMost = 500, kBegin = 300, kEnd = 150;
  if (text.size() <= kMost) return text;
  const auto is_within_character = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  std::size_t begin = kBegin, end = text.size() - kEnd;
  while (begin > kBegin - 4 && is_within_character(begin)) --begin;
  while (end < text.size() - kEnd + 4 && is_within_character(end)) ++end;
  return text.substr(0, begin) + " ... " + text.substr(end);
}

std::string suggest_cure(const std::error_code& code) {
  switch (code.value()) {
    case EACCES:
    case EPERM:
      return "ask its owner for access, or give another path";
    case ENAMETOOLONG:
      return "give a shorter name";
    case ENOSPC:
    case EDQUOT:
      return "free disk space, or give another path";
    case ELOOP:
      return "mend the link, or give another path";
    default:
      return "check the path";
  }
}

}  // namespace

ErrorKind kind_of_exit_code(int code) {
  for (ErrorKind kind : {ErrorKind::usage, ErrorKind::input, ErrorKind::peer_lost, ErrorKind::stall,
                         ErrorKind::mismatch, ErrorKind::preempted}) {
    if (exit_code(kind) == code) return kind;
  }
  return ErrorKind::internal;
}

Error::Error(ErrorKind kind, std::string what, std::string where, std::string fix)
    : kind_(kind), what_(std::move(what)), where_(std::move(where)), fix_(std::move(fix)) {
  compose();
}

Error& Error::on_rank(int rank) {
  rank_ = rank;
  compose();
  return *this;
}

Error usage_error(std::string what, std::string where, std::string fix) {
  return {ErrorKind::usage, std::move(what), std::move(where), std::move(fix)};
}
Error input_error(std::string what, std::string where, std::string fix) {
  return {ErrorKind::input, std::move(what), std::move(where), std::move(fix)};
}
Error internal_error(std::string what, std::string where, std::string fix) {
  return {ErrorKind::internal, std::move(what), std::move(where), std::move(fix)};
}

Error caught_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {ErrorKind::input, "out of memory", "",
            "use smaller data, a smaller batch or more memory"};
  } catch (const nlohmann::detail::exception& error) {
    const std::string_view words = error.what();  // "[json.exception.type_error.302] type must ..."
    return {ErrorKind::input,
            "JSON of another form than is expected: " +
                std::string(words.substr(std::min(words.find("] ") + 2, words.size()))),
            "", "check the files that the command reads"};
  } catch (const std::filesystem::filesystem_error& error) {
    return {ErrorKind::input, error.code().message(), error.path1().string(),
            suggest_cure(error.code())};
  } catch (const std::system_error& error) {  // of a thread or a lock
    return {ErrorKind::input, "the system refuses: " + error.code().message(), "",
            "check the limits on processes, memory and open files (ulimit -a)"};
  } catch (const std::exception& error) {
    return {ErrorKind::internal, std::string("internal error: ") + error.what(), "",
            "please report it with the command"};
  }
}

void Error::compose() {
  line_ = rank_ ? "rank " + std::to_string(*rank_) + ": " : "";
  if (!where_.empty()) line_ += shortened(where_) + ": ";
  line_ += shortened(what_);
  if (!fix_.empty()) line_ += "; " + shortened(fix_);
  // One line whatever the input held: a name from a bad file may have a line break or a NUL in it.
  line_ = printable(line_);
}

void FirstError::keep(bool is_consequence) {
  const std::lock_guard lock(mutex_);
  if (error_ && (is_consequence || !was_consequence_)) return;
  error_ = std::current_exception();
  was_consequence_ = is_consequence;
}

void FirstError::rethrow() const {
  if (error_) std::rethrow_exception(error_);
}

}  // namespace paceline
