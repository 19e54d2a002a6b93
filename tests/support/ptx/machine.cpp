#include "tests/support/ptx/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>

#include "tests/support/ptx/thread.h"

namespace paceline::ptx {

namespace {

constexpr std::uint64_t kMostOfThread = std::uint64_t{1} << 28;
constexpr std::size_t kMostFaults = 8;
constexpr unsigned kUnderWay = 4;  // blocks

class Faults {
 public:
  Faults(const PtxModule& module, const PtxKernel& kernel) : module_(module), kernel_(kernel) {}
  void add(const PtxInstruction& i, unsigned block, unsigned thread, const std::string& what) {
    if (texts_.size() == kMostFaults) return;
    texts_.push_back(fmt::format("{}, line {} of PTX ({}): thread {} of block {} {}", kernel_.name,
                                 i.line, module_.to_string(i), thread, block, what));
  }
  std::vector<std::string> take() { return std::move(texts_); }

 private:
  const PtxModule& module_;
  const PtxKernel& kernel_;
  std::vector<std::string> texts_;
};

const char* verb(PtxMemory::Access access) {
  return access == PtxMemory::Access::read ? "reads" : "writes";
}

// Who touched a byte of shared memory last, and in which phase.
struct Touched {
  static constexpr std::uint16_t kSeveral = 0xFFFF;
  std::uint32_t written_in = 0, read_in = 0;
  std::uint16_t writer = 0, reader = 0;  // number of the thread + 1
};

class Block final : public PtxMemory {
 public:
  Block(const PtxKernel& kernel, const PtxLaunch& launch, std::span<const LiveMemory> live,
        Faults& faults)
      : kernel_(kernel), launch_(launch), live_(live), faults_(faults) {
    // Threads that never wait for each other run one after the other, in one file.
    files_.resize(kernel.waits ? launch.threads : 1);
    for (std::vector<std::uint64_t>& file : files_) file.resize(kernel.slots);
    shared_.resize(launch.shared_bytes);
    touched_.resize(launch.shared_bytes);
    locals_.resize(kernel.local_bytes * files_.size());
    recent_.fill({});
    turns_.resize(launch.threads);
    std::iota(turns_.begin(), turns_.end(), 0U);
  }

  void start(unsigned number) {
    number_ = number;
    first_phase_ = ++phase_;
    threads_.assign(launch_.threads, {});
  }

  // Up to the next barrier. False: the block is done.
  bool run(std::mt19937& order) {
    std::rotate(turns_.begin(), turns_.begin() + order() % turns_.size(), turns_.end());
    if (order() % 2 == 0) std::reverse(turns_.begin(), turns_.end());
    for (const unsigned t : turns_) run_thread(t);
    ++phase_;
    return meet();
  }

  std::uint64_t instructions() const { return instructions_; }

  void* global(PtxThread& t, const PtxInstruction& i, std::uint64_t at, std::size_t bytes,
               Access access) override {
    if (at % bytes != 0) {
      fault(t, i, "{} {} bytes at {:#x}, which is not aligned to that", verb(access), bytes, at);
      return nowhere();
    }
    LiveMemory& recent = recent_[i.line % recent_.size()];
    if (at - recent.first >= recent.bytes || at - recent.first + bytes > recent.bytes) {
      const auto next = std::upper_bound(
          live_.begin(), live_.end(), at,
          [](std::uint64_t value, const LiveMemory& one) { return value < one.first; });
      if (next == live_.begin() || at - next[-1].first + bytes > next[-1].bytes) {
        if (next == live_.begin()) {
          fault(t, i, "{} {} bytes at {:#x}, before all live memory", verb(access), bytes, at);
        } else {
          fault(t, i, "{} {} bytes at offset {} of a memory of {} bytes", verb(access), bytes,
                at - next[-1].first, next[-1].bytes);
        }
        return nowhere();
      }
      recent = next[-1];
    }
    return reinterpret_cast<void*>(at);
  }

  void* shared(PtxThread& t, const PtxInstruction& i, std::uint64_t at, std::size_t bytes,
               Access access) override {
    if (!fits(t, i, "shared", at, bytes, shared_.size(), access)) return nowhere();
    const auto me = static_cast<std::uint16_t>(t.number + 1);
    for (std::size_t k = at; k < at + bytes; ++k) {
      Touched& byte = touched_[k];
      if (access == Access::read && byte.written_in < first_phase_) {
        fault(t, i, "reads shared memory at {} that no thread has written", k);
        break;
      }
      if (byte.written_in == phase_ && byte.writer != me) {
        fault(t, i, "{} shared memory at {} that thread {} writes between the same barriers",
              verb(access), k, byte.writer - 1);
        break;
      }
      if (access == Access::read) {
        byte.reader = byte.read_in == phase_ && byte.reader != me ? Touched::kSeveral : me;
        byte.read_in = phase_;
        continue;
      }
      if (byte.read_in == phase_ && byte.reader != me) {
        fault(t, i, "writes shared memory at {} that others read between the same barriers", k);
        break;
      }
      byte.writer = me;
      byte.written_in = phase_;
    }
    return shared_.data() + at;
  }

  void* parameter(PtxThread& t, const PtxInstruction& i, std::uint64_t at,
                  std::size_t bytes) override {
    if (!fits(t, i, "parameters", at, bytes, launch_.parameter_bytes, Access::read)) {
      return nowhere();
    }
    return const_cast<std::byte*>(static_cast<const std::byte*>(launch_.parameters)) + at;
  }

