#include "analysis/gate/report_sides.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/document/columns.h"
#include "analysis/gate/judge.h"
#include "analysis/gate/side.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "results/expected_runs.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

// The measured runs that stand in the side's tables.
Side measured_side(const ReportSide& side, const Side& other = {}) {
  std::vector<Run> runs;
  for (const Study& study : side.studies) {
    for (const Row& row : study.rows) {
      std::ranges::copy_if(row.runs, std::back_inserter(runs),
                           [](const Run& run) { return run->kind == "measured"; });
    }
  }
  return make_side(side.name, std::move(runs), other);
}

std::vector<Machine> kinds_in(const ReportSide& side) {
  std::vector<Machine> machines;
  for (const Study& study : side.studies) {
    for (const Row& row : study.rows) {
      for (const Run& run : row.runs) {
        if (run->kind == "measured") machines.push_back(run.machine);
      }
    }
  }
  return kinds_of_machines(std::move(machines));
}

std::string machines_text(const std::vector<Machine>& machines) {
  return join(mapped(machines, &Machine::text), " and ");
}

// What the interval of a ratio rests on, and what it leaves out.
std::string describe_cover(Replication evidence) {
  switch (evidence) {
    case Replication::paired:
      return "interval from rounds: it compares runs of the same round of a session";
    case Replication::sessions:
      return "interval from sessions: it covers how sessions differ";
    case Replication::runs:
    case Replication::apart:
    case Replication::none:
      break;
  }
  return fmt::format(
      "interval from runs: it does not cover how sessions differ, which may be more; {} sessions "
      "or more of the first study would",
      kFewestSessions);
}

// A point that both sides have; without a check, one side has no valid runs.
struct SharedPoint {
  const Subject* before = nullptr;
  const Subject* now = nullptr;
  const Check* check = nullptr;

  std::optional<Estimate> ratio() const {
    if (!check) return std::nullopt;
    const Estimate change{*check->change, check->interval,
                          std::min(check->baseline_runs, check->current_runs)};
    return transformed(change, [](double share) { return 1 + share; });
  }

  std::string origin_of_interval() const {
    if (!check || !check->interval) return "";
    return check->evidence == Replication::paired     ? "rounds"
           : check->evidence == Replication::sessions ? "sessions"
                                                      : "runs";
  }
};

// Beyond the noise, and not only without the runs that stand out.
bool differs(const Check& check) {
  const StandingOut& out = check.standing_out;
  const bool is_turned = !out.text.empty() && (out.change > 0) != (*check.change > 0);
  return check.adjusted_p < kSignificance && !is_turned;
}

// Runs of too few sessions do not tell.
const char* beside_first(const Check* check) {
  if (!check || !check->interval) return "";
  const bool is_known = check->evidence != Replication::apart && differs(*check);
  if (!is_known) return "cannot tell";
  return *check->change > 0 ? "slower" : "faster";
}

Table make_rows(const std::vector<SharedPoint>& points) {
  using Row = const SharedPoint&;
  const auto times = [](std::optional<double> Check::*value) {
    return [=](Row r) {
      if (!r.check || !(r.check->*value)) return Cell{};
      const double cost = *(r.check->*value);
      if (const auto& unit = r.check->unit)
        return Cell{unit->text(1 / cost), unit->shown(1 / cost)};
      return measured_cell(Estimate{cost, {}, 2});
    };
  };
  const bool has_rates = std::ranges::any_of(
      points, [](const SharedPoint& point) { return point.check && point.check->unit; });
  const std::string key = has_rates ? "" : "_seconds", heading = has_rates ? "" : "\nseconds";
  const auto sessions = [](std::size_t Check::*count) {
    return [=](Row r) {
      return r.check ? std::optional<std::int64_t>(r.check->*count) : std::nullopt;
    };
  };
  return ColumnsOf<SharedPoint>()
      .text("point", "point", [](Row r) { return r.before->name; })
      .real("first" + key, "first" + heading, times(&Check::baseline))
      .real("second" + key, "second" + heading, times(&Check::current))
      .interval("ratio", "ratio",
                [](Row r) { return r.ratio() ? estimate_cell(*r.ratio(), 3) : Cell{}; })
      .essential()
      .text("verdict", "second is", [](Row r) { return beside_first(r.check); })
      .text("interval_from", "interval\nfrom", &SharedPoint::origin_of_interval)
      .whole("gpus", "gpus", [](Row r) { return r.before->parameters.integer("gpus"); })
      .layout()
      .whole("first_runs", "first\nruns",
             [](Row r) { return r.check ? r.check->baseline_runs : r.before->runs; })
      .layout()
      .whole("second_runs", "second\nruns",
             [](Row r) { return r.check ? r.check->current_runs : r.now->runs; })
      .layout()
      .whole("first_sessions", "first\nsessions", sessions(&Check::baseline_sessions))
      .layout()
      .whole("second_sessions", "second\nsessions", sessions(&Check::current_sessions))
      .layout()
      .table(points);
}

// Where a program of the user's own is known: its studies, and how it is started, which tables
// leave out ("train@3f9a12cd3f9a12cd").
std::set<std::string> places_of_program(const ReportSide& side, const std::string& name) {
  std::set<std::string> places;
  for (const Record& record : side.content.records) {
    const auto tag = record->parameters.text("program");
    if (tag && name_of_program(*tag) == name) places.insert({*tag, record->study});
  }
  return places;
}

// Two train.py of different studies may have nothing but their name in common.
void drop_unrelated_programs(Side& now, const ReportSide& second, const ReportSide& first) {
  std::erase_if(now.subjects, [&](const Subject& subject) {
    const auto tag = subject.parameters.text("program");
    const std::string name = name_of_program(tag.value_or(""));
    return tag && !have_common(places_of_program(first, name), places_of_program(second, name));
  });
}

