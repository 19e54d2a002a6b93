#include "slurm/job_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

Need larger(const Need& a, const Need& b) {
  Need both = a;
  both.minutes = std::max(a.minutes, b.minutes);
  both.memory_mb = std::max(a.memory_mb, b.memory_mb);
  both.time_is_known = a.time_is_known && b.time_is_known;
  both.is_cut = a.is_cut || b.is_cut;
  return both;
}

// Parts as equal as can be: a last array of one element would run apart from the others.
std::vector<JobArray> split_array(const JobArray& whole, int most_elements) {
  const std::size_t most = static_cast<std::size_t>(std::max(1, most_elements));
  const std::size_t count = whole.runs.size(), parts = (count + most - 1) / most;
  if (parts <= 1) return {whole};
  std::vector<JobArray> arrays;
  for (std::size_t part = 0; part < parts; ++part) {
    JobArray array = whole;
    array.name = fmt::format("{}-{}of{}", whole.name, part + 1, parts);
    const auto at = [&](std::size_t boundary) {
      return whole.runs.begin() + static_cast<std::ptrdiff_t>(count * boundary / parts);
    };
    array.runs.assign(at(part), at(part + 1));
    arrays.push_back(std::move(array));
  }
  return arrays;
}

constexpr int kMostElements = 10'000'000;

// A whole number without sign, as ids are.
std::optional<int> to_index(std::string_view text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto number = to_integer(text);
  if (!number || *number > kMostElements) return std::nullopt;
  return static_cast<int>(*number);
}

// "6-8", "0-20:4", "3".
bool add_range(std::string_view text, std::vector<int>& elements) {
  const auto dash = text.find('-');
  const auto first = to_index(text.substr(0, dash));
  if (!first) return false;
  if (dash == std::string_view::npos) {
    elements.push_back(*first);
    return true;
  }
  std::string_view rest = text.substr(dash + 1);
  const auto colon = rest.find(':');
  const auto step =
      colon == std::string_view::npos ? std::optional<int>(1) : to_index(rest.substr(colon + 1));
  const auto last = to_index(rest.substr(0, colon));
  if (!last || !step || *step < 1 || *last < *first) return false;
  for (int element = *first; element <= *last; element += *step) elements.push_back(element);
  return true;
}

}  // namespace

std::string JobShape::name() const {
  return fmt::format("{}n{}t{}c", nodes, ntasks, cpus_per_task) +
         (gpus > 0 ? fmt::format("{}g", gpus) : "");
}

std::string JobShape::text() const {
  return fmt::format("{}, {} of {}", counted(nodes, "node"), counted(ntasks, "task"),
                     counted(cpus_per_task, "CPU")) +
         (gpus > 0 ? ", " + counted(gpus, "GPU") : "");
}

JobShape make_shape(const Layout& layout) {
  return {layout.nodes, layout.replicas_are_cores ? 0 : layout.gpus, layout.ntasks,
          layout.cpus_per_task};
}

std::vector<JobArray> group_runs(const std::vector<PlannedPoint>& points,
                                 const std::vector<ScheduledRun>& runs,
                                 const std::vector<Need>& needs, int most_elements) {
  std::vector<JobArray> wholes;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const JobShape shape = make_shape(points[runs[i].point].layout);
    const auto found = std::ranges::find(wholes, shape, &JobArray::shape);
    if (found == wholes.end()) {
      wholes.push_back({shape.name(), shape, {runs[i]}, needs[i]});
    } else {
      found->runs.push_back(runs[i]);
      found->need = larger(found->need, needs[i]);
    }
  }
  std::ranges::sort(wholes, [](const JobArray& a, const JobArray& b) { return a.shape < b.shape; });
  return flattened(wholes,
                   [&](const JobArray& whole) { return split_array(whole, most_elements); });
}

bool parse_elements(std::string_view text, ArrayId& into) {
  if (const auto percent = text.find('%'); percent != std::string_view::npos) {
    const auto throttle = to_index(text.substr(percent + 1));
    if (!throttle) return false;
    into.throttle = *throttle;
    text = text.substr(0, percent);
  }
  for (const std::string& part : split(text, ',')) {
    if (part == "...") {
      into.cut_short = true;
      continue;
    }
    std::string_view range = part;
    if (range.ends_with("...")) {
      into.cut_short = true;
      range.remove_suffix(3);
    }
    if (!add_range(range, into.elements)) return false;
  }
  return true;
}

std::optional<ArrayId> parse_array_id(std::string_view text) {
  text = trim(text);
  ArrayId id;
  const auto bar = text.find('_');
  const auto job = to_integer(text.substr(0, bar));
  if (!job || *job < 1 || text.front() == '+') return std::nullopt;
  id.job = *job;
  if (bar == std::string_view::npos) return id;
  std::string_view elements = text.substr(bar + 1);
  if (elements.starts_with('[')) {
    if (!elements.ends_with(']')) return std::nullopt;
    elements = elements.substr(1, elements.size() - 2);
  } else if (!to_index(elements)) {
    return std::nullopt;
  }
  if (!parse_elements(elements, id)) return std::nullopt;
  return id;
}

std::string line_of_words(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (is_utf8(word)) continue;
    throw usage_error("the command line of a run is not UTF-8", join(words, " "),
                      "use file and folder names in UTF-8");
  }
  return json_text(words);
}

std::vector<std::string> words_of_element(const std::filesystem::path& file, std::size_t index) {
  const std::vector<std::string> lines = split(read_text(file), '\n');
  const std::string where = fmt::format("{}:{}", file.string(), index + 1);
  if (index >= lines.size() || lines[index].empty()) {
    throw input_error("the points file has no such line", where, "submit again");
  }
  const Json words = Json::parse(lines[index], nullptr, false);
  try {
    if (words.is_array()) return words.get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {  // of something else than texts
  }
  throw input_error("not a list of a run's words", where, "submit again");
}

}  // namespace paceline
