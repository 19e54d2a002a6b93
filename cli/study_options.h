// Options that several verbs on studies share.
#pragma once

#include <string>
#include <vector>

#include "analysis/document/document.h"
#include "analysis/study/comparison.h"
#include "run/plan_study.h"
#include "run/until_precise.h"
#include "slurm/site.h"
#include "sweeps/study_plan.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace paceline {

struct MachineScreen;

// --results, by default the configured one. A configuration that cannot be used is refused.
void add_results(CLI::App& verb, std::string& results, const std::string& help);
void add_study_options(CLI::App& verb, StudyOptions& options);

// Of a report's columns, by which --columns names several.
inline constexpr char kColumnGroups[] = "time,rate,scaling,phases,quality,cost,energy";

// "matched", "best", "smallest", "bucket_mb=8". Throws usage.
Base parse_base(const std::string& text);
// The same without settings that are no sizes.
Base parse_base_of_sizes(const std::string& text);
// A name and its description, wrapped to the width of the output.
std::string name_and_text(std::string_view name, std::size_t column, const std::string& text);

TextStyle style_of_output();  // colours and line width of standard output

// The studies of a verb, and which of their records it uses.
struct StudyArguments {
  std::vector<std::string> studies, only;
  Pooling pooling = Pooling::by_sessions;

  std::vector<std::filesystem::path> places() const { return {studies.begin(), studies.end()}; }
  std::vector<Selection> selections() const;  // throws usage
};
// STUDY and --only.
void add_studies(CLI::App& verb, StudyArguments& arguments);
// --pool and --no-pool, which exclude each other.
void add_pool_options(CLI::App& verb, StudyArguments& arguments);

// Their records of training, and the points that should exist.
struct TrainingRecords {
  StoreContent content;
  std::vector<ExpectedRuns> plans;
};
TrainingRecords load_training_records(const StudyArguments& arguments);
// Throws input if there are records, and all are of collectives.
void require_training_records(const StoreContent& content, const StudyArguments& arguments);
// A brief document shows its legend only with --verbose: the first of these become warnings.
void warn_of_rejected(const StoreContent& content, Document& document);
// Throws usage if several studies have points in common, which only `report` compares.
void require_one_study(const StudyArguments& arguments, const std::string& cure);

// Throws usage, with what chooses one, if there are several.
Study only_table(std::vector<Study> studies);

// How a verb's documents are printed and written.
struct DocumentArguments {
  std::string format = "text", out = {};
  std::vector<std::string> plots = {"svg"};
  bool json = false, verbose = false, no_plots = false, plots_given = false;
};
// --format, --json for the same as --format json, and --verbose, which is returned.
CLI::Option* add_format_options(CLI::App& verb, DocumentArguments& arguments);
// --out for NAME.html and others, --plots and --no-plots.
void add_folder_options(CLI::App& verb, DocumentArguments& arguments, const std::string& name);
// Throws usage on plots that were asked for but have no folder, and on unknown formats.
OutputOptions output_options(const DocumentArguments& arguments);

// Prints a study's table, and writes its report into the folder of that name in the study.
void print_study_report(const std::filesystem::path& study, bool verbose);

// Whether somebody at a terminal says yes to the cost that was printed. Throws usage without one.
bool confirm_cost();
void print_now(const std::string& text);

// Prints documents, and writes their files.
void print_documents(const std::vector<Document>& documents, const DocumentArguments& arguments);
// Judged; the exit code. `fail`: 1 if something is slow.
int print_screen(const MachineScreen& screen, const DocumentArguments& output, bool fail);

}  // namespace paceline
