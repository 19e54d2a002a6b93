#include "engine/device/cuda/dnn/choices_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/log.h"
#include "engine/core/text.h"

namespace paceline::cuda {

namespace {

constexpr const char* kFormat = "paceline_choices";
constexpr int kVersion = 1;
constexpr std::size_t kAlgorithmDigits = 128;  // 64 bytes
constexpr const char* kMark = ".trying-";      // and six letters, behind the file's name

constexpr EnumName<Recipe::Library> kLibraries[] = {{Recipe::Library::cudnn, "cuDNN"},
                                                    {Recipe::Library::cublas_lt, "cuBLASLt"},
                                                    {Recipe::Library::own, "own"}};

Json to_json(const std::string& circumstances, const std::string& request, const Recipe& recipe) {
  Json entry{{"circumstances", circumstances},
             {"request", request},
             {"library", name_in(kLibraries, recipe.library)},
             {"engine", recipe.engine}};
  if (recipe.library == Recipe::Library::cudnn) {
    entry["knobs"] = Json::array();
    for (const Recipe::Knob& knob : recipe.knobs) entry["knobs"].push_back({knob.type, knob.value});
  } else if (recipe.library == Recipe::Library::cublas_lt) {
    entry["algorithm"] = recipe.algorithm;
  }
  return entry;
}

Json to_json(const std::string& circumstances, const Choice& choice) {
  Json entry = to_json(circumstances, choice.request, choice.recipe);
  entry["tensor_cores"] = choice.tensor_cores;
  entry["workspace_bytes"] = choice.workspace_bytes;
  entry["offered"] = choice.offered;
  entry["usable"] = choice.usable;
  entry["seconds"] = choice.seconds;
  entry["runner_up"] = choice.runner_up;
  entry["runner_up_seconds"] = choice.runner_up_seconds;
  return entry;
}

void expect(bool good, const char* what) {
  if (!good) throw input_error(what, "", "delete the file; the choices are then measured again");
}

// Throws what is wrong: nlohmann's exceptions for types, ours for values.
Recipe recipe_from_json(const Json& entry) {
  Recipe recipe;
  const auto library = value_in(kLibraries, entry.at("library").get<std::string>());
  expect(library.has_value(), "an unknown library");
  recipe.library = *library;
  recipe.engine = entry.at("engine").get<std::int64_t>();
  if (library == Recipe::Library::cudnn) {
    for (const Json& knob : entry.at("knobs")) {
      expect(knob.is_array() && knob.size() == 2, "a knob that is not [type, value]");
      recipe.knobs.push_back({knob[0].get<std::int64_t>(), knob[1].get<std::int64_t>()});
    }
  } else if (library == Recipe::Library::cublas_lt) {
    recipe.algorithm = entry.at("algorithm").get<std::string>();
    expect(recipe.algorithm.size() == kAlgorithmDigits &&
               recipe.algorithm.find_first_not_of("0123456789abcdef") == std::string::npos,
           "an algorithm that is not 64 bytes in hexadecimal");
  }
  return recipe;
}

std::pair<std::string, std::string> make_key(const Json& entry) {
  return {entry.at("circumstances").get<std::string>(), entry.at("request").get<std::string>()};
}

Choice choice_from_json(const Json& entry) {
  return {.request = entry.at("request").get<std::string>(),
          .recipe = recipe_from_json(entry),
          .tensor_cores = entry.at("tensor_cores").get<bool>(),
          .workspace_bytes = entry.at("workspace_bytes").get<std::size_t>(),
          .offered = entry.at("offered").get<int>(),
          .usable = entry.at("usable").get<int>(),
          .seconds = entry.at("seconds").get<double>(),
          .runner_up_seconds = entry.at("runner_up_seconds").get<double>(),
          .runner_up = entry.at("runner_up").get<std::string>(),
          .origin = Choice::Origin::file};
}

}  // namespace

// Marks are read first: who removes one has saved it before.
ChoicesFile::ChoicesFile(std::filesystem::path path) : path_(std::move(path)) {
  std::vector<std::filesystem::path> marks;
  added_ = read_marks(marks);
  content_ = read();
  content_.add(added_);
  try {
    save();
    std::error_code failed;
    if (!problem_.empty()) marks.clear();
    for (const auto& mark : marks) std::filesystem::remove(mark, failed);
  } catch (const Error& error) {
    log::debug("{}", error.what());
  }
}

// A mark that can be locked is that of a process that has ended.
ChoicesFile::Content ChoicesFile::read_marks(std::vector<std::filesystem::path>& files) const {
  Content content;
  if (path_.empty()) return content;
  std::error_code failed;
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::filesystem::path& file = entry.path();
    if (!file.filename().string().starts_with(path_.filename().string() + kMark)) continue;
    const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor >= 0 && flock(descriptor, LOCK_SH | LOCK_NB) == 0) {
      files.push_back(file);
      try {
        const JsonDocument document = read_json(file);
        const Json& mark = document.value();
        const Exclusion exclusion{recipe_from_json(mark), "it did not return"};
        log::warning("{}: {} is left out: {}", mark.at("request").get<std::string>(),
                     exclusion.recipe.text(), exclusion.because);
        content.excluded[make_key(mark)].push_back(exclusion);
      } catch (const std::exception& error) {  // not written to its end
        log::debug("{}: {}", file.string(), error.what());
      }
    }
    if (descriptor >= 0) close(descriptor);
  }
  return content;
}

