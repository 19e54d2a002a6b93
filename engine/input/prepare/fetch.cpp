#include "engine/input/prepare/fetch.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/log.h"
#include "engine/core/text.h"
#include "engine/input/prepare/staged_folder.h"
#include "engine/input/prepare/tfds_writer.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr char kPartial[] = ".partial", kLockFile[] = "lock", kUnpacked[] = "unpacked",
               kShards[] = "shards";
const std::set<std::string> kLast = {"train", "dataset_info.json", "data_batch_1.bin"};

class Fetcher {
 public:
  Fetcher(const PublishedSet& set, const FetchOptions& options)
      : set_(set), options_(options), partial_(options.out / kPartial) {}
  ~Fetcher() {
    if (lock_ >= 0) close(lock_);
  }
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  std::string run() {
    make_folder(partial_);
    lock_ = lock_file(partial_ / kLockFile, options_.out);
    return set_.folder.empty() ? fetch_files() : fetch_archive();
  }

 private:
  // A file that is there already is left alone if it is the published one.
  bool is_there(const PublishedFile& file) const {
    const fs::path path = options_.out / file.name;
    if (!fs::exists(path)) return false;
    if (fs::is_regular_file(path) && fs::file_size(path) == file.bytes &&
        file_digest(path, file.algorithm) == file.digest) {
      return true;
    }
    throw input_error("the file exists but differs from the published one; nothing is overwritten",
                      path.string(), "move it away, or choose another --out");
  }

  std::string fetch_files() {
    std::vector<const PublishedFile*> missing;
    for (const PublishedFile& file : set_.files) {
      if (!is_there(file)) missing.push_back(&file);
    }
    std::uint64_t bytes = 0;
    for (const PublishedFile* file : missing) bytes += bytes_left(*file);
    check_space(options_.out, bytes);
    for (const PublishedFile* file : missing) get(*file);
    for (const PublishedFile* file : missing)
      give_name(partial_ / file->name, options_.out / file->name);
    clean();
    if (missing.empty()) return options_.out.string() + ": all files were there, checksums match";
    return fmt::format("{}: {}, checksums match", options_.out.string(),
                       counted(missing.size(), "file"));
  }

  std::string fetch_archive() {
    const PublishedFile& file = set_.files[0];
    for (const auto& entry : fs::directory_iterator(options_.out)) {
      if (entry.path().filename() == kPartial) continue;
      throw input_error("the folder exists and is not empty; nothing is overwritten",
                        options_.out.string(), "see paceline data verify, or choose another --out");
    }
    const std::uint64_t copies = options_.tfrecord ? 2 : 1;
    check_space(options_.out, bytes_left(file) + copies * set_.unpacked_bytes);
    get(file);
    fs::remove_all(partial_ / kUnpacked);
    make_folder(partial_ / kUnpacked);
    // The checksum vouches for the archive; the limit only for a wrong number of ours.
    unpack(partial_ / file.name, partial_ / kUnpacked, 2 * set_.unpacked_bytes, options_.quiet);
    fs::path result = partial_ / kUnpacked / set_.folder;
    if (!fs::is_directory(result)) {
      throw input_error("archive holds no folder " + set_.folder, file.name,
                        "the published file has changed; report it");
    }
    if (options_.tfrecord) result = to_shards(result);
    move_all(result);
    clean();
    return fmt::format("{}: whole; use it with --data {}", set_.name,
                       shell_quote(options_.out.string()));
  }

  fs::path to_shards(const fs::path& class_folders) const {
    const fs::path shards = partial_ / kShards;
    fs::remove_all(shards);
    make_folder(shards);
    write_shards(class_folders, shards, set_.name, "0.1.0", set_.about, options_.threads,
                 options_.quiet);
    return shards;
  }

  std::uint64_t bytes_left(const PublishedFile& file) const {
    std::error_code none;
    const auto have = fs::file_size(partial_ / file.name, none);
    return none || have > file.bytes ? file.bytes : file.bytes - have;
  }

  void get(const PublishedFile& file) const {
    const fs::path path = partial_ / file.name;
    const std::string url = make_url(file, options_);
    download(url, path, file.bytes, options_);
    std::string digest;
    {
      PrepareProgress progress("checking " + file.name, static_cast<double>(file.bytes),
                               PrepareProgress::Unit::bytes, options_.quiet);
      digest = file_digest(path, file.algorithm, [&](double done) { progress.at(done); });
    }
    if (digest == file.digest) return;
    fs::remove(path);
    throw input_error(fmt::format("the {} differs: {} instead of the published {}", file.algorithm,
                                  digest, file.digest),
                      url, "try again; if it still differs, the file at this URL has changed");
  }

  static void give_name(const fs::path& from, const fs::path& to) {
    std::error_code code;
    fs::rename(from, to, code);
    if (code) {
      throw input_error("the file cannot be renamed: " + code.message(), to.string(),
                        "check the folder and its permissions");
    }
  }

  // What the readers know a set by comes last, so that they never see a part.
  void move_all(const fs::path& from) const {
    std::vector<fs::path> names, last;
    for (const auto& entry : fs::directory_iterator(from)) {
      const fs::path name = entry.path().filename();
      (kLast.count(name.string()) ? last : names).push_back(name);
    }
    names.insert(names.end(), last.begin(), last.end());
    for (const fs::path& name : names) give_name(from / name, options_.out / name);
  }

  // What is left of a set that is whole now. Another set's partial file stays.
  void clean() const {
    std::error_code ignored;
    for (const PublishedFile& file : set_.files) fs::remove(partial_ / file.name, ignored);
    fs::remove_all(partial_ / kUnpacked, ignored);
    fs::remove_all(partial_ / kShards, ignored);
    const auto others = std::distance(fs::directory_iterator(partial_), {});
    if (others <= 1) fs::remove_all(partial_, ignored);
  }

  const PublishedSet& set_;
  const FetchOptions& options_;
  fs::path partial_;
  int lock_ = -1;
};

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
    throw input_error(
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
  if (!curl) throw internal_error("libcurl could not start");
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

std::string fetch_set(const PublishedSet& set, const FetchOptions& options) {
  return Fetcher(set, options).run();
}

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
      throw input_error(fmt::format("sends more than the published {} bytes", bytes), url,
                        "it may be a sign-in page or another version; open the URL in a browser");
    }
    if (outcome.status == 416) target.begin_again();
    if (left <= 0 || !(may_pass(outcome) || outcome.status == 416)) {
      throw input_error(
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

std::string file_digest(const std::filesystem::path& file, const std::string& algorithm,
                        const std::function<void(double)>& progress) {
  const auto fail = [&](const std::string& why) {
    throw input_error("checksum cannot be computed: " + why, file.string(),
                      "check the file and its permissions");
  };
  std::ifstream stream(file, std::ios::binary);
  if (!stream) fail(std::strerror(errno));
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  const EVP_MD* kind = EVP_get_digestbyname(algorithm.c_str());
  // Systems in FIPS mode have no MD5.
  if (!context || !kind || EVP_DigestInit_ex(context.get(), kind, nullptr) != 1) {
    fail("this OpenSSL has no " + algorithm);
  }
  std::vector<char> buffer(std::size_t{1} << 20);
  double done = 0;
  while (stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) ||
         stream.gcount() > 0) {
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(stream.gcount()));
    done += static_cast<double>(stream.gcount());
    progress(done);
  }
  if (stream.bad()) fail("reading failed");
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_DigestFinal_ex(context.get(), digest, &length);
  std::string text;
  for (unsigned i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace paceline
