#include "engine/input/cache/cache_area.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace paceline {

struct CacheRegion::Header {
  std::uint64_t token, data_bytes;
  std::array<std::uint64_t, kMostSets> samples;
  alignas(64) std::atomic<std::uint64_t> used;
  alignas(64) std::atomic<std::int64_t> file_end;
  alignas(64) std::array<SetCounts, kMostSets> counts;
};

// Closes and unmaps what it holds.
class CacheRegion::Mapping {
 public:
  explicit Mapping(int descriptor) : descriptor_(descriptor) {}
  ~Mapping() {
    if (base_) munmap(base_, bytes_);
    if (descriptor_ >= 0) close(descriptor_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  bool map(std::size_t bytes) {
    const int kind = descriptor_ < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind | MAP_NORESERVE, descriptor_, 0);
    if (base == MAP_FAILED) return false;
    base_ = static_cast<char*>(base);
    bytes_ = bytes;
    return true;
  }
  char* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
  char* base_ = nullptr;
  std::size_t bytes_ = 0;
};

namespace {

std::uint64_t new_token() {
  std::random_device random;
  return (std::uint64_t{random()} << 32 | random()) | 1;  // memory without a header holds 0
}

std::size_t count_all(const std::vector<std::size_t>& samples) {
  if (samples.size() > CacheRegion::kMostSets) {
    throw internal_error(fmt::format("a cache of {} sets", samples.size()));
  }
  return std::accumulate(samples.begin(), samples.end(), std::size_t{0});
}

Error no_memory(std::size_t bytes, int code) {
  return {ErrorKind::usage,
          fmt::format("a cache of {} cannot be mapped: {}",
                      format_bytes(static_cast<double>(bytes)), std::strerror(code)),
          "--cache-mb", "lower it, or raise the limit of address space (ulimit -v)"};
}

// An open file of another process, opened again.
int open_of_process(std::int32_t process, int descriptor) {
  const std::string path = fmt::format("/proc/{}/fd/{}", process, descriptor);
  const int opened = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (opened >= 0) return opened;
  throw input_error(
      fmt::format("the cache of process {} cannot be opened: {}", process, std::strerror(errno)),
      "", "start all ranks of a node as one user");
}

}  // namespace

CacheRegion::CacheRegion(const Size& size, Reach reach, const std::filesystem::path& folder)
    : samples_(size.samples) {
  const std::size_t bytes = sizeof(Header) + count_all(samples_) * sizeof(CacheEntry) + size.bytes;
  int descriptor = -1;
  if (reach == Reach::node) {
    descriptor = memfd_create("paceline-cache", MFD_CLOEXEC);
    if (descriptor < 0) throw no_memory(bytes, errno);
  }
  mapping_ = std::make_unique<Mapping>(descriptor);
  if ((descriptor >= 0 && ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) ||
      !mapping_->map(bytes)) {
    throw no_memory(bytes, errno);
  }
  if (!folder.empty()) file_ = std::make_unique<UnlinkedFile>(folder);
  header().token = new_token();
  header().data_bytes = size.bytes;
  std::copy(samples_.begin(), samples_.end(), header().samples.begin());
  find_parts();
}

CacheRegion::CacheRegion(const Address& address, const std::vector<std::size_t>& samples)
    : samples_(samples) {
  mapping_ = std::make_unique<Mapping>(open_of_process(address.process, address.memory));
  struct stat status {};
  const std::size_t least = sizeof(Header) + count_all(samples) * sizeof(CacheEntry);
  const bool is_large = fstat(mapping_->descriptor(), &status) == 0 && S_ISREG(status.st_mode) &&
                        static_cast<std::size_t>(status.st_size) >= least;
  if (is_large && !mapping_->map(static_cast<std::size_t>(status.st_size))) {
    throw no_memory(static_cast<std::size_t>(status.st_size), errno);
  }
  std::array<std::uint64_t, kMostSets> wanted{};
  std::copy(samples.begin(), samples.end(), wanted.begin());
  if (!is_large || header().token != address.token || header().samples != wanted ||
      header().data_bytes != mapping_->bytes() - least) {
    throw input_error(
        fmt::format("process {} as this rank sees it is another one", address.process), "",
        "start the run again");
  }
  if (address.file >= 0) {
    file_ = std::make_unique<UnlinkedFile>(open_of_process(address.process, address.file),
                                           "the file of the node's cache");
  }
  find_parts();
}

CacheRegion::~CacheRegion() = default;

CacheRegion::Header& CacheRegion::header() const {
  return *reinterpret_cast<Header*>(mapping_->base());
}

void CacheRegion::find_parts() {
  data_ = mapping_->base() + sizeof(Header) + count_all(samples_) * sizeof(CacheEntry);
}

CacheRegion::Address CacheRegion::address() const {
  return {getpid(), mapping_->descriptor(), file_ ? file_->descriptor() : -1, header().token};
}

std::size_t CacheRegion::bytes() const {
  return header().data_bytes;
}

CacheEntry* CacheRegion::entries(std::size_t set) {
  const std::size_t before = std::accumulate(
      samples_.begin(), samples_.begin() + static_cast<std::ptrdiff_t>(set), std::size_t{0});
  return reinterpret_cast<CacheEntry*>(mapping_->base() + sizeof(Header)) + before;
}

CacheRegion::SetCounts& CacheRegion::counts(std::size_t set) {
  return header().counts[set];
}

std::optional<std::int64_t> CacheRegion::take(std::size_t count) {
  const std::uint64_t all = header().data_bytes;
  std::atomic<std::uint64_t>& used = header().used;
  std::uint64_t offset = used.load();
  do {
    if (count > all || offset > all - count) return std::nullopt;
  } while (!used.compare_exchange_weak(offset, offset + count));
  return static_cast<std::int64_t>(offset);
}

std::int64_t CacheRegion::take_of_file(std::size_t count) {
  return header().file_end.fetch_add(static_cast<std::int64_t>(count));
}

UnlinkedFile::UnlinkedFile(const std::filesystem::path& folder) : place_(folder) {
  descriptor_ = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor_ >= 0) return;
  std::string name = (folder / "paceline-cache-XXXXXX").string();  // where O_TMPFILE is unknown
  descriptor_ = mkostemp(name.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    throw input_error(std::string("the folder cannot hold the cache: ") + std::strerror(errno),
                      folder.string(), "give another --cache-dir");
  }
  unlink(name.c_str());
}

UnlinkedFile::UnlinkedFile(int descriptor, std::filesystem::path name)
    : place_(std::move(name)), descriptor_(descriptor) {}

UnlinkedFile::~UnlinkedFile() {
  close(descriptor_);
}

bool UnlinkedFile::write(std::int64_t offset, const char* data, std::size_t count) {
  while (count > 0) {
    const ssize_t n = pwrite(descriptor_, data, count, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    offset += n;
    count -= static_cast<std::size_t>(n);
  }
  return true;
}

void UnlinkedFile::read(std::int64_t offset, std::size_t count, char* out) const {
  while (count > 0) {
    const ssize_t n = pread(descriptor_, out, count, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      throw input_error(std::string("the cache cannot be read: ") +
                            (n < 0 ? std::strerror(errno) : "its file is too short"),
                        place_.string(), "give another --cache-dir");
    }
    out += n;
    offset += n;
    count -= static_cast<std::size_t>(n);
  }
}

}  // namespace paceline
