// The text of a first spec, commented, from a few answers.
#pragma once

#include <string>
#include <vector>

namespace paceline {

struct NewSpec {
  std::string name;
  std::string workload;               // ours; empty: `command`
  std::string command;                // a command line, as in a shell
  std::string throughput;             // regular expression; empty: the whole time counts
  std::string processes = "one";      // or "node" or "replica"
  std::vector<std::string> backends;  // of our workload
  std::string device = "cpu";
  std::vector<int> gpus;
  int repeats = 5;
};

// The words of a command line without quotes, variables and the like, which a shell would split in
// the same way. Empty: it needs a shell.
std::vector<std::string> plain_words(const std::string& command);

// Throws usage or input if no study can be made of it, as reading the text would.
std::string to_text(const NewSpec& spec);

// 1, 2, 4, ... up to and with `most`.
std::vector<int> doubling(int most);

}  // namespace paceline
