// A verb of the command line: a file that parses, calls and prints.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace paceline {

// Set by the verb that was named on the command line; returns the exit code.
using Action = std::function<int()>;

void add_list(CLI::App& app, Action& action);
void add_describe(CLI::App& app, Action& action);
// `command` is the whole command line, kept for records and for the ranks that are started.
void add_train(CLI::App& app, Action& action, const std::vector<std::string>& command);
void add_bench(CLI::App& app, Action& action, const std::vector<std::string>& command);
// `bench` is the verb of that name.
void add_bench_input(CLI::App& bench, Action& action);
void add_checkpoint(CLI::App& app, Action& action);
void add_sweep(CLI::App& app, Action& action);
void add_submit(CLI::App& app, Action& action);
void add_status(CLI::App& app, Action& action);
void add_cancel(CLI::App& app, Action& action);
void add_collect(CLI::App& app, Action& action);
// For the scripts that submit writes; not in the help.
void add_element(CLI::App& app, Action& action);
void add_data(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_gate(CLI::App& app, Action& action);
void add_best(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);

}  // namespace paceline
