#include <algorithm>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/core/text.h"
#include "engine/input/formats/source.h"
#include "engine/input/loading/dataset.h"
#include "run/outcome_record.h"
#include "run/plan_study.h"

namespace paceline {

namespace {

[[noreturn]] void refuse_data(const std::string& workload, const char* option) {
  throw usage_error("workload " + workload + " generates its own samples", option, "leave it out");
}

void log_lost_records(const DatasetPair& data, RunFacts& facts) {
  std::vector<std::string> texts;
  for (const Dataset* set : {&data.train, &data.test}) {
    for (const LostRecords& lost : set->store->lost()) {
      facts.lost.push_back(lost);
      texts.push_back(lost.text());
    }
  }
  if (!texts.empty()) log::warning("skipping damaged records: {}", join(texts, "; "));
}

std::filesystem::path stage(const std::filesystem::path& folder, const InputPlaces& places,
                            const ProcessRank& process, RunFacts& facts) {
  const double start = now_seconds();
  const StagedData staged = stage_data(folder, places.stage, process.local_rank == 0);
  facts.stage_seconds = now_seconds() - start;
  facts.staged_bytes = staged.bytes;
  facts.staged_before = !staged.copied;
  log::info("{} {} in {}, in {}", format_bytes(static_cast<double>(staged.bytes)),
            staged.copied ? "staged" : "were staged before, and checked", staged.folder.string(),
            format_seconds(facts.stage_seconds));
  return staged.folder;
}

DatasetPair load_files(const RunRequest& request, const Workload& workload, const Network& network,
                       const ProcessRank& process, RunFacts& facts) {
  const InputPlaces& places = request.places;
  std::filesystem::path folder;  // none where the workload makes its samples
  if (!workload.data_set.empty()) {
    folder = find_data_folder(workload.data_set, places.data);
    facts.resident_share = resident_share(folder);
    facts.synthetic = has_synthetic_mark(folder);
    if (!places.stage.empty() && !std::filesystem::is_directory(folder)) {
      throw usage_error(folder.string() + " is one file", "--stage",
                        "leave it out, or give a folder");
    }
    if (!places.stage.empty()) folder = stage(folder, places, process, facts);
  } else if (!places.data.empty() || !places.stage.empty()) {
    refuse_data(workload.name, places.data.empty() ? "--stage" : "--data");
  }
  facts.input = input_options(request.config.input, places, request.config.place.layout);
  DatasetPair data = network.reads_tokens()
                         ? load_tokens(folder, network.sample().height - 1, network.classes())
                         : workload.load(folder, facts.input);
  facts.decodes = data.train.store != nullptr;
  if (facts.decodes) {
    log_lost_records(data, facts);
  } else {
    check_samples_in_memory(request.config.input, places);
  }
  return data;
}

}  // namespace

void check_data_is_read(const std::string& root, const std::string& name,
                        const std::vector<PlannedPoint>& points) {
  if (root.empty()) return;
  if (name == kCommandWorkload) {
    throw usage_error("a program of your own reads what its command names", "--data",
                      "name the data there, and leave this out");
  }
  const Workload workload = make_workload(name);
  if (workload.data_set.empty()) refuse_data(name, "--data");
  const std::string usual = workload.defaults.text("input").value_or("data");
  const bool is_read = std::ranges::any_of(points, [&](const PlannedPoint& each) {
    return each.parameters.text("input").value_or(usual) != "synthetic";
  });
  if (is_read) return;
  throw usage_error("the input is synthetic, so no data set is read", "--data",
                    "leave it out, or add --set input=data");
}

void check_data_root(const std::string& root, const std::string& workload,
                     const std::vector<PlannedPoint>& points) {
  check_data_is_read(root, workload, points);
  if (root.empty()) return;
  const std::string set = make_workload(workload).data_set;
  if (find_data_set(set, root)) return;
  throw input_error(fmt::format("it is no data set, and holds no folder {}", set), "--data " + root,
                    "name the data set or the folder that holds it");
}

DatasetPair load_run_data(const RunRequest& request, const Workload& workload,
                          const Network& network, const ProcessRank& process, RunFacts& facts) {
  const InputConfig& input = request.config.input;
  facts.synthetic = input.synthetic;
  facts.provenance.data_set = facts.synthetic             ? "synthetic"
                              : workload.data_set.empty() ? workload.name
                                                          : workload.data_set;
  DatasetPair data;
  if (facts.synthetic) {
    const Shape shape = network.sample();
    const std::size_t train = workload.train_samples, test = workload.test_samples;
    const std::uint64_t seed = request.config.train.seed;
    data = network.reads_tokens()
               ? synthetic_tokens(shape.height - 1, network.classes(), train, test, seed)
               : synthetic_images(shape.height, shape.width, shape.channels, network.classes(),
                                  train, test, seed);
  } else {
    data = load_files(request, workload, network, process, facts);
  }
  limit_samples(data.train, input.train_limit);
  limit_samples(data.test, input.test_limit);
  facts.provenance.data_hash = data.hash;
  return data;
}

}  // namespace paceline
