// Somebody's own program, which a study of workload "command" starts: how, and where its results
// stand. README.md shows the keys.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/json.h"
#include "engine/core/json_field.h"
#include "results/parameters.h"
#include "results/store.h"
#include "sweeps/result_source.h"

namespace paceline {

// In a job's environment: the words that start one process for each of its tasks, one a line.
inline constexpr char kLauncherVariable[] = "PACELINE_PROGRAM_LAUNCHER";

// Words that bring a process of a job into a container, and Paceline's name there, one a line.
inline constexpr char kContainerVariable[] = "PACELINE_PROGRAM_CONTAINER";

struct UserProgram {
  std::string name;
  std::vector<std::string> command, setup;  // words; of a shell one
  bool shell = false;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string directory;          // absolute
  std::string processes = "one";  // or "node" or "replica"
  std::vector<ResultSource> results;
  std::string trace;  // of PyTorch's profiler, with placeholders: {rank}, or a glob; empty: none
  std::string definition;  // JSON of all of this but the name

  // "train@3f9a12cd3f9a12cd", the value of parameter "program": another recipe is another value.
  std::string tag() const;
  // Every text with placeholders.
  std::vector<std::string> templates() const;
};

// The keys of a program, as they stand in a spec.
const std::vector<std::string>& program_keys();

// Commands, files and patterns end at a zero byte: throws input.
const std::string& text_without_zero(const JsonField& field);

// The keys of a result, which say where it stands. `filled_text` reads one that may have
// placeholders.
JsonFieldReaders result_readers(ResultSource& source,
                                const std::function<std::string(const JsonField&)>& filled_text);

// The program whose keys are among those of an object. `folder` is what a relative directory starts
// from. Throws input naming file, line and key.
UserProgram parse_program_object(const JsonField& field, const std::string& name,
                                 const std::string& folder);
// Parses UserProgram::definition.
UserProgram parse_program(const std::string& name, const std::string& definition);

// The names between braces: "--batch={batch_per_replica}". "{{gpus}}" is
// the text "{gpus}", and other braces are themselves.
std::vector<std::string> placeholders_in(std::string_view text);
using PlaceholderValue = std::function<std::string(const std::string& name)>;
// `literal` is told each character of the text that stays.
std::string filled(std::string_view text, const PlaceholderValue& value,
                   const std::function<void(char)>& literal = {});

// All of them that some run gives a value.
std::vector<std::string> known_placeholders();

// What follows from a point, beside its parameters: nodes, ntasks, gpus_per_node, ... Empty: no
// such name, or no value in this point.
std::optional<std::string> value_in_point(const std::string& name, const Point& parameters,
                                          const Layout& layout);

// Throws usage if a placeholder has no value in this point.
void check_placeholders(const UserProgram& program, const Point& parameters, const Layout& layout,
                        const std::string& where);

// Whether the program can see the value of a parameter: by a placeholder, or as its place.
bool can_see(const UserProgram& program, std::string_view parameter);

// Whether the program can see how many replicas it has: it is a rank, or has a placeholder of the
// layout, or asks its machine (nproc).
bool can_see_replicas(const UserProgram& program);

// Fills placeholders into the text of a shell command, so that no value runs as a command.

// Outside of quotes, a value is one word, whatever it holds. Inside the text's own quotes it stays
// as it is; throws usage there if it holds what a shell, or one that this one starts, would read.
std::string fill_shell_command(std::string_view text, const PlaceholderValue& value);

// A run's place in its study, passed to the program through the hidden --context of train.

// The session in scripts of a dry run. Whoever sends them by hand makes it one of his own.
constexpr char kDryRunSession[] = "DRY-RUN";

struct RunContext : RunPlace {
  std::string program = {};  // UserProgram::definition, of workload command

  std::string json() const;
};

// Throws input if it is not JSON, usage if something is missing.
RunContext parse_run_context(const std::string& text);

}  // namespace paceline