void ChoicesFile::Content::add(const Content& other) {
  for (const auto& [key, choice] : other.choices) choices[key] = choice;
  for (const auto& [key, exclusions] : other.excluded) {
    std::vector<Exclusion>& all = excluded[key];
    const auto has = [&all](const Recipe& recipe) {
      return std::ranges::any_of(all, [&](const Exclusion& one) { return one.recipe == recipe; });
    };
    for (const Exclusion& one : exclusions) {
      if (!has(one.recipe)) all.push_back(one);
    }
    const auto chosen = choices.find(key);
    if (chosen != choices.end() && has(chosen->second.recipe)) choices.erase(chosen);
  }
}

ChoicesFile::Content ChoicesFile::read() {
  Content content;
  std::error_code failed;
  if (path_.empty() || (!std::filesystem::exists(path_, failed) && !failed)) return content;
  try {
    const JsonDocument document = read_json(path_);
    const Json& root = document.value();
    expect(root.is_object() && root.contains(kFormat), "it is not a file of choices");
    const int version = root.at(kFormat).get<int>();
    expect(version <= kVersion, "a newer version of Paceline wrote it");
    expect(version == kVersion, "its version is unknown");
    for (const Json& entry : root.at("choices")) {
      content.choices[make_key(entry)] = choice_from_json(entry);
    }
    for (const Json& entry : root.value("excluded", Json::array())) {
      content.excluded[make_key(entry)].push_back(
          {recipe_from_json(entry), entry.value("because", "it broke the GPU's context")});
    }
    return content;
  } catch (const nlohmann::json::exception& error) {
    problem_ = error.what();  // "[json.exception.type_error.302] type must be number"
    problem_.erase(0, problem_.find("] ") + 2);
  } catch (const Error& error) {
    problem_ = error.what();
  }
  problem_ =
      fmt::format("{} is left alone: {}; remove it or name another file", path_.string(), problem_);
  log::warning("{}", problem_);
  return {};
}

std::optional<Choice> ChoicesFile::find(const std::string& circumstances,
                                        const std::string& request) const {
  const auto found = content_.choices.find({circumstances, request});
  return found == content_.choices.end() ? std::nullopt : std::optional<Choice>(found->second);
}

void ChoicesFile::put(const std::string& circumstances, const Choice& choice) {
  added_.choices[{circumstances, choice.request}] = choice;
  content_.choices[{circumstances, choice.request}] = choice;
}

std::vector<Exclusion> ChoicesFile::excluded(const std::string& circumstances,
                                             const std::string& request) const {
  const auto found = content_.excluded.find({circumstances, request});
  return found == content_.excluded.end() ? std::vector<Exclusion>() : found->second;
}

void ChoicesFile::exclude(const std::string& circumstances, const std::string& request,
                          const Exclusion& exclusion) {
  Content more;
  more.excluded[{circumstances, request}] = {exclusion};
  added_.add(more);
  content_.add(more);
}

void ChoicesFile::save() {
  if (path_.empty() || !problem_.empty()) return;
  if (added_.choices.empty() && added_.excluded.empty()) return;
  Content all = read();
  if (!problem_.empty()) return;
  all.add(added_);
  Json root{{kFormat, kVersion}, {"choices", Json::array()}};
  for (const auto& [key, choice] : all.choices) {
    root["choices"].push_back(to_json(key.first, choice));
  }
  for (const auto& [key, exclusions] : all.excluded) {
    for (const auto& [recipe, because] : exclusions) {
      root["excluded"].push_back(to_json(key.first, key.second, recipe));
      root["excluded"].back()["because"] = because;
    }
  }
  if (path_.has_parent_path()) make_folder(path_.parent_path());
  replace_file(path_, json_text(root, 1) + "\n");
  added_ = {};
}

TrialMark::TrialMark(std::filesystem::path choices)
    : path_(choices.empty() ? "" : choices.string() + kMark + "XXXXXX") {}

TrialMark::~TrialMark() {
  remove();
}

// Spaces hide the rest of a longer mark before: a file is cut for the price of a journey to a
// server.
void TrialMark::set(const std::string& circumstances, const std::string& request,
                    const Recipe& recipe) {
  if (path_.empty()) return;
  if (descriptor_ < 0) {
    const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
    std::error_code failed;
    if (!folder.empty()) std::filesystem::create_directories(folder, failed);
    descriptor_ = mkostemp(path_.data(), O_CLOEXEC);
    if (descriptor_ < 0) return path_.clear();
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) return remove();
  }
  std::string text = json_text(to_json(circumstances, request, recipe));
  bytes_ = std::max(bytes_, text.size());
  text.resize(bytes_, ' ');
  const ssize_t written = pwrite(descriptor_, text.data(), text.size(), 0);
  if (written != static_cast<ssize_t>(text.size())) remove();
}

void TrialMark::remove() noexcept {
  if (descriptor_ < 0) return;
  unlink(path_.c_str());
  close(descriptor_);
  descriptor_ = -1;
  path_.clear();
}

}  // namespace paceline::cuda
