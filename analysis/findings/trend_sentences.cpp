#include <fmt/format.h>

#include <algorithm>

#include "analysis/findings/findings.h"
#include "analysis/findings/legend.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

// Trends of one kind and the same sizes; several if they differ in their CPUs.
using Alike = std::vector<const Trend*>;

std::vector<Alike> grouped_by_kind(const std::vector<Trend>& trends) {
  std::vector<Alike> groups;
  for (const Trend& trend : trends) {
    const auto like = [&](const Alike& group) {
      const Trend& other = *group.front();
      return other.kind == trend.kind && other.doubt == trend.doubt &&
             std::ranges::equal(other.sizes, trend.sizes, {}, &SizeOfTrend::gpus,
                                &SizeOfTrend::gpus);
    };
    const auto it = std::find_if(groups.begin(), groups.end(), like);
    (it == groups.end() ? groups.emplace_back() : *it).push_back(&trend);
  }
  return groups;
}

using OfSize = Judged SizeOfTrend::*;

Hull hull_at(const Alike& trends, std::size_t size, OfSize what) {
  Hull hull;
  for (const Trend* trend : trends) hull.add(trend->sizes[size].*what);
  return hull;
}

Hull find_hull(const Alike& trends, OfSize what) {
  Hull hull;
  for (const Trend* trend : trends) {
    for (const SizeOfTrend& size : trend->sizes) hull.add(size.*what);
  }
  return hull;
}

class TrendSentence {
 public:
  TrendSentence(const Study& study, Alike trends)
      : scaling_(study.scaling),
        item_(study.unit.one()),
        causes_(study.causes),
        question_(above_ideal_question(study)),
        trends_(std::move(trends)),
        first_(*trends_.front()),
        what_(compares_rates(study.scaling) ? "what " + added() + " to the time per step"
                                            : "the Karp-Flatt fraction"),
        last_(first_.sizes.size() - 1) {}

  std::string text() const {
    switch (first_.kind) {
      case FindingKind::slower_than_one:
        return (is_of_one() ? "several replicas are slower than one"
                            : "more replicas are slower than the base") +
               std::string(": no law of scaling applies");
      case FindingKind::no_loss:
        return no_loss();
      case FindingKind::hidden_loss:
        return hidden_loss();
      case FindingKind::above_ideal:
        return std::string(is_of_one()
                               ? "N replicas are more than N times as fast as one"
                               : "N times the base's replicas are more than N times as fast") +
               question_;
      case FindingKind::steady:
        return steady();
      case FindingKind::grows:
      case FindingKind::falls:
        return changes();
      case FindingKind::uneven:
        return uneven();
      case FindingKind::unclear:
        return unclear();
      case FindingKind::unjudged:
        return unjudged();
      default:  // one size
        return "";
    }
  }

 private:
  bool is_strong() const { return scaling_ == Scaling::strong; }
  bool is_of_one() const { return first_.base_gpus == 1; }
  std::string added() const {
    return is_of_one() ? "an added replica adds"
                       : fmt::format("{} added replicas add", first_.base_gpus);
  }
  // "each added replica cost 3 % of a step"
  std::string each_added(const std::string& share) const {
    return is_of_one()
               ? fmt::format("each added replica cost {} of a step", share)
               : fmt::format("each {} added replicas cost {} of a step", first_.base_gpus, share);
  }
  int gpus(std::size_t size) const { return first_.sizes[size].gpus; }

  // "2", or "2 (1 node)" and "8 replicas (2 nodes)" where the ends differ in that, too.
  std::string size_text(std::size_t size) const {
    const std::string text = std::to_string(gpus(size)) + (size == last_ ? " replicas" : "");
    const auto same = [&](std::size_t i) {
      const auto nodes = [i](const Trend* trend) { return trend->sizes[i].nodes; };
      return std::ranges::all_of(trends_, [&](const Trend* trend) {
        return nodes(trend) && nodes(trend) == nodes(&first_);
      });
    };
    const bool differs = first_.sizes.front().nodes != first_.sizes.back().nodes;
    if (!differs || !same(0) || !same(last_)) return text;
    return text + " (" + counted(*first_.sizes[size].nodes, "node") + ")";
  }

  std::string sizes() const {
    const auto text = [](const SizeOfTrend& size) { return std::to_string(size.gpus); };
    return join(mapped(first_.sizes, text), ", ");
  }

  // "0.181", of rates, which have no Karp-Flatt fraction by name, "18 %".
  std::string shown(const Hull& hull) const {
    return compares_rates(scaling_) ? percent_text(hull) : fractions_text(hull);
  }
  std::string at(std::size_t size) const {
    return shown(hull_at(trends_, size, &SizeOfTrend::fraction));
  }

