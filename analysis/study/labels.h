// The sentences of the legend that describe the records: how many were ignored and why; which are
// synthetic, published, oversubscribed, throttled, traced or from different machines.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/study/study.h"
#include "engine/core/text.h"

namespace paceline {

// Unreadable records, one line each.
std::vector<std::string> ignored_records(const StoreContent& content);
// The same, and runs that did not complete.
std::vector<std::string> left_out(const StoreContent& content, const std::vector<Run>& unfinished);

// The same in short form: one line per reason, and after a few lines only a number.
std::vector<std::string> left_out_notes(const StoreContent& content,
                                        const std::vector<Run>& unfinished);

// Adds to each row its attempts without a result, and counts the lost runs: its others survived.
void add_unfinished(std::vector<Row>& rows, const std::vector<Run>& unfinished);

// Sets the warnings about the rows of a table, to show before and after it, and how far its
// sentences may go in naming causes.
void add_row_warnings(Study& study);
std::vector<std::string> row_notes(const Study& study);
// What the machine was like, and what intervals say of other days.
std::vector<std::string> machine_notes(const Study& study);

// "no other process was seen on its CPUs in all runs", one of the notes. May be empty.
std::string load_note(const Study& study);

// "3 of 5 runs completed", of a row that lost some.
std::string survivors_text(const Row& row);

// "oversubscribed, synthetic": what to know before trusting a row; for a gap, its reason. May be
// empty.
std::string row_label(const Row& row);

// Number of a row's runs that were made while other processes kept their CPUs busy.
std::size_t busy_runs(const Row& row);

// "mnist-cnn, fp32, fixed-epochs scaling, batch_per_replica 64 (synthetic)"
std::string study_title(const Study& study);

// The names of the studies whose runs it has, and " of quick, slow" of them, for titles; may be
// empty.
std::set<std::string> study_names(const Study& study);
std::string of_studies(const std::set<std::string>& names);
inline constexpr std::size_t kMostStudyNames = 4;

// The label that all rows share, for the title. May be empty.
std::string common_label(const Study& study);

// Short names of a study's rows that distinguish them: "mpi, 2 replicas, 1 CPU each".

// One name per row, made of what differs between them: kind, system, backend, axes, replicas, CPUs.
// Always includes the replicas, and, for a single row, its backend.
std::vector<std::string> point_names(const Study& study, const std::vector<const Row*>& rows);
inline std::vector<std::string> point_names(const Study& study) {
  return point_names(study, pointers_to(study.rows));
}

// Sets Row::distinct_nodes and distinct_tasks.
void distinguish_layouts(Study& study);

// "1 GPU", "2 replicas".
std::string counted_replicas(const Study& study, int gpus);
// "1 CPU each", where `of` is "each"; of replicas on GPUs "cpus-per-task 8". May be empty.
std::string cpus_of_run(const Run& run, std::string_view of);
// "2 replicas on 2 nodes", where it differs from another row in that alone.
std::string replicas_text(const Study& study, const Row& row);

// Whether programs of the user's own (workload command) that share a table did the same work.

// Compares what the programs report (parameters, precision, global batch, samples) point by point,
// and says it in Row::work of each row that differs from another program's.
void compare_work(std::vector<Row>& rows);

// Marks the runs that were made before the program was changed, as the plan of their study says.
// The same program in another folder, as of another site, is no other state.
void mark_older_programs(std::vector<Row>& rows, const std::vector<ExpectedRuns>& plans);

// What differs, and what could not be compared because a program does not report it. May be empty.
std::vector<std::string> work_notes(const std::vector<Row>& rows);

}  // namespace paceline
