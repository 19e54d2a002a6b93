// Stands in for `paceline train` in the runner's tests: fake_run MODE [POINT] train WORKLOAD ...
// Does what MODE says, for POINT only if one is given; else leaves a completed record.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "results/store.h"
#include "tests/unit/results/sample_record.h"

namespace {

using paceline::Json;

struct Request {
  std::map<std::string, std::string> options;  // "--gpus=2" is "gpus" and "2"
  Json context;
};

Request parse(int argc, char** argv) {
  Request request;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto equals = word.find('=');
    if (word.starts_with("--") && equals != std::string::npos) {
      request.options[word.substr(2, equals - 2)] = word.substr(equals + 1);
    }
  }
  request.context = Json::parse(request.options.at("context"));
  return request;
}

Json make_record(const Request& request) {
  Json record = paceline::testing::sample_record();
  for (const char* key : {"study", "point", "repeat", "session", "round"}) {
    record[key] = request.context.at(key);
  }
  record["identity"] = "id";
  record["flags"]["sequential"] = request.context.value("sequential", false);
  record["provenance"]["data_hash"] = "data";
  record["parameters"]["gpus"] = std::stoi(request.options.at("gpus"));
  record["timing"]["fit_seconds"] = 1.5;
  record["throughput"]["samples_per_second"] = 33200.4;
  return record;
}

// Whoever can lock STUDY/.alive knows that neither this process nor a child of it runs any more.
void show_life(const Request& request) {
  const std::string file = request.options.at("store") + "/.alive";
  const int descriptor = open(file.c_str(), O_RDWR | O_CREAT, 0644);
  flock(descriptor, LOCK_SH);
}

[[noreturn]] void hang() {
  while (true) pause();
}

int misbehave(const std::string& mode, const Request& request) {
  if (mode == "fail") {
    std::fprintf(stderr, "a warning\npaceline: the data set is missing (data/x); get it\n");
    return 65;
  }
  if (mode == "quiet-fail") return 3;
  if (mode == "bytes") {  // not UTF-8
    std::fputs("\xff\xfe broken \xc3\n", stderr);
    return 1;
  }
  if (mode == "die") raise(SIGKILL);
  if (mode == "silent") return 0;
  if (mode == "cut-short") {
    const auto file = paceline::Store(request.options.at("store"))
                          .write(request.context.at("point_folder"), request.context.at("repeat"),
                                 make_record(request), "");
    std::filesystem::resize_file(file, 100);
    return 0;
  }
  if (mode == "late") {  // its record is there when its time is up
    paceline::Store(request.options.at("store"))
        .write(request.context.at("point_folder"), request.context.at("repeat"),
               make_record(request), "samples");
    hang();
  }
  show_life(request);
  if (mode == "deaf") {  // and so is its child
    signal(SIGTERM, SIG_IGN);
    fork();
    hang();
  }
  if (mode == "orphan") {  // leaves a child behind
    if (fork() == 0) hang();
    return 4;
  }
  if (mode == "interrupted") kill(getppid(), SIGINT);
  hang();
}

}  // namespace

int main(int argc, char** argv) {
  const Request request = parse(argc, argv);
  const std::string mode = argv[1], point = argv[2];
  const bool concerned =
      point == "train" || point == request.context.at("point").get<std::string>();
  if (mode != "complete" && concerned) return misbehave(mode, request);
  std::printf("trained\n");
  paceline::Store(request.options.at("store"))
      .write(request.context.at("point_folder"), request.context.at("repeat"), make_record(request),
             "samples");
  return 0;
}
