// A verb of the command line: one file that parses options, calls the library and prints.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace paceline {

// The selected verb sets this. Returns the exit code.
using Action = std::function<int()>;

void add_list(CLI::App& app, Action& action);
void add_describe(CLI::App& app, Action& action);
// `command` is the complete command line, for records and for spawned ranks.
void add_train(CLI::App& app, Action& action, const std::vector<std::string>& command);
void add_bench(CLI::App& app, Action& action, const std::vector<std::string>& command);
// `bench` is the parent verb.
void add_bench_input(CLI::App& bench, Action& action);
void add_checkpoint(CLI::App& app, Action& action);
void add_new(CLI::App& app, Action& action);
void add_sweep(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_submit(CLI::App& app, Action& action);
void add_status(CLI::App& app, Action& action);
void add_cancel(CLI::App& app, Action& action);
void add_collect(CLI::App& app, Action& action);
// Used by the scripts that submit generates; hidden from help.
void add_element(CLI::App& app, Action& action);
void add_data(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_import(CLI::App& app, Action& action);
void add_archive(CLI::App& app, Action& action);
void add_merge(CLI::App& app, Action& action);
void add_gate(CLI::App& app, Action& action);
void add_history(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);
void add_best(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);

}  // namespace paceline
