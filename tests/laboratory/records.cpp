#include "tests/laboratory/records.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/history/series.h"
#include "analysis/statistics/statistics.h"
#include "tests/unit/analysis/samples.h"
#include "tests/unit/results/sample_record.h"

namespace paceline::laboratory {

namespace {

constexpr double kFirstDay = 20454;    // 2026-01-01
constexpr double kModesApart = 0.113;  // 12 %
constexpr double kSecondMode = 0.4;    // of the runs

class Study {
 public:
  Study(const Law& law, const Design& design, const Noise& noise, std::uint32_t seed)
      : law_(law),
        design_(design),
        noise_(noise),
        random_(20261125, Stream::synthetic, seed),
        order_(20261125, Stream::order, seed),
        quality_(20261125, Stream::weights, seed) {
    for (const int size : design.sizes) {
      placement_[size] = noise.placement * random_.normal();
      kept_[size] = random_.normal();
    }
  }

  std::vector<Json> records() {
    for (int k = 0; k < design_.sessions; ++k) add_session(design_.first_session + k);
    return std::move(records_);
  }

 private:
  void add_session(int session) {
    const double shared = noise_.session * random_.normal();
    std::map<int, double> of_point;
    for (const int size : design_.sizes)
      of_point[size] = noise_.point_of_session * random_.normal();
    const int rounds =
        design_.until_precision > 0 ? static_cast<int>(design_.most_runs) : design_.runs;
    std::map<int, std::vector<double>> times;
    for (int k = 0; k < rounds; ++k) {
      const double of_round = shared + noise_.round * random_.normal();
      const std::vector<int> positions = positions_in(k, rounds);
      for (std::size_t i = 0; i < design_.sizes.size(); ++i) {
        const int size = design_.sizes[i];
        if (design_.until_precision > 0 && is_precise(times[size])) continue;
        if (design_.count_runs && k >= design_.count_runs(size, session)) continue;
        const Place place{size, session, design_.first_round + k, positions[i]};
        times[size].push_back(add_run(place, of_round + of_point[size] + placement_[size]));
      }
    }
  }

  // When each size of a round is run.
  std::vector<int> positions_in(int round, int rounds) {
    const auto count = static_cast<int>(design_.sizes.size());
    std::vector<int> positions;
    for (int i = 0; i < count; ++i) {
      positions.push_back(design_.order == Order::sequential ? i * rounds + round
                                                             : round * count + i);
    }
    if (design_.order != Order::shuffled) return positions;
    for (std::size_t i = positions.size() - 1; i > 0; --i) {
      std::swap(positions[i], positions[order_.below(static_cast<std::uint32_t>(i) + 1)]);
    }
    return positions;
  }

  bool is_precise(const std::vector<double>& times) const {
    if (times.size() < design_.first_runs) return false;
    const Estimate mean = geometric_mean(times, Stopping::by_results);
    return mean.interval && mean.interval->high / mean.value - 1 <= design_.until_precision &&
           1 - mean.interval->low / mean.value <= design_.until_precision;
  }

  double deviation(int size) {
    const double r = noise_.resemblance;
    double& kept = kept_[size];
    kept = r * kept + std::sqrt(1 - r * r) * heavy_tail(random_, noise_.tails);
    return noise_.run * kept;
  }

  double add_run(const Place& place, double shared) {
    double logarithm = shared + deviation(place.replicas);
    if (noise_.tails == Tails::two_modes && random_.uniform() < kSecondMode) {
      logarithm += kModesApart;
    }
    bool busy = false;
    if (noise_.busy > 0 && random_.uniform() < noise_.busy) {
      busy = noise_.is_busy_recorded;
      logarithm += std::log(1.3 + 0.7 * random_.uniform());
    }
    if (noise_.hangs > 0 && random_.uniform() < noise_.hangs) logarithm += std::log(noise_.hang);
    if (noise_.event) logarithm += std::log(noise_.event(place));
    if (noise_.recorded_busy && noise_.recorded_busy(place)) busy = true;
    const double factor = std::exp(logarithm);
    Parts parts = law_.parts(place.replicas);
    parts.warm_up *= factor;
    for (double Parts::*part :
         {&Parts::compute, &Parts::input, &Parts::communication, &Parts::launch, &Parts::outside}) {
      parts.*part *= factor;
      if (noise_.parts > 0) parts.*part *= std::exp(noise_.parts * random_.normal());
    }
    records_.push_back(record(place, parts, busy));
    return parts.total();
  }

  double accuracy_at(const Place& place) {
    const double mean = noise_.mean_accuracy ? noise_.mean_accuracy(place) : 0.97;
    const double own = mean + noise_.accuracy * quality_.normal();
    return noise_.diverges > 0 && quality_.uniform() < noise_.diverges ? 0.1 : own;
  }

