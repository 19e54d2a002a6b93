// How much the times of equal runs vary, by level, from pilot runs.
//
// The logarithm of a time is the point's mean plus independent effects: of the session, of the
// round (which all its points share), and of the run. Kalibera and Jones, "Rigorous benchmarking in
// reasonable time", ISMM 2013, estimate such levels from the innermost outwards; so does this.
//   run: what is left within a session after the means of points and rounds are taken out. A gate
//   that pairs runs of one round sees only this level. With one point in the rounds it cannot be
//   told from the round's.
//   round: how much more the means of rounds differ than runs explain.
//   session: how much more the means of sessions differ, of one point, than runs and rounds
//   explain. node: how much more runs on one node are alike, within sessions. step: what the
//   scatter of a run's steps would make of its time, if steps were independent.
// Undisturbed completed runs count. Outliers among the runs of a point and session are counted, but
// are not part of the noise, as a gate excludes them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/statistics/statistics.h"
#include "results/store.h"

namespace paceline {

struct Level {
  std::string name;          // "run"
  std::optional<double> sd;  // of logarithms, so about a share of the time; empty: not known
  double degrees_of_freedom = 0;
  std::string remark;  // why it is not known, or what it contains as well
};

struct PointNoise {
  double sd = 0, degrees_of_freedom = 0;  // of a run, moderated by the others' (Smyth 2004)
  std::size_t runs = 0;
  std::optional<double> hours;  // GPU-hours or core-hours of a run, mean
};

struct Noise {
  std::vector<Level> levels;                 // step, run, round, session, node
  std::map<std::string, PointNoise> points;  // by the gate's names: "mnist-cnn gpus=2"
  std::size_t runs = 0, outlying = 0;        // runs of points with 4 or more in a session
  std::vector<std::string> notes;
  bool is_of_published = false;  // or imported: not measured by Paceline

  const Level& level(const std::string& name) const;
};

// Throws input if no point has 2 runs or more.
Noise estimate_noise(const StoreContent& content);

// A bound that the standard deviation stays below with probability 0.8 (chi-square), as few pilot
// runs estimate noise poorly. Browne, "On the use of a pilot sample for sample size
// determination", Statist. Med. 14, 1995.
double upper_sd(double sd, double degrees_of_freedom);

// The same bound of a share of runs, estimated as `found` of `runs` (Clopper and Pearson).
double upper_share(std::size_t found, std::size_t runs);

// What is likely: as if half a run of 25 more had stood out. Few runs that all are alike show
// little of how many will not be.
double likely_share(std::size_t found, std::size_t runs);

}  // namespace paceline
