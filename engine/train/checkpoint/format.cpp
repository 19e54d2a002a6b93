#include "engine/train/checkpoint/format.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/train/weights.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr char kOptimizerFile[] = "optimizer.safetensors";
constexpr char kStatisticsFile[] = "statistics.safetensors";
constexpr std::size_t kMostManifestBytes = std::size_t{16} << 20;
constexpr std::size_t kMostFileBytes = std::size_t{64} << 30;
constexpr const char* kFirst = "/first";
constexpr const char* kSecond = "/second";

const char* type_name(DType real) {
  return real == DType::f64 ? "F64" : "F32";
}

std::string name_of_rank(int rank, const std::string& name) {
  return fmt::format("rank-{}/{}", rank, name);
}

// Where the values of one tensor lie within an arena.
std::span<std::byte> within(std::byte* arena, const ParameterInfo& info, DType real) {
  return {arena + info.offset * size_of(real), info.elements * size_of(real)};
}

// A file of tensors under construction: names first, then values in the same order.
class TensorFile {
 public:
  TensorFile(const fs::path& folder, const char* name, DType real)
      : name_(name), real_(real), file_(folder / name) {}

  void declare(const std::string& name, const std::vector<int>& shape) {
    specs_.push_back({name, type_name(real_), shape});
  }
  void begin() {
    const std::string text = safetensors_beginning(specs_);
    file_.write(text.data(), text.size());
  }
  void add(std::span<const std::byte> values) { file_.write(values.data(), values.size()); }
  CheckpointFile finish() {
    file_.finish();
    return {name_, file_.bytes(), file_.hash()};
  }

 private:
  std::string name_;
  DType real_;
  NewFile file_;
  std::vector<TensorSpec> specs_;
};

template <typename T>
std::vector<std::byte> average(std::span<const std::byte> all, int ranks) {
  std::vector<std::byte> mean(all.size() / static_cast<std::size_t>(ranks));
  for (std::size_t at = 0; at < mean.size(); at += sizeof(T)) {
    T sum = 0, value = 0;
    for (std::size_t place = at; place < all.size(); place += mean.size()) {
      std::memcpy(&value, &all[place], sizeof value);
      sum += value;
    }
    sum /= static_cast<T>(ranks);
    std::memcpy(&mean[at], &sum, sizeof sum);
  }
  return mean;
}

class Writer {
 public:
  Writer(const fs::path& folder, const Snapshot& snapshot, const Program& program, const Plan& plan)
      : folder_(folder), snapshot_(snapshot), program_(program), plan_(plan) {}

  CheckpointFile parameters(int ranks) {
    TensorFile file(folder_, kParametersFile, plan_.real);
    for (const auto* arrays : {&plan_.parameters, &plan_.statistics}) {
      for (const ParameterInfo& info : *arrays) file.declare(info.name, info.shape);
    }
    file.begin();
    add_arena(file, snapshot_.parameters.data());
    std::vector<std::byte> mean = mean_of_ranks(snapshot_.statistics, ranks, plan_.real);
    for (const ParameterInfo& info : plan_.statistics) {
      file.add(within(mean.data(), info, plan_.real));
    }
    return file.finish();
  }

  CheckpointFile optimizer() {
    TensorFile file(folder_, kOptimizerFile, plan_.real);
    for (const auto& [arena, suffix] : arenas()) {
      for (const ParameterInfo& info : plan_.parameters) {
        file.declare(info.name + suffix, info.shape);
      }
    }
    file.begin();
    for (const auto& [arena, suffix] : arenas()) add_arena(file, arena);
    return file.finish();
  }

  CheckpointFile statistics(int ranks) {
    TensorFile file(folder_, kStatisticsFile, plan_.real);
    const std::size_t bytes = plan_.statistics_elements * size_of(plan_.real);
    for (int rank = 0; rank < ranks; ++rank) {
      for (const ParameterInfo& info : plan_.statistics) {
        file.declare(name_of_rank(rank, info.name), info.shape);
      }
    }
    file.begin();
    for (int rank = 0; rank < ranks; ++rank) {
      auto* arena = const_cast<std::byte*>(snapshot_.statistics.data()) +
                    static_cast<std::size_t>(rank) * bytes;
      for (const ParameterInfo& info : plan_.statistics) file.add(within(arena, info, plan_.real));
    }
    return file.finish();
  }

