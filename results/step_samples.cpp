#include "results/step_samples.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/facts/step_times.h"
#include "engine/facts/timing.h"
#include "results/run_record.h"

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

constexpr std::size_t kFewest = 8;  // entries of a list that stay
// Beyond so many, rows of epochs are left out whatever else a record holds: runs that are compared
// by these rows then have the same ones.
constexpr std::size_t kMostEpochs = 96;

struct List {
  const char* path;
  bool from_the_end = false;  // is cut there: the place of an entry says what it is of
};

constexpr std::array kLists = {List{"/quality/epochs"}, List{"/timing/epoch_seconds", true},
                               List{"/provenance/implementations", true}, List{"/gpus"},
                               List{"/plan/gradients"}};

Json* find(Json& record, const List& list, std::size_t most) {
  const Json::json_pointer path(list.path);
  if (!record.contains(path)) return nullptr;
  Json& found = record.at(path);
  return found.is_array() && found.size() > most ? &found : nullptr;
}

void number_epochs(Json& epochs) {
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    if (epochs[i].is_object() && !epochs[i].contains("epoch")) epochs[i]["epoch"] = i + 1;
  }
}

void halve(Json& entries, const List& list) {
  if (list.path == std::string("/quality/epochs")) number_epochs(entries);
  const std::size_t count = entries.size();
  Json kept = Json::array();
  for (std::size_t i = 0; i < count; ++i) {
    const bool stays = list.from_the_end ? i < count / 2 : i % 2 == 0 || i + 1 == count;
    if (stays) kept.push_back(std::move(entries[i]));
  }
  entries = std::move(kept);
}

void halve_and_mark(Json& record, Json& entries, const List& list) {
  const std::size_t count = entries.size();
  halve(entries, list);
  const char* name = list.path + 1;
  Json& marks = record["thinned"];
  if (!marks.contains(name)) marks[name] = count;
}

}  // namespace

void add_step_lines(int rank, const std::vector<StepTimes>& steps, std::string& lines) {
  auto end = std::back_inserter(lines);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    fmt::format_to(end, "{{\"rank\":{},\"step\":{},\"total\":{:.4g}", rank, s, steps[s].total);
    for (std::size_t p = 0; p < kPhases; ++p) {
      fmt::format_to(end, ",\"{}\":{:.4g}", kPhaseNames[p], steps[s].seconds[p]);
    }
    lines += "}\n";
  }
}

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
  if (status != Z_STREAM_END) throw internal_error("samples could not be compressed");
  return out;
}

std::optional<StepSums> summed_steps(const RunRecord& record, const std::string& where,
                                     std::size_t warmup) {
  try {
    const auto file = find_samples(record, where);
    Steps steps(record.layout.gpus, warmup);
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

std::string thin(Json& record, std::size_t limit, std::size_t (*size_of)(const Json&)) {
  while (Json* epochs = find(record, kLists.front(), kMostEpochs)) {
    halve_and_mark(record, *epochs, kLists.front());
  }
  std::string of_ranks;
  while (size_of(record) > limit) {
    const List* longest = nullptr;
    Json* entries = nullptr;
    std::size_t most = 0;
    for (const List& list : kLists) {
      Json* found = find(record, list, kFewest);
      const std::size_t size = found ? size_of(*found) : 0;
      if (size <= most) continue;
      longest = &list;
      entries = found;
      most = size;
    }
    if (size_of_rank_lists(record, size_of) > most) {
      of_ranks = fold_rank_lists(record);
      continue;
    }
    if (!entries) break;
    halve_and_mark(record, *entries, *longest);
  }
  return of_ranks;
}

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const double rest = at - static_cast<double>(low);
  return sorted[low] * (1 - rest) + sorted[std::min(low + 1, sorted.size() - 1)] * rest;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

StepQuantiles step_quantiles(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {quantile(seconds, 0.05), quantile(seconds, 0.5), quantile(seconds, 0.95),
          quantile(seconds, 0.99), quantile(seconds, 1)};
}

StepQuantiles step_quantiles(std::span<const StepTimes> steps) {
  std::vector<double> seconds;
  for (const StepTimes& step : steps) seconds.push_back(static_cast<double>(step.total));
  return step_quantiles(std::move(seconds));
}

}  // namespace paceline
