#include "results/step_samples.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "results/rank_lists.h"

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

// Each rank's seconds, and the least wait of each step.
class Steps {
 public:
  Steps(int ranks, std::size_t warmup) : warmup_(warmup) {
    sums_.ranks.resize(static_cast<std::size_t>(ranks));
  }

  // False: this is no sample.
  bool add(std::string_view line) {
    const auto rank = number_after(line, "\"rank\":"), step = number_after(line, "\"step\":");
    const auto wait = number_after(line, "\"communication\":");
    if (!rank || !step || !wait || *step >= static_cast<double>(kMostSteps) ||
        *rank >= static_cast<double>(sums_.ranks.size())) {
      return false;
    }
    const auto index = static_cast<std::size_t>(*step);
    if (index >= steps_.size()) steps_.resize(index + 1);
    Step& here = steps_[index];
    here.least = here.ranks == 0 ? *wait : std::min(here.least, *wait);
    ++here.ranks;
    if (index < warmup_) return true;
    const auto seconds = [&](const char* key) { return number_after(line, key).value_or(0); };
    RankSeconds& sum = sums_.ranks[static_cast<std::size_t>(*rank)];
    sum.input += seconds("\"input\":");
    sum.compute += seconds("\"forward\":") + seconds("\"backward\":") + seconds("\"update\":");
    sum.communication += *wait;
    sum.other += seconds("\"other\":");
    return true;
  }

  std::optional<StepSums> sums() const {
    StepSums result = sums_;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].ranks != sums_.ranks.size()) return std::nullopt;
      if (i >= warmup_) result.waited_by_all += steps_[i].least;
    }
    return steps_.empty() ? std::nullopt : std::optional(result);
  }

 private:
  struct Step {
    double least = 0;
    std::size_t ranks = 0;
  };
  std::size_t warmup_;
  std::vector<Step> steps_;
  StepSums sums_;
};

// The file that the record names, if it is there as it was written.
std::optional<fs::path> find_samples(const RunRecord& record, const std::string& where) {
  const std::optional<SamplesFile>& samples = record.samples;
  if (!samples || samples->file.empty() || samples->xxh3.empty()) return std::nullopt;
  const fs::path path = fs::path(where).parent_path() / fs::path(samples->file).filename();
  std::error_code error;
  if (!fs::is_regular_file(path, error) || hash_of_file(path) != samples->xxh3) {
    return std::nullopt;
  }
  return path;
}

// False: unreadable, or `add` refused a line.
template <typename Add>
bool for_each_sample(const fs::path& file, const Add& add) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> samples(gzopen(file.c_str(), "rb"), gzclose);
  if (!samples) return false;
  std::array<char, 4096> line{};
  while (gzgets(samples.get(), line.data(), static_cast<int>(line.size())) != nullptr) {
    const bool is_of_rank = std::string_view(line.data()).starts_with(kRankLine);
    if (!is_of_rank && !add(std::string_view(line.data()))) return false;
  }
  int error = Z_OK;
  gzerror(samples.get(), &error);
  return error == Z_OK || error == Z_STREAM_END;
}

}  // namespace

std::string gzip(std::string_view lines) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;
  if (deflateInit2(&stream, 6, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  std::string out(deflateBound(&stream, static_cast<uLong>(lines.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(lines.data()));
  stream.avail_in = static_cast<uInt>(lines.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw Error(ErrorKind::internal, "samples could not be compressed");
  return out;
}

std::optional<StepSums> summed_steps(const Record& record, std::size_t warmup) {
  try {
    const auto file = find_samples(*record, record.where());
    Steps steps(record->task_layout().gpus, warmup);
    const auto add = [&steps](std::string_view line) { return steps.add(line); };
    if (!file || !for_each_sample(*file, add)) return std::nullopt;
    return steps.sums();
  } catch (const Error&) {
    return std::nullopt;  // cannot be read: explained without it
  }
}

std::vector<std::vector<StepSeconds>> all_steps(const RunRecord& record, const std::string& where,
                                                std::size_t warmup, std::size_t most) {
  std::vector<std::vector<StepSeconds>> ranks(static_cast<std::size_t>(record.layout.gpus));
  std::size_t count = 0;
  const auto add = [&](std::string_view line) {
    const auto rank = number_after(line, "\"rank\":"), step = number_after(line, "\"step\":");
    if (!rank || !step || *rank >= static_cast<double>(ranks.size()) || ++count > most)
      return false;
    if (*step < static_cast<double>(warmup)) return true;
    const auto seconds = [&](const char* key) { return number_after(line, key).value_or(0); };
    ranks[static_cast<std::size_t>(*rank)].push_back(
        {seconds("\"input\":"), seconds("\"forward\":"), seconds("\"backward\":"),
         seconds("\"communication\":"), seconds("\"update\":"), seconds("\"other\":")});
    return true;
  };
  try {
    const auto file = find_samples(record, where);
    if (!file || !for_each_sample(*file, add)) return {};
  } catch (const Error&) {
    return {};
  }
  const std::size_t steps = ranks.front().size();
  const bool equal = std::all_of(ranks.begin(), ranks.end(),
                                 [steps](const auto& rank) { return rank.size() == steps; });
  return equal && steps > 0 ? ranks : std::vector<std::vector<StepSeconds>>{};
}

}  // namespace paceline