class SideComparison {
 public:
  SideComparison(const ReportSide& first, const ReportSide& second)
      : first_(first),
        second_(second),
        before_(measured_side(first)),
        now_(measured_side(second, before_)) {
    drop_unrelated_programs(now_, second_, first_);
  }

  std::optional<Section> make() {
    std::map<std::string, SharedPoint> points = find_points();  // by the first's name
    if (points.empty()) return std::nullopt;
    const Judgement judgement = judged(points);
    section_.title = fmt::format("{} (second) against {} (first)", second_.name, first_.name);
    section_.facts = make_facts({{"base", first_.name}});
    add_warnings();
    std::set<Replication> evidence;
    std::vector<std::string> without_ratio;
    std::vector<SharedPoint> rows;
    for (const Check& check : judgement.checks) {
      if (check.evidence == Replication::none) {
        without_ratio.push_back(fmt::format("{}: {}", check.subject, check.reason));
        continue;
      }
      SharedPoint& point = rows.emplace_back(points.at(check.subject));
      point.check = &check;
      points.erase(check.subject);
      if (check.interval) evidence.insert(check.evidence);
      count(check);
    }
    sum_up(rows.empty());
    std::vector<bool> is_gap(rows.size(), false);
    for (const auto& [name, point] : points) rows.push_back(point);
    is_gap.resize(rows.size(), true);
    section_.table = make_rows(rows);
    section_.table.is_gap = std::move(is_gap);
    section_.notes = {
        "ratio: the time of the second over that of the first; above 1 the second is slower"};
    for (const Replication each : evidence) section_.notes.push_back(describe_cover(each));
    std::ranges::copy(judgement.notes, std::back_inserter(section_.notes));
    std::ranges::copy(without_ratio, std::back_inserter(section_.notes));
    return std::move(section_);
  }

 private:
  std::map<std::string, SharedPoint> find_points() const {
    std::map<std::string, SharedPoint> points;
    if (before_.subjects.empty() || now_.subjects.empty()) return points;
    const Matches matches = match_subjects(before_, now_);
    for (std::size_t i = 0; i < matches.of_baseline.size(); ++i) {
      if (!matches.of_baseline[i]) continue;
      const Subject &before = before_.subjects[i], &now = now_.subjects[*matches.of_baseline[i]];
      points[before.name] = {&before, &now};
    }
    return points;
  }

  // The gate takes it for an error that no point of the first has a run that counts.
  Judgement judged(const std::map<std::string, SharedPoint>& points) const {
    GateOptions options;
    options.quantities = {Quantity::time};
    options.nodes_may_differ = true;
    const bool any = std::any_of(points.begin(), points.end(),
                                 [](const auto& point) { return point.second.before->runs > 0; });
    return any ? judge(before_, now_, options) : Judgement{};
  }

  void add_warnings() {
    const auto before = kinds_in(first_), now = kinds_in(second_);
    const bool unlike = std::any_of(now.begin(), now.end(), [&](const Machine& machine) {
      return std::none_of(before.begin(), before.end(),
                          [&](const Machine& known) { return alike(known, machine); });
    });
    if (unlike && !before.empty()) {
      section_.warnings.push_back(
          fmt::format("the sides ran on different machines: {} (first), {} (second); ratios "
                      "include how these differ",
                      machines_text(before), machines_text(now)));
    }
    for (const ReportSide* side : {&first_, &second_}) {
      for (const Study& study : side->studies) {
        for (const std::string& warning : study.warnings) {
          section_.warnings.push_back(fmt::format("{}: {}", side->name, warning));
        }
      }
    }
  }

  void count(const Check& check) {
    if (!check.interval) return;
    Counts& counts = check.evidence == Replication::apart ? apart_ : decided_;
    ++counts.points;
    if (differs(check)) ++(*check.change > 0 ? counts.slower : counts.faster);
  }

  void sum_up(bool has_no_ratio) {
    if (has_no_ratio) {
      section_.findings.emplace_back("no point has runs on both sides that can be compared");
      return;
    }
    if (decided_.points + apart_.points == 0) {
      section_.findings.emplace_back("run repeats on both sides: no ratio has an interval");
      return;
    }
    if (decided_.points > 0) {
      section_.findings.emplace_back(fmt::format(
          "of {}, the second is slower beyond the noise in {}, faster in {} (p < {}, "
          "Holm-adjusted over all points)",
          counted(decided_.points, "point"), decided_.slower, decided_.faster, kSignificance));
    }
    if (apart_.points == 0) return;
    const std::size_t differing = apart_.slower + apart_.faster;
    const std::string of = counted(apart_.points, "point");
    if (differing == 0) {
      section_.findings.emplace_back(
          fmt::format("of {}, none differs by more than runs of one session do", of));
      return;
    }
    section_.findings.emplace_back(fmt::format(
        "of {}, {} differ{} by more than runs of one session do ({} slower, {} faster); whether "
        "sessions differ as much is not known: {} sessions of the first would show it",
        of, differing, differing == 1 ? "s" : "", apart_.slower, apart_.faster, kFewestSessions));
  }

  struct Counts {
    std::size_t points = 0, slower = 0, faster = 0;
  };

  const ReportSide& first_;
  const ReportSide& second_;
  const Side before_;
  Side now_;
  Section section_;
  Counts decided_, apart_;  // by sessions or shared rounds; of too few sessions to tell
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
    auto section = side == first ? std::nullopt : compare_sides(*first, *side);
    if (section) found.comparisons.push_back(std::move(*section));
  }
  return found;
}

std::optional<Section> compare_sides(const ReportSide& first, const ReportSide& second) {
  return SideComparison(first, second).make();
}

}  // namespace paceline