  // ", which may hide up to 89.6 / 3.9 points of efficiency on 2, 4 replicas": the upper ends of
  // intervals, but for sizes that exclude any loss.
  std::string bounds() const {
    constexpr double kShown = 0.0005;
    std::vector<std::string> sizes, points;
    for (std::size_t i = 0; i <= last_; ++i) {
      const Hull lost = hull_at(trends_, i, &SizeOfTrend::lost);
      if (!lost.is_known || lost.intervals.high < kShown) continue;
      sizes.push_back(std::to_string(gpus(i)));
      points.push_back(fmt::format("{:.1f}", 100 * lost.intervals.high));
    }
    if (sizes.empty()) return "";
    return fmt::format(", which may hide up to {} points of efficiency on {} replicas",
                       join(points, " / "), join(sizes, ", "));
  }

  std::string no_loss() const { return "no loss beyond the noise" + bounds(); }

  // About the largest size at which a part is a loss beyond the noise.
  std::string hidden_loss() const {
    for (std::size_t i = last_ + 1; i-- > 0;) {
      for (const Trend* trend : trends_) {
        // What the phases say of a size, where they cover what is compared.
        const auto& parts = trend->sizes[i].parts;
        const auto losses = parts ? parts->certain_losses(last_ + 1) : std::vector<Loss>();
        if (!losses.empty() && causes_.are_named(losses.front().share.value())) {
          return hidden_loss(*parts, losses.front(), gpus(i));
        }
      }
    }
    return no_loss();
  }

  std::string hidden_loss(const LossParts& parts, const Loss& loss, int replicas) const {
    const auto gains = parts.certain_gains(last_ + 1);
    const std::string text = fmt::format("{} costs {} points of efficiency on {} replicas",
                                         loss.label, points_text(loss.share), replicas);
    if (gains.empty()) {
      return text + "; in sum no loss is beyond the noise" + bounds();
    }
    const Loss& gain = gains.front();
    if (gain.label != "compute") {
      return text + fmt::format("; {} takes {} points less than in the base, which hides it{}",
                                gain.label, points_text(gain.share, true), above_ideal());
    }
    const Judged longer = parts.compute_ratio().transformed([](double ratio) { return 1 / ratio; });
    return text +
           longer.match(
               [this](const Known& ratio) {
                 return fmt::format(
                     "; the base takes {:.2f} [{:.2f}, {:.2f}] times as long to compute a {}, "
                     "which hides it",
                     ratio.value, ratio.interval.low, ratio.interval.high, item_);
               },
               [](double, const WeakEvidence&) { return std::string(); }) +
           above_ideal();
  }

  std::string above_ideal() const {
    std::vector<std::string> above;
    for (std::size_t i = 0; i <= last_; ++i) {
      const bool all = std::ranges::all_of(
          trends_, [i](const Trend* trend) { return trend->sizes[i].lost.is_below(0); });
      if (all) above.push_back(std::to_string(gpus(i)));
    }
    if (above.empty()) return "";
    return fmt::format(": {} replicas are above ideal", join(above, ", "));
  }

  // An analogy: what a step costs is not known from the times of runs.
  std::string steady() const {
    const Hull hull = find_hull(trends_, &SizeOfTrend::fraction);
    const std::string share = percent_text(hull);
    std::string text;
    if (is_strong()) {
      text = fmt::format("the loss is as if {} of the base's time were not divided among replicas",
                         share);
    } else {
      text = "the loss grows as if " + each_added(share);
    }
    if (compares_rates(scaling_)) return text;
    return text + fmt::format(" (Karp-Flatt fraction steady, {})", fractions_text(hull));
  }

  std::string changes() const {
    const bool grows = first_.kind == FindingKind::grows;
    std::string text;
    if (is_strong()) {
      const auto share = [&](std::size_t size) {
        return percent_text(hull_at(trends_, size, &SizeOfTrend::fraction));
      };
      text = fmt::format(
          "the loss is as if the undivided share of the base's time {} from {} on {} to {} on {}",
          grows ? "grew" : "fell", share(0), size_text(0), share(last_), size_text(last_));
    } else {
      text = fmt::format(
          "replica-seconds per {} differ from the base's by {} on {} and by {} on {}: {} than in "
          "proportion to the replicas added",
          item_, percent_text(hull_at(trends_, 0, &SizeOfTrend::added)), size_text(0),
          percent_text(hull_at(trends_, last_, &SizeOfTrend::added)), size_text(last_),
          grows ? "more" : "less");
    }
    if (!compares_rates(scaling_)) {
      text += fmt::format(" (Karp-Flatt {} to {})", at(0), at(last_));
    }
    if (!grows || first_.has_phases || !causes_.are_open) return text;
    return text + fmt::format(
                      "; look at communication, imbalance and shared memory{}, and whether "
                      "the base is slow",
                      is_strong() ? ", at small batches" : "");
  }

