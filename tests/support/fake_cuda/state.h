// What the imitated CUDA runtime keeps; see fake_cuda.h.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "tests/support/fake_cuda/fake_cuda.h"

namespace paceline::fake_cuda {

struct Stream;
using StreamPtr = std::shared_ptr<Stream>;

// One record of an event: what it waits for.
struct Record {
  StreamPtr stream;
  std::uint64_t position = 0;  // of the stream's work, after which it is done
  bool done = false;
  double time = 0;
};

struct Node {
  cudaGraphNodeType type;
  std::function<void()> work;
  std::vector<Node*> after;
  cudaEvent_t event = nullptr;  // of an event record node
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
};

struct Capture {
  StreamPtr origin;
  std::thread::id thread;
  cudaStreamCaptureMode mode;
  std::set<Stream*> streams;
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  bool valid = true, ended = false;
};

struct Event {
  int device = 0;
  unsigned flags = 0;
  std::shared_ptr<Record> record;
  std::shared_ptr<Capture> capture;  // that it was last recorded in
  std::set<Node*> nodes;             // there
};

struct Stream {
  int device = 0, priority = 0;
  unsigned flags = 0;
  std::deque<std::function<void()>> work;
  std::uint64_t ran = 0;
  std::shared_ptr<Capture> capture;
  std::set<Node*> tail;  // what the next captured node comes after

  std::uint64_t queued() const { return ran + work.size(); }
};

struct Executable {
  Graph* graph = nullptr;  // whose nodes name this one's
  std::map<Node*, std::shared_ptr<Node>> nodes;
  std::vector<Node*> order;
};

struct Block {
  std::size_t bytes = 0;
  bool on_host = false;
  int device = 0;
  std::uint64_t number = 0;
};

struct State {
  std::recursive_mutex mutex;
  Machine machine;
  std::map<cudaStream_t, StreamPtr> streams;
  std::map<int, StreamPtr> legacy;  // the default streams
  std::map<cudaEvent_t, std::shared_ptr<Event>> events;
  std::map<cudaGraph_t, std::unique_ptr<Graph>> graphs;
  std::map<cudaGraphExec_t, std::unique_ptr<Executable>> executables;
  std::map<char*, Block> blocks;
  std::map<const void*, std::size_t> registered;
  std::map<int, cudaError_t> broken;  // devices whose context is lost
  std::set<int> to_break;
  std::map<int, unsigned> device_flags;
  std::set<int> used;  // devices that have a context
  std::set<std::shared_ptr<Capture>> captures;
  std::map<std::string, cudaError_t> failures;
  std::function<void(const std::string&, int)> observer;
  std::function<double()> clock;  // empty: the host's
  std::vector<std::string> complaints;
  std::uint64_t blocks_made = 0;
  std::mt19937 random{7};
};

State& state();

// Device and last error of the calling thread.
int& current_device();
cudaError_t& last_error();
bool& in_host_function();

void complain(const std::string& what);
// Runs the stream's work up to this position, and what it waits for.
void advance(Stream& stream, std::uint64_t position);
void advance_all(int device);
// Queues work, or adds it to the graph that is captured.
cudaError_t queue(Stream& stream, cudaGraphNodeType type, std::function<void()> work,
                  cudaEvent_t event = nullptr);
// Not for a thread that captures, nor beside a capture of mode global: it ends those.
cudaError_t refuse_while_capturing();
cudaError_t leave(cudaError_t error);  // as the thread's last error

// A call: holds the state, and has an error if it fails at once.
class Call {
 public:
  explicit Call(const char* name);
  explicit operator bool() const { return error_ == cudaSuccess; }
  cudaError_t error() const { return leave(error_); }

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  cudaError_t error_ = cudaSuccess;
};

StreamPtr make_stream(cudaStream_t stream);  // null: none
std::shared_ptr<Event> event_at(cudaEvent_t event);
std::shared_ptr<Record> record_now(const StreamPtr& stream);  // of an event, not yet queued
double now();

}  // namespace paceline::fake_cuda
