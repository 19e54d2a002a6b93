#include "engine/input/prepare/download.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/core/text.h"
#include "engine/input/prepare/progress.h"

namespace paceline {

namespace {

constexpr double kLongestPause = 60;
constexpr long kConnectSeconds = 30, kMostRedirects = 10;
constexpr char kProtocols[] = "http,https";

// The file as it grows.
class Target {
 public:
  Target(const std::filesystem::path& file, std::uint64_t wanted) : file_(file), wanted_(wanted) {
    descriptor_ = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    struct stat status {};
    if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) fail();
    size_ = static_cast<std::uint64_t>(status.st_size);
    if (size_ > wanted_) begin_again();
    if (lseek(descriptor_, 0, SEEK_END) < 0) fail();
  }
  ~Target() { close(descriptor_); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  std::uint64_t size() const { return size_; }
  bool complete() const { return size_ == wanted_; }
  bool too_much() const { return too_much_; }
  int error() const { return error_; }

  void begin_again() {
    if (ftruncate(descriptor_, 0) != 0 || lseek(descriptor_, 0, SEEK_SET) != 0) fail();
    size_ = 0;
  }

  // False: not wanted, or not possible; then too_much() or error() is set.
  bool add(const char* data, std::size_t bytes) {
    too_much_ = bytes > wanted_ - size_;
    if (too_much_) return false;
    while (bytes > 0) {
      const ssize_t n = ::write(descriptor_, data, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        error_ = errno;
        return false;
      }
      data += n;
      bytes -= static_cast<std::size_t>(n);
      size_ += static_cast<std::uint64_t>(n);
    }
    return true;
  }

  void sync() {
    if (fsync(descriptor_) != 0) fail();
  }

  [[noreturn]] void fail() const {
    throw Error(
        ErrorKind::input,
        std::string("the file cannot be written: ") + std::strerror(error_ ? error_ : errno),
        file_.string(), "free some space or choose another folder; what came is kept");
  }

 private:
  std::filesystem::path file_;
  std::uint64_t wanted_, size_ = 0;
  int descriptor_ = -1, error_ = 0;
  bool too_much_ = false;
};

// What curl's callbacks share; they are C frames, so nothing is thrown in them.
struct Transfer {
  CURL* curl;
  Target& target;
  PrepareProgress& progress;
  bool resuming;       // a range was asked for
  bool begun = false;  // the first byte has come
};

std::size_t on_bytes(char* data, std::size_t, std::size_t bytes, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  long status = 0;
  curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &status);
  try {
    if (!transfer.begun && transfer.resuming && status != 206) transfer.target.begin_again();
  } catch (const Error&) {
    return 0;
  }
  transfer.begun = true;
  if (!transfer.target.add(data, bytes)) return 0;
  transfer.progress.at(static_cast<double>(transfer.target.size()));
  return bytes;
}

struct Outcome {
  CURLcode code;
  long status = 0;
  std::string message;
};

using Handle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;

void limit_protocols(CURL* curl) {
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, kProtocols);
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, kProtocols);
#else
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS, long{CURLPROTO_HTTP | CURLPROTO_HTTPS});
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, long{CURLPROTO_HTTP | CURLPROTO_HTTPS});
#endif
}

Outcome attempt(const std::string& url, Target& target, PrepareProgress& progress,
                int stalled_seconds) {
  const Handle handle(curl_easy_init(), curl_easy_cleanup);
  CURL* curl = handle.get();
  if (!curl) throw Error(ErrorKind::internal, "libcurl could not start");
  char message[CURL_ERROR_SIZE] = "";
  Transfer transfer{curl, target, progress, target.size() > 0};
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  limit_protocols(curl);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMostRedirects);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "paceline");
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, long{stalled_seconds});
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  // Not CURLOPT_RESUME_FROM: that fails where the server answers with the whole file.
  const std::string range = fmt::format("{}-", target.size());
  if (transfer.resuming) curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
  Outcome outcome{curl_easy_perform(curl), 0, ""};
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &outcome.status);
  outcome.message = message[0] ? message : curl_easy_strerror(outcome.code);
  return outcome;
}

// May the same request succeed a little later?
bool may_pass(const Outcome& outcome) {
  switch (outcome.code) {
    case CURLE_OK:  // ended early without a word
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    case CURLE_HTTP_RETURNED_ERROR:
      return outcome.status >= 500 || outcome.status == 408 || outcome.status == 429;
    default:
      return false;
  }
}

std::string fix_for(const Outcome& outcome) {
  switch (outcome.code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return "run it where there is a way out (a login node), set https_proxy, or give --mirror";
    case CURLE_HTTP_RETURNED_ERROR:
      return "check the URL, or give --mirror";
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return "fix the machine's certificates (Debian: ca-certificates)";
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return "give an http:// or https:// URL";
    default:
      return "call again: it resumes where it stopped";
  }
}

}  // namespace

void download(const std::string& url, const std::filesystem::path& partial, std::uint64_t bytes,
              const FetchOptions& options) {
  Target target(partial, bytes);
  PrepareProgress progress(partial.filename().string(), static_cast<double>(bytes),
                           PrepareProgress::Unit::bytes, options.quiet,
                           static_cast<double>(target.size()));
  double pause = options.pause_seconds;
  for (int left = options.retries; !target.complete(); --left) {
    const Outcome outcome = attempt(url, target, progress, options.stalled_seconds);
    if (target.complete()) break;
    if (target.error() != 0) target.fail();
    if (target.too_much()) {
      throw Error(ErrorKind::input, fmt::format("sends more than the published {} bytes", bytes),
                  url, "it may be a sign-in page or another version; open the URL in a browser");
    }
    if (outcome.status == 416) target.begin_again();
    if (left <= 0 || !(may_pass(outcome) || outcome.status == 416)) {
      throw Error(
          ErrorKind::input,
          fmt::format("download stopped after {} of {} bytes: {}", target.size(), bytes,
                      outcome.code == CURLE_OK ? "the server ended early" : outcome.message),
          url, fix_for(outcome));
    }
    if (!options.quiet) {
      log::warning("{}: {}; retrying in {}", partial.filename().string(),
                   outcome.code == CURLE_OK ? "ended early" : outcome.message,
                   format_seconds(pause));
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    pause = std::min(2 * pause, kLongestPause);
  }
  target.sync();
}

}  // namespace paceline