 private:
  std::vector<std::pair<std::byte*, const char*>> arenas() const {
    std::vector<std::pair<std::byte*, const char*>> all;
    if (snapshot_.first.data()) all.emplace_back(snapshot_.first.data(), kFirst);
    if (snapshot_.second.data()) all.emplace_back(snapshot_.second.data(), kSecond);
    return all;
  }

  void add_arena(TensorFile& file, std::byte* arena) {
    for (std::size_t i = 0; i < plan_.parameters.size(); ++i) {
      const auto own = within(arena, plan_.parameters[i], plan_.real);
      canonical_.resize(own.size());
      program_.to_canonical(static_cast<int>(i), own, canonical_.data());
      file.add(canonical_);
    }
  }

  const fs::path& folder_;
  const Snapshot& snapshot_;
  const Program& program_;
  const Plan& plan_;
  std::vector<std::byte> canonical_;
};

// Removes what was not given its name.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const fs::path& final_name)
      : path_(final_name.parent_path() /
              fmt::format(".{}.{}.tmp", final_name.filename().string(), getpid())) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    make_folder(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Error damaged(const std::string& what, const fs::path& file) {
  return {ErrorKind::input, what, file.string(),
          "this checkpoint cannot be used: resume an earlier one"};
}

// The tensors of one file by name; each is taken once.
class TensorsOf {
 public:
  TensorsOf(const fs::path& file, DType real)
      : file_(file), real_(real), bytes_(read_text(file, kMostFileBytes)) {
    for (TensorPlace& place : safetensors_places(bytes_, file.string())) {
      std::string name = place.name;
      places_.emplace(std::move(name), std::move(place));
    }
  }

  // Its values in the plan's real type; a checkpoint of the other type is converted.
  std::vector<std::byte> take(const std::string& name, const ParameterInfo& info) {
    const auto found = places_.find(name);
    if (found == places_.end()) throw damaged("has no tensor " + name, file_);
    const TensorPlace place = std::move(found->second);
    places_.erase(found);
    if (place.shape != info.shape) {
      throw damaged(fmt::format("tensor {} is {}, and the network has {}", name,
                                shape_text(place.shape), shape_text(info.shape)),
                    file_);
    }
    if (place.type != "F32" && place.type != "F64") {
      throw damaged("tensor " + name + " is of type " + place.type, file_);
    }
    const auto* from = bytes_.data() + place.begin;
    std::vector<std::byte> values(place.elements * size_of(real_));
    if (place.type == type_name(real_)) {
      std::memcpy(values.data(), from, values.size());
    } else if (real_ == DType::f64) {
      convert<float, double>(from, values);
    } else {
      convert<double, float>(from, values);
    }
    return values;
  }

  void expect_none_left() const {
    if (places_.empty()) return;
    throw damaged("has a tensor that the network has not: " + places_.begin()->first, file_);
  }

 private:
  template <typename From, typename To>
  static void convert(const char* from, std::vector<std::byte>& values) {
    for (std::size_t i = 0; i < values.size() / sizeof(To); ++i) {
      From value;
      std::memcpy(&value, from + i * sizeof value, sizeof value);
      const To converted = static_cast<To>(value);
      std::memcpy(values.data() + i * sizeof converted, &converted, sizeof converted);
    }
  }

  fs::path file_;
  DType real_;
  std::string bytes_;
  std::map<std::string, TensorPlace> places_;
};

void take_arena(TensorsOf& tensors, const char* suffix, const Program& program, const Plan& plan,
                Memory& arena) {
  const std::size_t bytes = plan.arena_elements * size_of(plan.real);
  if (arena.bytes() < bytes) arena = host_memory(bytes);
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    const ParameterInfo& info = plan.parameters[i];
    const std::vector<std::byte> canonical = tensors.take(info.name + suffix, info);
    program.from_canonical(static_cast<int>(i), canonical,
                           within(arena.data(), info, plan.real).data());
  }
}

}  // namespace

std::vector<std::byte> mean_of_ranks(std::span<const std::byte> all, int ranks, DType real) {
  return real == DType::f64 ? average<double>(all, ranks) : average<float>(all, ranks);
}

void check_replaceable(const fs::path& folder) {
  constexpr std::array kOurs = {kManifestFile, kParametersFile, kOptimizerFile, kStatisticsFile};
  const auto is_ours = [&](const fs::directory_entry& entry) {
    return std::ranges::find(kOurs, entry.path().filename()) != kOurs.end();
  };
  const fs::file_status status = fs::symlink_status(folder);
  if (!fs::exists(status)) return;
  if (fs::is_directory(status) && std::ranges::all_of(fs::directory_iterator(folder), is_ours)) {
    return;
  }
  throw input_error("the run would write its model or checkpoint here, but something else is here",
                    folder.string(), "give another --run-dir, or move it away");
}