  std::string uneven() const {
    std::vector<std::string> values;
    for (std::size_t i = 0; i <= last_; ++i) values.push_back(at(i));
    return fmt::format(
        "{} changes at sizes between, but not from the smallest to the largest: {} on {} replicas",
        what_, join(values, " / "), sizes());
  }

  std::string unclear() const {
    Hull change;
    for (const Trend* trend : trends_) change.add(trend->change);
    std::string interval;
    if (change.is_known) {
      const auto& [low, high] = change.intervals;
      const int digits = fraction_digits(std::max(std::abs(low), std::abs(high)));
      interval = compares_rates(scaling_)
                     ? fmt::format(", a change of {:+.1f} % to {:+.1f} %", 100 * low, 100 * high)
                     : fmt::format(", a change of {:+.{}f} to {:+.{}f}", low, digits, high, digits);
    }
    return fmt::format("noise hides whether {} changes with the replicas: {} on {}, {} on {}{}",
                       what_, at(0), gpus(0), at(last_), gpus(last_), interval);
  }

  // The numbers, and nothing of what they mean.
  std::string unjudged() const {
    const std::string rows = "rows of " + first_.doubt.text() + " cannot show whether that is ";
    if (first_.looks_steady && std::ranges::all_of(trends_, &Trend::looks_steady)) {
      const Hull hull = find_hull(trends_, &SizeOfTrend::fraction);
      const std::string share = percent_text(hull);
      return fmt::format("{} is {}, as if {}; {}so at all sizes", what_, shown(hull),
                         is_strong() ? share + " of the base's time were not divided among replicas"
                                     : each_added(share),
                         rows);
    }
    return fmt::format("{} goes from {} on {} to {} on {} replicas: {}more than noise", what_,
                       at(0), gpus(0), at(last_), gpus(last_), rows);
  }

  Scaling scaling_;
  std::string item_;  // "sample"
  Causes causes_;
  std::string question_;
  Alike trends_;
  const Trend& first_;
  std::string what_;
  std::size_t last_;  // the index of the largest size
};

std::string cpus_of_group(const Alike& trends) {
  std::vector<std::string> cpus = mapped(trends, &Trend::cpus);
  std::erase(cpus, "");
  return cpus.empty() ? "" : " (" + join(cpus, "; ") + ")";
}

}  // namespace

std::vector<Finding> trend_findings(const Study& study, const ScalingSeries& series,
                                    const std::vector<Trend>& trends) {
  const std::vector<Alike> groups = grouped_by_kind(trends);
  std::vector<Finding> found;
  for (const Alike& group : groups) {
    const std::string text = TrendSentence(study, group).text();
    if (text.empty()) continue;
    std::string name = series.name + (groups.size() > 1 ? cpus_of_group(group) : "");
    if (!name.empty()) name += ": ";
    found.push_back({group.front()->kind, name + text});
  }
  return found;
}

std::vector<Finding> phases_findings(const ScalingSeries& series, const std::vector<Trend>& trends,
                                     const Causes& causes) {
  std::vector<Finding> found;
  for (const Trend& trend : trends) {
    if (trend.kind == FindingKind::hidden_loss) continue;
    const auto is_distinct = [&](const SizeOfTrend& size) {
      return size.parts && causes.are_named(size.parts->all().value()) &&
             (size.parts->all().is_above(0) || size.parts->all().is_below(0));
    };
    const auto largest = std::find_if(trend.sizes.rbegin(), trend.sizes.rend(), is_distinct);
    if (largest == trend.sizes.rend()) continue;
    const LossParts& parts = *largest->parts;
    const bool gained = parts.all().value() < 0;
    std::string name = series.name;
    if (trends.size() > 1 && !trend.cpus.empty()) name += " (" + trend.cpus + ")";
    found.push_back({FindingKind::phases,
                     fmt::format("{}{} replicas {} {} points of efficiency: {}",
                                 name.empty() ? "" : name + ": ", largest->gpus,
                                 gained ? "gain" : "lose", points_text(parts.all(), gained),
                                 parts_text(parts.parts(), parts.all().value(), gained)),
                     std::abs(parts.all().value())});
  }
  return found;
}

}  // namespace paceline
