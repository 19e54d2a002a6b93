#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/pattern.h"
#include "engine/core/text.h"
#include "engine/input/loading/dataset.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t kMagic = 20240520, kVersion = 1;
constexpr std::size_t kHeaderBytes = 1024;
constexpr std::size_t kMostBytes = std::size_t{64} << 30;
constexpr double kTrainShare = 0.9;  // of a single file

enum class Split { none, train, test };

// By its words, between what is no letter: "constraints_val" is no training text.
Split split_named(const std::string& name) {
  thread_local const Pattern train("(?<![a-z])train(?:ing)?(?![a-z])"),
      test("(?<![a-z])(?:val(?:id(?:ation)?)?|test(?:ing)?)(?![a-z])");
  if (train.find(name)) return Split::train;
  return test.find(name) ? Split::test : Split::none;
}

// In the order of names; those of one kind only.
std::vector<fs::path> files_with(const fs::path& folder, const std::string& extension) {
  std::vector<fs::path> files;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    const fs::path& path = at->path();
    const bool named = split_named(path.stem().string()) != Split::none;
    if (named && path.extension() == extension) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The tokens of a file, which is mapped: sets may be as large as the memory.
class TokenFile {
 public:
  explicit TokenFile(const fs::path& file) : bytes_(check_size(file)) {
    const Descriptor opened(open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (bytes_ > 0 && opened) {
      place_ = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, opened.number(), 0);
    }
    if (bytes_ > 0 && (!opened || place_ == MAP_FAILED)) {
      throw input_error(std::string("the file cannot be read: ") + std::strerror(errno),
                        file.string(),
                        "check its permissions, and the limits on memory (ulimit -v)");
    }
    is_text_ = file.extension() == ".txt";
    if (!is_text_) check_header(file);
  }
  ~TokenFile() {
    if (bytes_ > 0) munmap(place_, bytes_);
  }
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  std::size_t size() const { return is_text_ ? bytes_ : (bytes_ - kHeaderBytes) / 2; }
  // Two bytes each; null of a text, whose tokens are its bytes.
  const std::uint8_t* pairs() const { return is_text_ ? nullptr : data() + kHeaderBytes; }
  std::uint32_t operator[](std::size_t i) const {
    return is_text_ ? data()[i] : pairs()[2 * i] | std::uint32_t{pairs()[2 * i + 1]} << 8;
  }

 private:
  static std::size_t check_size(const fs::path& file) {
    if (!fs::is_regular_file(file)) {
      throw input_error("not a regular file", file.string(), "name a file");
    }
    if (const std::size_t bytes = fs::file_size(file); bytes <= kMostBytes) return bytes;
    throw input_error("the file is larger than " + format_bytes(static_cast<double>(kMostBytes)),
                      file.string(), "check that it is the right file");
  }

  const std::uint8_t* data() const { return static_cast<const std::uint8_t*>(place_); }

  std::uint32_t number_at(std::size_t index) const {
    std::uint32_t value = 0;
    for (std::size_t i = 4; i > 0; --i) value = value << 8 | data()[4 * index + i - 1];
    return value;
  }

  void check_header(const fs::path& file) const {
    if (bytes_ < kHeaderBytes || number_at(0) != kMagic || number_at(1) != kVersion) {
      throw input_error("this is no file of tokens in llm.c's format, version 1", file.string(),
                        "make it by llm.c's dev/data, or give text as .txt");
    }
    const std::size_t tokens = number_at(2);
    if (bytes_ == kHeaderBytes + 2 * tokens) return;
    throw input_error(fmt::format("its header says {} tokens, but {} bytes follow it", tokens,
                                  bytes_ - kHeaderBytes),
                      file.string(), "get the file again");
  }

  std::size_t bytes_;
  void* place_ = nullptr;
  bool is_text_ = false;
};

class Reader {
 public:
  Reader(std::string name, int context, int vocabulary) : vocabulary_(vocabulary) {
    set_.name = std::move(name);
    set_.height = context + 1;
    set_.width = 1;
    set_.channels = 2;
    set_.classes = vocabulary;
  }

  // The tokens of a file from a share of them to another.
  void add(const fs::path& file, double from = 0, double to = 1) {
    const TokenFile tokens(file);
    const auto at = [all = static_cast<double>(tokens.size())](double share) {
      return static_cast<std::size_t>(share * all);
    };
    const std::size_t begin = at(from), end = at(to), count = end - begin,
                      context = static_cast<std::size_t>(set_.height) - 1;
    for (std::size_t i = begin; i < end; ++i) {
      if (tokens[i] < static_cast<std::size_t>(vocabulary_)) continue;
      throw input_error(fmt::format("token {} at place {} is not one of the network's {}",
                                    tokens[i], i, vocabulary_),
                        file.string(), "choose a workload with this vocabulary");
    }
    if (count > context) {
      make_room(file, set_.images.size() + (count - 1) / context * 2 * (context + 1));
    }
    for (std::size_t first = begin; first + context < end; first += context) {
      if (const std::uint8_t* pairs = tokens.pairs()) {
        set_.images.insert(set_.images.end(), pairs + 2 * first, pairs + 2 * (first + context + 1));
        continue;
      }
      for (std::size_t i = first; i <= first + context; ++i) {
        set_.images.push_back(static_cast<std::uint8_t>(tokens[i]));
        set_.images.push_back(static_cast<std::uint8_t>(tokens[i] >> 8));
      }
    }
  }

  Dataset take(const fs::path& place) {
    set_.samples = set_.images.size() / set_.sample_bytes();
    if (set_.samples == 0) {
      throw input_error(fmt::format("{} has no sample of {} tokens", set_.name, set_.height),
                        place.string(), cure(place));
    }
    set_.labels.assign(set_.samples, 0);  // each token's label is the next one
    return std::move(set_);
  }

 private:
  void make_room(const fs::path& file, std::size_t bytes) try {
    set_.images.reserve(bytes);
  } catch (const std::bad_alloc&) {
    throw input_error(
        "samples of " + format_bytes(static_cast<double>(bytes)) + " do not fit in memory",
        file.string(), "give fewer or smaller files");
  }

  static std::string cure(const fs::path& place) {
    std::vector<std::string> others;
    std::error_code code;
    for (fs::directory_iterator at(place, code), end; !code && at != end; at.increment(code)) {
      const fs::path& path = at->path();
      const bool has_tokens = path.extension() == ".txt" || path.extension() == ".bin";
      if (has_tokens && split_named(path.stem().string()) == Split::none) {
        others.push_back(path.filename().string());
      }
    }
    if (others.empty()) return "add longer text";
    std::sort(others.begin(), others.end());
    constexpr std::size_t kMost = 3;
    others.resize(std::min(kMost, others.size()));
    return fmt::format(
        "{} belong{} to no split: put train or val into the names, or give one file "
        "as --data, whose last tenth is the test split",
        join(others, ", "), others.size() == 1 ? "s" : "");
  }

  Dataset set_;
  int vocabulary_;
};

}  // namespace

std::vector<fs::path> token_files(const fs::path& folder) {
  if (fs::is_regular_file(folder)) {
    const bool has_tokens = folder.extension() == ".txt" || folder.extension() == ".bin";
    return has_tokens ? std::vector{folder} : std::vector<fs::path>();
  }
  std::vector<fs::path> files = files_with(folder, ".bin");
  return files.empty() ? files_with(folder, ".txt") : files;
}

std::string tokens_hash(const fs::path& folder) {
  Hash hash;
  for (const fs::path& file : token_files(folder)) {
    hash.add(file.filename().string()).add(hash_of_file(file));
  }
  return hash.hex();
}

DatasetPair load_tokens(const fs::path& folder, int context, int vocabulary) {
  Reader train("text train", context, vocabulary), test("text test", context, vocabulary);
  for (const fs::path& file : token_files(folder)) {
    if (file == folder) {
      train.add(file, 0, kTrainShare);
      test.add(file, kTrainShare);
    } else {
      (split_named(file.stem().string()) == Split::train ? train : test).add(file);
    }
  }
  return {train.take(folder), test.take(folder), tokens_hash(folder)};
}

}  // namespace paceline