  void* local(PtxThread& t, const PtxInstruction& i, std::uint64_t at, std::size_t bytes) override {
    if (!fits(t, i, "local", at, bytes, kernel_.local_bytes, Access::write)) return nowhere();
    return locals_.data() + kernel_.local_bytes * resolve_file(t.number) + at;
  }

  void unknown(PtxThread& t, const PtxInstruction& i) override {
    fault(t, i, "meets an instruction that tests/support/ptx/instructions.cpp does not know");
  }

 private:
  template <typename... Of>
  void fault(const PtxThread& t, const PtxInstruction& i, fmt::format_string<Of...> what,
             Of... of) {
    faults_.add(i, number_, t.number, fmt::vformat(what, fmt::make_format_args(of...)));
  }
  bool fits(const PtxThread& t, const PtxInstruction& i, const char* space, std::uint64_t at,
            std::size_t bytes, std::size_t size, Access access) {
    if (at > size || bytes > size - at) {
      fault(t, i, "{} {} bytes at offset {} of {} bytes of {} memory", verb(access), bytes, at,
            size, space);
    } else if (at % bytes != 0) {
      fault(t, i, "{} {} bytes at offset {} of {} memory, which is not aligned to that",
            verb(access), bytes, at, space);
    } else {
      return true;
    }
    return false;
  }
  void* nowhere() {
    nowhere_.fill(std::byte{0});
    return nowhere_.data();
  }
  std::size_t resolve_file(unsigned thread) const { return kernel_.waits ? thread : 0; }

  void run_thread(unsigned number) {
    PtxThread& t = threads_[number];
    if (t.done) return;
    if (!t.begun) {
      std::vector<std::uint64_t>& file = files_[resolve_file(number)];
      for (const auto& [slot, value] : kernel_.constants) file[slot] = value;
      file[PtxKernel::thread] = number;
      file[PtxKernel::threads] = launch_.threads;
      file[PtxKernel::block] = number_;
      file[PtxKernel::blocks] = launch_.blocks;
      t.slots = file.data();
      t.memory = this;
      t.number = number;
      t.begun = true;
    }
    t.stops = false;
    std::uint64_t left = kMostOfThread;
    while (!t.stops) {
      const PtxInstruction& i = kernel_.code[t.next++];
      if (--left == 0) {
        fault(t, i, "does not end");
        t.done = t.stops = true;
      }
      if (i.guard != 0 && (t.slots[i.guard] != 0) != i.guard_is) continue;
      if (i.step == nullptr) {
        unknown(t, i);
        t.done = t.stops = true;
        break;
      }
      i.step(t, i);
    }
    instructions_ += kMostOfThread - left;
  }

  // All threads must have come to the same barrier, or be done.
  bool meet() {
    const auto waiting =
        std::find_if(threads_.begin(), threads_.end(), [](const PtxThread& t) { return !t.done; });
    if (waiting == threads_.end()) return false;
    for (const PtxThread& t : threads_) {
      if (!t.done && t.next == waiting->next) continue;
      const PtxInstruction& barrier = kernel_.code[waiting->next - 1];
      fault(*waiting, barrier, "waits at a barrier where thread {} {}", t.number,
            t.done ? std::string("is done")
                   : fmt::format("waits at line {}", kernel_.code[t.next - 1].line));
      return false;
    }
    return true;
  }

  const PtxKernel& kernel_;
  const PtxLaunch& launch_;
  std::span<const LiveMemory> live_;
  Faults& faults_;
  unsigned number_ = 0;
  std::uint32_t phase_ = 0, first_phase_ = 0;  // between barriers; of all blocks it ran
  std::vector<PtxThread> threads_;
  std::vector<std::vector<std::uint64_t>> files_;
  std::vector<std::byte> shared_, locals_;
  std::vector<Touched> touched_;
  std::vector<unsigned> turns_;
  std::array<LiveMemory, 64> recent_{};  // where an instruction found its memory
  std::array<std::byte, 64> nowhere_{};
  std::uint64_t instructions_ = 0;
};

}  // namespace

PtxOutcome run_ptx(const PtxModule& module, const PtxKernel& kernel, const PtxLaunch& launch,
                   std::span<const LiveMemory> live, std::mt19937& order) {
  Faults faults(module, kernel);
  std::vector<unsigned> numbers(launch.blocks);
  std::iota(numbers.begin(), numbers.end(), 0U);
  std::shuffle(numbers.begin(), numbers.end(), order);
  std::vector<std::unique_ptr<Block>> under_way;
  PtxOutcome outcome;
  const auto start_next = [&](Block& block) {
    if (numbers.empty()) return false;
    block.start(numbers.back());
    numbers.pop_back();
    return true;
  };
  while (under_way.size() < std::min(launch.blocks, kernel.waits ? kUnderWay : 1U)) {
    under_way.push_back(std::make_unique<Block>(kernel, launch, live, faults));
    start_next(*under_way.back());
  }
  while (!under_way.empty()) {
    const std::size_t k = order() % under_way.size();
    if (under_way[k]->run(order) || start_next(*under_way[k])) continue;
    outcome.instructions += under_way[k]->instructions();
    under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(k));
  }
  outcome.faults = faults.take();
  return outcome;
}

}  // namespace paceline::ptx
