#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/gate/judge.h"
#include "analysis/gate/side.h"
#include "analysis/study/study.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "results/expected_runs.h"
#include "results/store.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

// The measured runs that stand in the side's tables.
Side measured_side(const ReportSide& side, const Side& other = {}) {
  std::set<std::string> shown;
  for (const Study& study : side.studies) {
    for (const Row& row : study.rows) {
      for (const Run& run : row.runs) shown.insert(run.where);
    }
  }
  StoreContent content;
  for (const Record& record : side.content.records) {
    if (record->kind == "measured" && shown.contains(record.where())) {
      content.records.push_back(record);
    }
  }
  return load_side(side.name, content, other);
}

std::vector<Machine> kinds_in(const ReportSide& side) {
  std::vector<Machine> machines;
  for (const Study& study : side.studies) {
    for (const Row& row : study.rows) {
      for (const Run& run : row.runs) {
        if (run.kind == "measured") machines.push_back(run.machine);
      }
    }
  }
  return kinds_of_machines(std::move(machines));
}

std::string machines_text(const std::vector<Machine>& machines) {
  std::vector<std::string> texts;
  for (const Machine& machine : machines) texts.push_back(machine.text());
  return join(texts, " and ");
}

// What the interval of a ratio rests on, and what it leaves out.
std::string describe_cover(Evidence evidence) {
  switch (evidence) {
    case Evidence::paired:
      return "interval from rounds: of runs that both made in the same round of a session";
    case Evidence::sessions:
      return "interval from sessions: it covers how sessions differ";
    case Evidence::runs:
    case Evidence::apart:
    case Evidence::none:
      break;
  }
  return fmt::format(
      "interval from runs: it covers how runs within these sessions differ, not how sessions do, "
      "which may be more; {} sessions or more of the first study would decide",
      kFewestSessions);
}

class SideTable {
 public:
  SideTable(const ReportSide& first, const ReportSide& second)
      : first_(first),
        second_(second),
        before_(measured_side(first)),
        now_(measured_side(second, before_)) {}

  std::optional<Table> make() {
    find_points();
    if (points_.empty()) return std::nullopt;
    const Judgement judgement = judged();
    describe();
    std::set<Evidence> evidence;
    for (const Check& check : judgement.checks) {
      if (check.evidence == Evidence::none) {
        table_.notes.push_back(fmt::format("{}: {}", check.subject, check.reason));
        continue;
      }
      add(check);
      if (check.interval) evidence.insert(check.evidence);
    }
    sum_up();
    add_others();
    std::vector<std::string> notes = {
        "ratio: the time of the second over that of the first, of fit seconds or of seconds a "
        "sample; above 1 the second is slower"};
    for (const Evidence each : evidence) notes.push_back(describe_cover(each));
    notes.insert(notes.end(), judgement.notes.begin(), judgement.notes.end());
    table_.notes.insert(table_.notes.begin(), notes.begin(), notes.end());
    return std::move(table_);
  }

 private:
  void find_points() {
    if (before_.subjects.empty() || now_.subjects.empty()) return;
    const Matches matches = match_subjects(before_, now_);
    for (std::size_t i = 0; i < matches.of_baseline.size(); ++i) {
      if (!matches.of_baseline[i]) continue;
      const Subject &before = before_.subjects[i], &now = now_.subjects[*matches.of_baseline[i]];
      points_[before.name] = {&before, &now};
    }
  }

  // The gate takes it for an error that no point of the first has a run that counts.
  Judgement judged() const {
    GateOptions options;
    options.quantities = {Quantity::time};
    const bool any = std::any_of(points_.begin(), points_.end(),
                                 [](const auto& point) { return point.second.first->runs > 0; });
    return any ? judge(before_, now_, options) : Judgement{};
  }

