#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/input/loading/dataset.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t kMagic = 20240520, kVersion = 1;
constexpr std::size_t kHeaderBytes = 1024;
constexpr std::size_t kMostBytes = std::size_t{64} << 30;

enum class Split { none, train, test };

Split split_named(const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has("train")) return Split::train;
  return has("val") || has("test") ? Split::test : Split::none;
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

std::uint32_t number_at(const std::string& bytes, std::size_t index) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i > 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[4 * index + i - 1]);
  }
  return value;
}

// The tokens of a file, two bytes each.
std::string read_tokens(const fs::path& file) {
  std::string bytes = read_text(file, kMostBytes);
  if (file.extension() == ".txt") {
    std::string tokens(2 * bytes.size(), '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) tokens[2 * i] = bytes[i];
    return tokens;
  }
  if (bytes.size() < kHeaderBytes || number_at(bytes, 0) != kMagic ||
      number_at(bytes, 1) != kVersion) {
    throw Error(ErrorKind::input, "this is no file of tokens in llm.c's format, version 1",
                file.string(), "make it by llm.c's dev/data, or give text as .txt");
  }
  const std::size_t tokens = number_at(bytes, 2);
  if (bytes.size() != kHeaderBytes + 2 * tokens) {
    throw Error(ErrorKind::input,
                fmt::format("its header says {} tokens, but {} bytes follow it", tokens,
                            bytes.size() - kHeaderBytes),
                file.string(), "get the file again");
  }
  return bytes.substr(kHeaderBytes);
}

class Reader {
 public:
  Reader(std::string name, int context, int vocabulary) : vocabulary_(vocabulary) {
    set_.name = std::move(name);
    set_.height = context + 1;
    set_.width = 1;
    set_.channels = 2;
    set_.classes = vocabulary;
  }

  void add(const fs::path& file) {
    const std::string tokens = read_tokens(file);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(tokens.data());
    const std::size_t count = tokens.size() / 2,
                      context = static_cast<std::size_t>(set_.height) - 1;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t token = bytes[2 * i] | std::size_t{bytes[2 * i + 1]} << 8;
      if (token < static_cast<std::size_t>(vocabulary_)) continue;
      throw Error(
          ErrorKind::input,
          fmt::format("token {} at place {} is not one of the network's {}", token, i, vocabulary_),
          file.string(), "choose a workload with this vocabulary");
    }
    for (std::size_t first = 0; first + context < count; first += context) {
      const auto* begin = bytes + 2 * first;
      set_.images.insert(set_.images.end(), begin, begin + 2 * (context + 1));
    }
  }

  Dataset take(const fs::path& folder) {
    set_.samples = set_.images.size() / set_.sample_bytes();
    if (set_.samples == 0) {
      throw Error(ErrorKind::input,
                  fmt::format("{} has no sample of {} tokens", set_.name, set_.height),
                  folder.string(), "add files with longer text, train and val in their names");
    }
    set_.labels.assign(set_.samples, 0);  // each token's label is the next one
    return std::move(set_);
  }

 private:
  Dataset set_;
  int vocabulary_;
};

}  // namespace

std::vector<fs::path> token_files(const fs::path& folder) {
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
    (split_named(file.stem().string()) == Split::train ? train : test).add(file);
  }
  return {train.take(folder), test.take(folder), tokens_hash(folder)};
}

}  // namespace paceline
