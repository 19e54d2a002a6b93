// A verb of the command line: one file that parses options, calls the library and prints.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace paceline {

// What the selected verb does: it assigns a function that returns the exit code.
struct Action {
  std::vector<std::string> command;  // the complete command line, for records and spawned ranks
  std::function<int()> run;

  template <typename Run>
  void operator=(Run what) {
    run = std::move(what);
  }
};

// A verb `x` is a function add_x of this type, defined in its own file, and a row in main.cpp.
using AddVerb = void(CLI::App& app, Action& action);

AddVerb add_bench_input;  // of `bench`: the app is that verb

}  // namespace paceline
