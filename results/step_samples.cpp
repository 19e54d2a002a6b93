#include "results/step_samples.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/hash.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostSteps = 100'000'000;

std::optional<double> number_after(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  double value = 0;
  const auto [end, error] =
      std::from_chars(line.data() + at + key.size(), line.data() + line.size(), value);
  return error == std::errc() && value >= 0 ? std::optional(value) : std::nullopt;
}

// The least wait of each step, and of how many ranks.
class LeastWaits {
 public:
  // False: this is no sample.
  bool add(std::string_view line) {
    const auto step = number_after(line, "\"step\":");
    const auto wait = number_after(line, "\"communication\":");
    if (!step || !wait || *step >= static_cast<double>(kMostSteps)) return false;
    const auto index = static_cast<std::size_t>(*step);
    if (index >= steps_.size()) steps_.resize(index + 1);
    Step& here = steps_[index];
    here.least = here.ranks == 0 ? *wait : std::min(here.least, *wait);
    ++here.ranks;
    return true;
  }

  std::optional<double> sum(int ranks) const {
    double seconds = 0;
    for (const Step& step : steps_) {
      if (step.ranks != ranks) return std::nullopt;
      seconds += step.least;
    }
    return steps_.empty() ? std::nullopt : std::optional(seconds);
  }

 private:
  struct Step {
    double least = 0;
    int ranks = 0;
  };
  std::vector<Step> steps_;
};

// The file that the record names, if it is there as it was written.
std::optional<fs::path> samples_of(const Record& record) {
  const auto samples = record.json().find("samples");
  if (samples == record.json().end() || !samples->is_object()) return std::nullopt;
  const auto file = samples->find("file"), hash = samples->find("xxh3");
  if (file == samples->end() || !file->is_string() || hash == samples->end() ||
      !hash->is_string()) {
    return std::nullopt;
  }
  const fs::path name = file->get<std::string>();
  const fs::path path = fs::path(record.where()).parent_path() / name.filename();
  std::error_code error;
  if (!fs::is_regular_file(path, error) || hash_of_file(path) != hash->get<std::string>()) {
    return std::nullopt;
  }
  return path;
}

bool add_all(LeastWaits& waits, const fs::path& file) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> samples(gzopen(file.c_str(), "rb"), gzclose);
  if (!samples) return false;
  std::array<char, 4096> line{};
  while (gzgets(samples.get(), line.data(), static_cast<int>(line.size())) != nullptr) {
    if (!waits.add(line.data())) return false;
  }
  int error = Z_OK;
  gzerror(samples.get(), &error);
  return error == Z_OK || error == Z_STREAM_END;
}

}  // namespace

std::optional<double> waited_by_all(const Record& record) {
  try {
    const auto file = samples_of(record);
    LeastWaits waits;
    if (!file || !add_all(waits, *file)) return std::nullopt;
    return waits.sum(record.layout().gpus);
  } catch (const Error&) {
    return std::nullopt;  // cannot be read: explained without it
  }
}

}  // namespace paceline
