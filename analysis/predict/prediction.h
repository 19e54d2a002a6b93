// Predicts sizes that were not run, for each series of a study: one machine, one backend, one set
// of parameters.
//
// There are two predictors: laws of scaling (laws.h) and the replay of a step (replay.h). Each
// predicts the largest measured size from the smaller ones. The one that misses it by less predicts
// the sizes asked for; a what-if is the replay's alone.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/document/document.h"
#include "analysis/predict/laws.h"
#include "analysis/predict/network.h"
#include "analysis/study/study.h"

namespace paceline {

enum class PredictorChoice { better, laws, replay };

struct PredictOptions {
  std::vector<int> gpus;     // sizes to predict, each once, in increasing order
  std::optional<int> up_to;  // larger measured sizes are not used, as if they had not been run
  PredictorChoice predictor = PredictorChoice::better;
  std::vector<Selection> only;
  std::optional<LinkNetwork> network;  // described links, for the replay
  std::string what_if;                 // "bucket_mb=32,links=2x"; empty: as measured
};

// How a predictor did at the largest measured size, told only the smaller ones.
struct HeldOut {
  std::vector<int> fitted;
  int gpus = 1;
  double error = 0;  // predicted over measured value, minus 1
};

struct PredictorResult {
  std::string name;     // "laws", "replay"
  std::string why_not;  // a sentence, if it cannot predict
  std::optional<HeldOut> held_out;
  std::string no_held_out;  // why it is empty, if the predictor can predict
  std::vector<std::string> notes;
};

struct SizeValue {
  int gpus = 1;
  std::optional<int> nodes;
  bool is_predicted = false;
  // Samples per second or seconds: 95 % of the mean, or 90 % of a prediction. That reaches to what
  // no measured size shows: that no replica beyond the largest helps. It is empty where nothing
  // could be held out, or a link is used that was never measured.
  Estimate value;
  // The level that no measured size crosses: "node", or "node?" if that is not known; may be empty.
  std::string beyond;
  // For a predicted size: its values by each of Prediction::predictors and Prediction::laws, with
  // the interval that holds if nothing new begins beyond the measured sizes.
  std::vector<std::optional<Estimate>> by_predictor = {};
  std::vector<double> by_law = {};

  bool crosses_unmeasured_link() const { return !beyond.empty() && !beyond.ends_with('?'); }
};

struct Prediction {
  std::string title;              // of the study, and the series if there are several
  std::set<std::string> studies;  // see study_names()
  std::string kind;    // of the rows that are not predicted: "measured", "published", "imported"
  bool rates = false;  // values are rates; else fit seconds
  Unit unit;           // of rates
  bool replicas_are_cores = false;
  Scaling scaling = Scaling::unknown;
  std::vector<SizeValue> sizes;  // in increasing order
  std::vector<PredictorResult> predictors;
  std::size_t used = 0;         // index of the predictor of the sizes
  std::vector<LawWeight> laws;  // if laws are possible
  std::string what_if;          // what differs from the measured runs; may be empty
  std::vector<std::string> warnings, notes;

  const PredictorResult& predictor() const { return predictors[used]; }
};

// One for each series with enough sizes. Throws input if there is none, saying why, and usage for a
// what-if that cannot be parsed or that only laws could predict.
std::vector<Prediction> predict(const StoreContent& content, const PredictOptions& options);

// A table and a plot of each. A row says whether it was measured. Columns for programs: kind
// (measured, predicted), gpus, nodes, fit_seconds or samples_per_second with its interval, speed_up
// and efficiency (against the smallest size that was run), predictor, held_out_error (of what is
// predicted, a share), held_out_gpus, beyond. `notes`: about the records.
Document prediction_document(const std::vector<Prediction>& predictions,
                             const std::vector<std::string>& notes = {});

// Seconds or rate over replicas on logarithmic axes: measured, predicted (dashed), ideal.
Plot prediction_plot(const Prediction& prediction);

}  // namespace paceline