  void describe() {
    table_.is_comparison = true;
    table_.title = fmt::format("{} (second) against {} (first)", second_.name, first_.name);
    table_.base = first_.name;
    table_.columns = {{"point", "point", true}, {"gpus", "gpus", false, true}};
    for (const char* which : {"first", "second"}) {
      for (const char* what : {"sessions", "runs", "seconds"}) {
        Column column{fmt::format("{}_{}", which, what), fmt::format("{}\n{}", which, what)};
        column.is_whole = column.key.find("seconds") == std::string::npos;
        table_.columns.push_back(column);
      }
    }
    table_.columns.push_back({"ratio", "ratio", false, false, true});
    table_.columns.push_back({"interval_from", "interval\nfrom", true});
    const auto before = kinds_in(first_), now = kinds_in(second_);
    const bool unlike = std::any_of(now.begin(), now.end(), [&](const Machine& machine) {
      return std::none_of(before.begin(), before.end(),
                          [&](const Machine& known) { return alike(known, machine); });
    });
    if (unlike && !before.empty()) {
      table_.warnings.push_back(fmt::format(
          "the sides ran on different machines: {} (first), {} (second); the ratios are "
          "of the machines, too",
          machines_text(before), machines_text(now)));
    }
    for (const ReportSide* side : {&first_, &second_}) {
      for (const Study& study : side->studies) {
        for (const std::string& warning : study.warnings) {
          table_.warnings.push_back(fmt::format("{}: {}", side->name, warning));
        }
      }
    }
  }

  void add(const Check& check) {
    Estimate ratio{1 + *check.change, check.interval,
                   std::min(check.baseline_runs, check.current_runs)};
    if (ratio.interval) {
      ratio.interval = Interval{1 + ratio.interval->low, 1 + ratio.interval->high};
    }
    add_row(
        check.subject, false,
        {count(check.baseline_sessions), count(check.baseline_runs),
         measured_cell(Estimate{*check.baseline, {}, check.baseline_runs}),
         count(check.current_sessions), count(check.current_runs),
         measured_cell(Estimate{*check.current, {}, check.current_runs}), estimate_cell(ratio, 3),
         Cell{!ratio.interval                        ? ""
              : check.evidence == Evidence::paired   ? "rounds"
              : check.evidence == Evidence::sessions ? "sessions"
                                                     : "runs",
              {},
              {}}});
    if (!ratio.interval) return;
    ++with_interval_;
    Counts& counts = check.evidence == Evidence::apart ? apart_ : decided_;
    ++counts.points;
    if (check.adjusted_p < kSignificance) ++(*check.change > 0 ? counts.slower : counts.faster);
  }

  static Cell count(std::size_t number) {
    return {std::to_string(number), static_cast<double>(number), {}};
  }

  // `cells`: those after the point and its GPUs.
  void add_row(const std::string& point, bool is_gap, const std::vector<Cell>& cells) {
    const auto gpus = points_.at(point).first->parameters.real("gpus");
    std::vector<Cell> row = {{point, {}, {}},
                             gpus ? Cell{fmt::format("{}", *gpus), gpus, {}} : Cell{}};
    row.insert(row.end(), cells.begin(), cells.end());
    table_.rows.push_back(std::move(row));
    table_.is_gap.push_back(is_gap);
    table_.row_names.push_back(point);
    table_.commands.emplace_back();
    table_.records.emplace_back();
  }

  // Points that both have and of which no ratio can be given.
  void add_others() {
    const std::set<std::string> compared(table_.row_names.begin(), table_.row_names.end());
    for (const auto& [name, sides] : points_) {
      if (compared.contains(name)) continue;
      const auto& [before, now] = sides;
      add_row(name, true, {{}, count(before->runs), {}, {}, count(now->runs), {}, {}, {}});
    }
  }

