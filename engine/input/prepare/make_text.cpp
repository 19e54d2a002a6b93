#include <fmt/format.h>

#include <array>
#include <cmath>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/input/formats/source.h"
#include "engine/input/prepare/make.h"
#include "engine/input/prepare/staged_folder.h"

namespace paceline {

namespace {

constexpr std::size_t kLetters = 16, kPairs = kLetters * kLetters, kFollowers = 4;
constexpr std::size_t kLeastTokens = 1000, kMostTokens = std::size_t{1} << 32;

// A Markov source of order two: the state is the last two letters.
class Source {
 public:
  explicit Source(std::uint64_t seed) {
    RandomSequence random(seed, Stream::synthetic, 0);
    for (auto& followers : next_) {
      double total = 0;
      for (Follower& follower : followers) {
        follower = {random.below(kLetters), 0.1 + random.uniform()};
        total += follower.probability;
      }
      for (Follower& follower : followers) follower.probability /= total;
    }
  }

  char draw(std::size_t& pair, RandomSequence& random) const {
    double left = random.uniform();
    std::size_t i = 0;
    while (i + 1 < kFollowers && left >= next_[pair][i].probability) {
      left -= next_[pair][i++].probability;
    }
    const std::size_t letter = next_[pair][i].letter;
    pair = pair % kLetters * kLetters + letter;
    return static_cast<char>('a' + letter);
  }

  // Of a letter whose two predecessors are known, in nats.
  double entropy() const {
    constexpr int kRounds = 2000;  // the shares of pairs settle long before
    std::array<double, kPairs> share{};
    share[0] = 1;  // as the text begins
    for (int round = 0; round < kRounds; ++round) {
      std::array<double, kPairs> after{};
      for (std::size_t pair = 0; pair < kPairs; ++pair) {
        for (const Follower& follower : next_[pair]) {
          after[pair % kLetters * kLetters + follower.letter] += share[pair] * follower.probability;
        }
      }
      // The mean of both: it settles even where pairs alternate.
      for (std::size_t pair = 0; pair < kPairs; ++pair)
        share[pair] = (share[pair] + after[pair]) / 2;
    }
    double entropy = 0;
    for (std::size_t pair = 0; pair < kPairs; ++pair) {
      std::array<double, kLetters> letters{};  // a letter may follow by two ways
      for (const Follower& follower : next_[pair]) letters[follower.letter] += follower.probability;
      for (const double p : letters) {
        if (p > 0) entropy -= share[pair] * p * std::log(p);
      }
    }
    return entropy;
  }

 private:
  struct Follower {
    std::size_t letter = 0;
    double probability = 0;
  };
  std::array<std::array<Follower, kFollowers>, kPairs> next_;
};

}  // namespace

Made make_text(const MakeOptions& options) {
  const std::size_t test = options.test.value_or(options.tokens / 10);
  if (options.tokens < kLeastTokens || options.tokens > kMostTokens || test > kMostTokens) {
    throw usage_error(fmt::format("{} training and {} test tokens", options.tokens, test),
                      "--tokens, --test",
                      fmt::format("ask for {} to {}", kLeastTokens, kMostTokens));
  }
  check_space(options.out, options.tokens + test);
  const Source source(options.seed);
  StagedFolder folder(options.out);
  const auto write = [&](const char* name, std::uint32_t split, std::size_t tokens) {
    RandomSequence random(options.seed, Stream::synthetic, 1, split);
    std::string text(tokens, '\0');
    std::size_t pair = 0;
    for (char& letter : text) letter = source.draw(pair, random);
    replace_file(folder.path() / name, text);
  };
  write("train.txt", 0, options.tokens);
  write("val.txt", 1, test);
  mark_synthetic(folder.path());
  folder.commit();
  return {0, options.tokens + test, source.entropy()};
}

}  // namespace paceline