std::size_t write_checkpoint(const fs::path& folder, const Snapshot& snapshot,
                             const Program& program, const Plan& plan, CheckpointManifest& manifest,
                             CheckpointContent content) {
  check_replaceable(folder);
  const TemporaryFolder temporary(folder);
  Writer writer(temporary.path(), snapshot, program, plan);
  manifest.files = {writer.parameters(manifest.ranks)};
  if (content == CheckpointContent::everything) {
    if (snapshot.first.data()) manifest.files.push_back(writer.optimizer());
    if (!plan.statistics.empty()) manifest.files.push_back(writer.statistics(manifest.ranks));
  }
  NewFile file(temporary.path() / kManifestFile);
  const std::string text = manifest.json();
  file.write(text.data(), text.size());
  file.finish();
  std::size_t bytes = text.size();
  for (const CheckpointFile& one : manifest.files) bytes += one.bytes;
  replace_folder(temporary.path(), folder);
  return bytes;
}

CheckpointManifest read_manifest(const fs::path& folder) {
  const fs::path file = folder / kManifestFile;
  if (!fs::exists(file)) {
    throw input_error("not a checkpoint: it has no manifest.json", folder.string(),
                      "name the folder of a checkpoint");
  }
  return parse_manifest(read_text(file, kMostManifestBytes), file.string());
}

void verify_checkpoint(const fs::path& folder, const CheckpointManifest& manifest) {
  for (const CheckpointFile& wanted : manifest.files) {
    const fs::path file = folder / wanted.name;
    std::error_code code;
    const std::uintmax_t bytes = fs::file_size(file, code);
    if (code) throw damaged("is missing", file);
    if (bytes != wanted.bytes) {
      throw damaged(fmt::format("has {} bytes of {}", bytes, wanted.bytes), file);
    }
    if (hash_of_file(file) != wanted.hash) throw damaged("was altered: its checksum differs", file);
  }
}

void check_has_state(const fs::path& folder, const CheckpointManifest& manifest, const Plan& plan,
                     int optimizer_arenas) {
  const auto lacks = [&](const char* name) {
    return std::ranges::count(manifest.files, name, &CheckpointFile::name) == 0;
  };
  const bool moments = optimizer_arenas > 0 && lacks(kOptimizerFile);
  if (!moments && (plan.statistics.empty() || !lacks(kStatisticsFile))) return;
  throw usage_error(std::string("the checkpoint has weights only, without ") +
                        (moments ? "the optimizer's state" : "each rank's running averages"),
                    folder.string(),
                    "start a new run from its weights with --weights " + folder.string());
}

void read_checkpoint(const fs::path& folder, const CheckpointManifest& manifest,
                     const Program& program, const Plan& plan, int optimizer_arenas,
                     Snapshot& snapshot) {
  verify_checkpoint(folder, manifest);
  TensorsOf parameters(folder / kParametersFile, plan.real);
  take_arena(parameters, "", program, plan, snapshot.parameters);
  for (const ParameterInfo& info : plan.statistics) (void)parameters.take(info.name, info);
  parameters.expect_none_left();
  if (optimizer_arenas > 0) {
    TensorsOf optimizer(folder / kOptimizerFile, plan.real);
    take_arena(optimizer, kFirst, program, plan, snapshot.first);
    if (optimizer_arenas > 1) take_arena(optimizer, kSecond, program, plan, snapshot.second);
    optimizer.expect_none_left();
  }
  if (plan.statistics.empty()) return;
  TensorsOf statistics(folder / kStatisticsFile, plan.real);
  const std::size_t bytes = plan.statistics_elements * size_of(plan.real);
  snapshot.statistics.assign(static_cast<std::size_t>(manifest.ranks) * bytes, {});
  for (int rank = 0; rank < manifest.ranks; ++rank) {
    std::byte* arena = snapshot.statistics.data() + static_cast<std::size_t>(rank) * bytes;
    for (const ParameterInfo& info : plan.statistics) {
      const auto values = statistics.take(name_of_rank(rank, info.name), info);
      std::memcpy(within(arena, info, plan.real).data(), values.data(), values.size());
    }
  }
  statistics.expect_none_left();
}

}  // namespace paceline
