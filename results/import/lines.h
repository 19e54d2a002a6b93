// Lines and words of another tool's output, for readers of formats.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/import/formats.h"
#include "results/shipped.h"

namespace paceline {

inline constexpr double kMicro = 1e-6, kMega = 1e6, kGiga = 1e9;  // units that tools print

struct TextLine {
  std::size_t number = 0;  // from 1
  std::string_view text;   // without the line's end
};

std::vector<TextLine> split_lines(std::string_view text);

// Separated by blanks.
std::vector<std::string_view> split_words(std::string_view line);

// A member of an object; null where it has none. Its value, where it is a text, where a number.
const Json& find_member(const Json& json, const char* key);
std::string text_or_empty(const Json& json);
std::optional<double> number_or_empty(const Json& json);

// The JSON object that a text begins with, as Python writes it: null stands for NaN and Infinity,
// which JSON has not.
struct ObjectText {
  std::string text;  // empty: the text begins otherwise, or ends within the object
  bool has_not_finite = false;
};
ObjectText object_at_begin(std::string_view text);

// "file.txt:12"
std::string place_in(const ForeignFile& file, std::size_t line);

[[noreturn]] void refuse_line(const ForeignFile& file, std::size_t line, const std::string& what,
                              const std::string& fix);

// A finite number above 0. Throws input naming the line and what the number is.
double positive_number(std::string_view word, const std::string& what, const ForeignFile& file,
                       std::size_t line);

// Throws input naming the line if it has fewer words than there are headings, or not as many as the
// rows before it: tools append columns without a heading, to all rows alike. `width` is that of the
// rows, 0 before the first.
void check_width(const std::vector<std::string_view>& words,
                 const std::vector<std::string>& headings, std::size_t& width,
                 const ForeignFile& file, std::size_t line);
// Whether the line begins with digits alone, as rows of a size do.
bool begins_with_count(const std::vector<std::string_view>& words);

// Sets gpus in layout and parameters.
void set_replicas(RunRecord& record, int count);

// Rows of the same size and label become one: samples, with their median, least and 95th percentile
// time, and the most wrong elements.
void merge_repeated_sizes(std::vector<CollectiveRow>& rows);

// At most as many rows as fit into a record; says in a note what was left out.
void keep_rows(CollectiveFacts& facts, std::vector<std::string>& notes);

// A row whose data check failed has what its output says of that as first_wrong, "Fail". Says in
// the record and in a warning which rows those are. `verdict` is the output's own, "2 FAILED";
// empty: none that is bad.
void report_failed_checks(CollectiveFacts& facts, const std::string& verdict,
                          std::vector<std::string>& notes);

// Bytes of an element of a type as MPI, NCCL or PyTorch name it, and its name here:
// "MPI_FLOAT", "bfloat16", "float32". An unknown type keeps its name, and its size is 0.
struct ElementType {
  std::string name;
  int bytes = 0;
};
ElementType element_type(std::string_view foreign);

// What launchers and terminals add to the lines of a program's output.

std::string_view without_byte_order_mark(std::string_view text);

// The output as its program wrote it: without colours, a byte order mark, and labels that most
// lines begin with, as of srun --label ("0: "), mpirun --tag-output ("[1,0]<stdout>:"), kubectl
// logs --timestamps, stern, container runtimes, syslog. `notes` get a sentence on labels that were
// taken off. Lines keep their numbers.
std::string without_labels(std::string_view text, std::vector<std::string>& notes);

// The single values of a run record by name, for --set and --column: "gpus", "fit_seconds",
// "hardware". Taken from the list of parameters and from the structs themselves.

struct RecordKey {
  std::string name;             // "samples_per_second"; "timing.warmup_steps_excluded" if several
                                // sections have it
  std::vector<std::string> to;  // JSON pointers: {"/layout/gpus", "/parameters/gpus"}
  bool is_text = false;
  bool is_result = false;  // a measurement, which only a file can give
};

const RecordKey* find_record_key(std::string_view name);
// Throws usage with the nearest names.
const RecordKey& record_key_named(std::string_view name, std::string_view option);

// "hardware=A100" into `record`. Throws usage: no such key, a result, not a number.
void set_value(Json& record, const std::string& assignment);

}  // namespace paceline