  void sum_up() {
    if (table_.rows.empty()) {
      table_.findings.push_back("no point has runs on both sides that can be compared");
      return;
    }
    if (with_interval_ == 0) {
      table_.findings.push_back("no ratio has an interval: run repeats on both sides");
      return;
    }
    if (decided_.points > 0) {
      table_.findings.push_back(fmt::format(
          "of {}, the second is slower beyond the noise in {}, faster in {} (p < {}, "
          "Holm-adjusted over all points)",
          points_text(decided_.points), decided_.slower, decided_.faster, kSignificance));
    }
    if (apart_.points == 0) return;
    const std::size_t differing = apart_.slower + apart_.faster;
    const std::string of = points_text(apart_.points);
    if (differing == 0) {
      table_.findings.push_back(
          fmt::format("of {}, none differs by more than runs of one session do", of));
      return;
    }
    table_.findings.push_back(fmt::format(
        "of {}, {} differ{} by more than runs of one session do ({} slower, {} faster); whether by "
        "more than sessions do is not known: {} sessions of the first would decide",
        of, differing, differing == 1 ? "s" : "", apart_.slower, apart_.faster, kFewestSessions));
  }

  static std::string points_text(std::size_t points) { return counted(points, "point"); }

  struct Counts {
    std::size_t points = 0, slower = 0, faster = 0;
  };

  const ReportSide& first_;
  const ReportSide& second_;
  const Side before_, now_;
  std::map<std::string, std::pair<const Subject*, const Subject*>> points_;  // by the first's name
  Table table_;
  Counts decided_, apart_;  // by sessions or shared rounds; of too few sessions to tell
  std::size_t with_interval_ = 0;
};

bool is_measured(const ReportSide& side) {
  const auto& records = side.content.records;
  return std::any_of(records.begin(), records.end(), [](const Record& record) {
    return record->kind == "measured" && record->completed();
  });
}

// Each folder is a side; records that are named one by one are one together.
std::vector<std::pair<std::string, std::vector<fs::path>>> sides_named(
    const std::vector<fs::path>& studies, bool anonymous) {
  std::vector<std::pair<std::string, std::vector<fs::path>>> sides;
  std::vector<fs::path> files;
  for (const fs::path& study : studies) {
    std::error_code none;
    if (fs::is_directory(study, none)) {
      sides.push_back({study.string(), {study}});
    } else {
      files.push_back(study);
    }
  }
  if (!files.empty()) sides.push_back({"the records named", files});
  if (anonymous) {
    for (std::size_t i = 0; i < sides.size(); ++i) sides[i].first = fmt::format("study {}", i + 1);
  }
  if (sides.size() < 2) sides.clear();
  return sides;
}

// Nothing where it cannot stand beside others; tables of all then say why.
std::optional<ReportSide> side_at(const std::string& name, const std::vector<fs::path>& places,
                                  const std::vector<Selection>& only, bool hidden, Sides& found) {
  ReportSide side{name, load_stores(places), {}};
  side.plans = load_plans(places, side.content);
  if (hidden) side.content = anonymous(std::move(side.content));
  const std::size_t collectives = std::erase_if(
      side.content.records, [](const Record& record) { return record->is_collective(); });
  found.has_collectives = found.has_collectives || collectives > 0;
  try {
    side.studies = make_studies(side.content, only, side.plans);
  } catch (const Error&) {
    return std::nullopt;
  }
  return side;
}

}  // namespace

Sides load_sides(const std::vector<fs::path>& studies, const std::vector<Selection>& only,
                 bool anonymous) {
  Sides found;
  for (const auto& [name, places] : sides_named(studies, anonymous)) {
    std::optional<ReportSide> side = side_at(name, places, only, anonymous, found);
    if (!side) return {{}, {}, found.has_collectives};
    found.sides.push_back(std::move(*side));
  }
  const auto first = std::find_if(found.sides.begin(), found.sides.end(), is_measured);
  for (auto side = first; side != found.sides.end(); ++side) {
    auto table = side == first ? std::nullopt : compare_sides(*first, *side);
    if (table) found.comparisons.push_back(std::move(*table));
  }
  return found;
}

std::optional<Table> compare_sides(const ReportSide& first, const ReportSide& second) {
  return SideTable(first, second).make();
}

}  // namespace paceline