  // Their quantiles, where the first ones warm up.
  static Json step_seconds(const Parts& parts, double steps) {
    const double each = (parts.in_steps() - parts.warm_up) / steps;
    const double slow = parts.warm_up > 0 ? 3 * each : 1.05 * each;
    return {{"p05", 0.98 * each}, {"p50", each}, {"p95", slow}, {"p99", slow}, {"max", slow}};
  }

  Json record(const Place& place, const Parts& parts, bool busy) {
    const bool weak = law_.scaling == Scaling::weak;
    const int repeat = place.round + 1000 * (place.session - 1);
    Json json = testing::sample_record(
        {.gpus = place.replicas,
         .repeat = repeat,
         .round = place.round,
         .fit_seconds = parts.total(),
         .backend = design_.backend,
         .session = design_.rounds ? session_name(place.session) : std::string()});
    if (law_.scaling == Scaling::strong) {
      json["parameters"].erase("batch_per_replica");
      json["parameters"]["global_batch"] = 64;
    }
    const int steps = static_cast<int>(kLawSeconds);
    if (weak) {
      json["parameters"].erase("epochs");
      json["parameters"]["steps"] = steps;
    }
    const double samples = kLawSamples * (weak ? place.replicas : 1);
    const double made = law_.scaling == Scaling::fixed_epochs
                            ? static_cast<double>(steps) / place.replicas
                            : static_cast<double>(steps);
    json["throughput"] = {{"samples_per_second", samples / parts.in_steps()},
                          {"warmup_steps_excluded", 0},
                          {"samples", samples},
                          {"steps", made}};
    json["timing"]["step_seconds"] = Json::array({step_seconds(parts, made)});
    json["quality"]["test_accuracy"] = accuracy_at(place);
    if (design_.order == Order::sequential) json["round"] = 0;
    for (const auto& [name, value] : design_.parameters.items()) {
      json["parameters"][name] = value;
      json["point"] = fmt::format("{},{}={}", json["point"].get<std::string>(), name,
                                  value.is_string() ? value.get<std::string>() : value.dump());
    }
    for (Json& rank : json["phases"]) {
      rank = {{"input", parts.input},          {"forward", parts.compute / 4},
              {"backward", parts.compute / 2}, {"communication", parts.communication},
              {"update", parts.compute / 4},   {"other", parts.launch},
              {"step", parts.in_steps()}};
    }
    if (!design_.phases) json.erase("phases");
    Json& origin = json["provenance"];
    const int minute = 2 * place.position;
    origin["started_at"] =
        fmt::format("{}T{:02}:{:02}:00Z", date_text(kFirstDay + place.session - 1), 3 + minute / 60,
                    minute % 60);
    std::vector<std::string> hosts(static_cast<std::size_t>(place.replicas),
                                   noise_.host ? noise_.host(place) : "node01");
    if (design_.per_node > 0) {
      for (int rank = 0; rank < place.replicas; ++rank) {
        hosts[static_cast<std::size_t>(rank)] =
            fmt::format("node{:02}", 1 + rank / design_.per_node);
      }
      const int nodes = (place.replicas + design_.per_node - 1) / design_.per_node;
      json["layout"]["nodes"] = json["parameters"]["nodes"] = nodes;
    }
    origin["hosts"] = hosts;
    origin["machine_load"] = {{"busy", busy}};
    if (busy) {
      origin["machine_load"]["why"] = "18 % of the time of its CPUs went to other processes";
    }
    if (noise_.least_mhz) origin["machine_load"]["least_mhz"] = noise_.least_mhz(place);
    if (design_.until_precision > 0) json["flags"]["sequential"] = true;
    return json;
  }

  const Law& law_;
  const Design& design_;
  const Noise& noise_;
  RandomSequence random_, order_, quality_;
  std::map<int, double> placement_, kept_;
  std::vector<Json> records_;
};

}  // namespace

Noise of_runs(double run, bool rounds) {
  return {.run = run, .parts = 0.2 * run, .round = rounds ? 3 * run : 0};
}

double heavy_tail(RandomSequence& random, Tails tails) {
  const double normal = random.normal();
  if (tails == Tails::normal || tails == Tails::two_modes) return normal;
  const int degrees = tails == Tails::student2 ? 2 : 3;
  double squares = 0;
  for (int k = 0; k < degrees; ++k) squares += std::pow(random.normal(), 2);
  return normal / std::sqrt(squares / degrees);
}

std::string session_name(int session) {
  return date_text(kFirstDay + session - 1) + "T0300";
}

std::vector<Json> make_records(const Law& law, const Design& design, const Noise& noise,
                               std::uint32_t seed) {
  return Study(law, design, noise, seed).records();
}

StoreContent make_content(const std::vector<Json>& records) {
  return canonical_content(records);
}

StoreContent make_content(const Law& law, const Design& design, const Noise& noise,
                          std::uint32_t seed) {
  return make_content(make_records(law, design, noise, seed));
}

}  // namespace paceline::laboratory
