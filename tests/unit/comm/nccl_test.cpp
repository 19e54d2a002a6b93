// The nccl backend over tests/support/fake_nccl, replicas as threads of one process: what goes
// wrong and what is said of it. Worlds of processes are in tests/conformance/comm.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <mutex>

#include "engine/comm/backend.h"
#include "engine/comm/backends/nccl/library.h"
#include "engine/comm/checks/stall_monitor.h"
#include "engine/core/clock.h"
#include "tests/support/expect_error.h"
#include "tests/support/fake_stream.h"
#include "tests/support/on_threads.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

class Nccl : public testing::Test {
 protected:
  Nccl() {
    set("PACELINE_CUDA_LIBS", FAKE_NCCL);
    set("FAKE_NCCL_FOLDER", scratch_.path().c_str());
    gpus_.select = [this](int replica) {
      const std::lock_guard lock(mutex_);
      selected_.push_back(replica);
    };
    gpus_.clear = [](void* data, std::size_t bytes) { std::memset(data, 0, bytes); };
  }
  ~Nccl() override {
    EXPECT_FALSE(std::filesystem::exists(scratch_ / "misuse"));
    for (const char* name :
         {"PACELINE_CUDA_LIBS", "FAKE_NCCL_FOLDER", "FAKE_NCCL_VERSION", "FAKE_NCCL_STALL",
          "FAKE_NCCL_FAIL", "FAKE_NCCL_FAIL_CALL", "FAKE_NCCL_INVALID", "PACELINE_NCCL_BLOCKING",
          "NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS", "NCCL_GRAPH_REGISTER",
          "NCCL_MULTI_RANK_GPU_ENABLE"}) {
      unsetenv(name);
    }
  }

  static void set(const char* name, const char* value) { setenv(name, value, 1); }

  Membership replicas(int count, const Deadlines& deadlines = {20, 60}) {
    gpus_.gpus.clear();
    for (int i = 0; i < count; ++i) {
      gpus_.gpus.push_back({i, "0000:0" + std::to_string(i) + ":00.0", "", "NVIDIA H200"});
    }
    Membership membership;
    membership.replicas_here = count;
    membership.deadlines = deadlines;
    membership.gpus = &gpus_;
    return membership;
  }

  static std::unique_ptr<Backend> backend(const std::string& stack = "mirrored") {
    return make_backend(stack, backend_table(), wrapper_table(), MemoryKind::device);
  }

  // `body` on a thread for each communicator.
  static void on_every(std::vector<std::unique_ptr<Communicator>>& communicators,
                       const std::function<void(Communicator&)>& body) {
    on_threads(communicators.size(), [&](std::size_t i) { body(*communicators[i]); });
  }
  static void on_every(const Membership& membership,
                       const std::function<void(Communicator&)>& body) {
    const auto nccl = backend();
    auto communicators = nccl->connect(membership);
    on_every(communicators, body);
  }

  // One sum on a stream, waited for as the trainer does.
  static float sum_partials(Communicator& communicator, float value, const char* label = "step 1") {
    StreamLane stream;
    std::vector<float> data(1000, value);
    communicator.all_reduce(data.data(), data.size(), DType::f32, stream, label);
    {
      const StreamWait wait(communicator, label);
      stream.drain();
    }
    communicator.supervision().throw_if_ended();
    return data.back();
  }

  Scratch scratch_;
  ReplicaGpus gpus_;
  std::mutex mutex_;
  std::vector<int> selected_;
};

TEST_F(Nccl, IsWhatMirroredIsOnGpus) {
  const auto nccl = backend();
  EXPECT_EQ(nccl->name(), "nccl");
  EXPECT_EQ(backend("mirrored/nccl")->name(), "nccl");
  EXPECT_EQ(backend("mirrored/ring+bf16")->name(), "mirrored/ring+bf16");
  EXPECT_EQ(make_backend("mirrored", backend_table(), wrapper_table())->name(), "mirrored");
  auto communicators = nccl->connect(replicas(3));
  EXPECT_EQ(selected_, (std::vector<int>{0, 1, 2}));
  on_every(communicators, [](Communicator& all) {
    EXPECT_TRUE(all.reduces(MemoryKind::device));
    EXPECT_FALSE(all.reduces(MemoryKind::host));
    EXPECT_EQ(sum_partials(all, static_cast<float>(1 + all.rank())), 6.0F);
  });
}

TEST_F(Nccl, MayBlock) {
  set("PACELINE_NCCL_BLOCKING", "1");
  on_every(replicas(2), [](Communicator& all) { EXPECT_EQ(sum_partials(all, 2.0F), 4.0F); });
}

TEST_F(Nccl, ReportsWhatIsInUse) {
  const auto nccl = backend();
  auto communicators = nccl->connect(replicas(2));
  expect_parts(nccl->description(), {"transports not known"});
  on_every(communicators, [](Communicator& all) { sum_partials(all, 1.0F); });
  const std::string description = nccl->description();
  expect_parts(description,
               {"NCCL 2.", "libnccl.so.2", "2 GPUs of 1 node,", "transports SHM/direct/direct x2"});
  // A user's own log stays theirs.
  set("NCCL_DEBUG", "WARN");
  const auto other = backend();
  auto more = other->connect(replicas(2));
  expect_parts(other->description(), {"the log that NCCL_DEBUG asks for"});
}

TEST_F(Nccl, ItsMemoryIsZeroedAndOutlivesNoMisuse) {
  on_every(replicas(2), [](Communicator& all) {
    const Memory memory = all.allocate(100000);
    ASSERT_EQ(memory.kind(), MemoryKind::device);
    ASSERT_EQ(memory.bytes(), 100000U);
    for (std::size_t i = 0; i < memory.bytes(); ++i) ASSERT_EQ(memory.data()[i], std::byte{0});
  });
}

TEST_F(Nccl, RefusesWhatItCannotServe) {
  Membership on_host = replicas(2);
  on_host.gpus = nullptr;
  expect_parts(backend()->serves(on_host).because(), {"use --device cuda"});
  EXPECT_TRUE(backend()->serves(replicas(2)));

  set("FAKE_NCCL_VERSION", "21403");
  const std::string old = backend()->serves(replicas(2)).because();
  expect_parts(old, {"NCCL 2.14.3 is too old: NCCL 2.19.0 is needed", "PACELINE_CUDA_LIBS"});
}

TEST_F(Nccl, TwoReplicasOnOneCardAreRefusedBeforeNcclSeesThem) {
  Membership membership = replicas(3);
  gpus_.gpus[2].pci = gpus_.gpus[0].pci;
  expect_error(ErrorKind::usage, {"ranks 0 and 2 have the same GPU 0000:00:00.0"},
               [&] { backend()->connect(membership); });
  EXPECT_TRUE(selected_.empty());
}

// One process for each rank may share; these are threads of one.
TEST_F(Nccl, ThreadsOfAProcessNeverShareACard) {
  set("NCCL_MULTI_RANK_GPU_ENABLE", "1");
  Membership membership = replicas(2);
  gpus_.gpus[1].pci = gpus_.gpus[0].pci;
  expect_error(ErrorKind::usage, {"ranks 0 and 1 have the same GPU", "lower --gpus"},
               [&] { backend()->connect(membership); });
}

TEST_F(Nccl, SlicesOfACardAreRefusedBelowTheVersionThatTellsThemApart) {
  Membership membership = replicas(2);
  for (Gpu& gpu : gpus_.gpus) {
    gpu.uuid = "GPU-" + std::to_string(gpu.index);
    gpu.pci = gpu.index == 0 ? "00000000:0A:00.0" : "0000:0a:00.0";
  }
  set("FAKE_NCCL_VERSION", "22909");
  backend()->connect(membership);  // whole cards of two nodes whose hosts have one name
  for (Gpu& gpu : gpus_.gpus) gpu.name = "NVIDIA H100 80GB HBM3 MIG 1g.10gb";
  expect_error(ErrorKind::usage,
               {"ranks 0 and 1 have the same GPU 0000:0a:00.0",
                "MIG slices of a GPU are the same to NCCL 2.29.9: use NCCL 2.30 or newer"},
               [&] { backend()->connect(membership); });
  gpus_.gpus[1].pci = "0000:0b:00.0";
  backend()->connect(membership);
  gpus_.gpus[1].pci = "0000:0a:00.0";
  set("FAKE_NCCL_VERSION", "23000");
  backend()->connect(membership);
}

// The library notes as misuse what its version gets wrong.
TEST_F(Nccl, DoesWithoutWhatItsVersionGetsWrong) {
  for (const char* version : {"21900", "22402", "22403", "22605", "22700", "22702", "22703"}) {
    SCOPED_TRACE(version);
    set("FAKE_NCCL_VERSION", version);
    on_every(replicas(2), [&](Communicator& all) {
      const Memory memory = all.allocate(1000);
      EXPECT_EQ(memory.kind(), MemoryKind::device);
      EXPECT_EQ(sum_partials(all, 1.0F), 2.0F);
      EXPECT_EQ(all.can_sum_in_graphs(), std::string(version) == "22703");
    });
  }
}

TEST_F(Nccl, RegistersMemoryFromTheVersionThatCan) {
  set("FAKE_NCCL_FAIL_CALL", "register:1");
  const auto allocate = [&](const char* version) {
    set("FAKE_NCCL_VERSION", version);
    const auto nccl = backend();
    auto communicators = nccl->connect(replicas(2));
    communicators[0]->allocate(1000);
  };
  EXPECT_NO_THROW(allocate("22402"));
  expect_error(ErrorKind::internal, {"registering the gradients' memory"},
               [&] { allocate("22403"); });
}

TEST_F(Nccl, GraphsRegisterNoMemoryBetweenNodesUnlessTheUserSaysSo) {
  const auto value_after = [&](const char* version, const char* set_before, bool between_nodes) {
    unsetenv("NCCL_GRAPH_REGISTER");
    if (set_before != nullptr) set("NCCL_GRAPH_REGISTER", set_before);
    set("FAKE_NCCL_VERSION", version);
    Membership membership = replicas(2);
    if (between_nodes) membership.process.local_size = 0;  // not all tasks are on this node
    backend()->connect(membership);
    const char* value = std::getenv("NCCL_GRAPH_REGISTER");
    return std::string(value == nullptr ? "unset" : value);
  };
  EXPECT_EQ(value_after("23107", nullptr, true), "0");
  EXPECT_EQ(value_after("23107", "1", true), "1");
  EXPECT_EQ(value_after("23107", nullptr, false), "unset");
  EXPECT_EQ(value_after("23200", nullptr, true), "unset");
}

TEST_F(Nccl, ReportsWhatItDoesWithout) {
  set("FAKE_NCCL_VERSION", "22605");
  const auto nccl = backend();
  EXPECT_TRUE(nccl->serves(replicas(2)));
  const std::string doctor = nccl->description();  // of any run
  expect_parts(doctor, {"NCCL 2.26.5 (", "); sums are queued between graphs, communicators block, ",
                        "between nodes", "MIG slices of one card are refused",
                        "; 2.27.3 or newer is recommended"});
  auto communicators = nccl->connect(replicas(2));
  const std::string record = nccl->description();  // of this one
  expect_parts(record, {"2 GPUs of 1 node, transports",
                        "sums are queued between graphs, communicators block;"});
  expect_no_parts(record, {"between nodes"});
}

// Each bound from both sides.
TEST(NcclQuirks, HoldForTheirVersions) {
  using nccl::find_quirks;
  using nccl::Quirks;
  struct Bound {
    bool Quirks::*quirk;
    int with, without;
    nccl::Situation situation;
  };
  const nccl::Situation none{false, false, false}, several{true, false, false},
      between_nodes{false, true, false}, one_card{false, false, true};
  for (const Bound& bound :
       {Bound{&Quirks::no_registration, 22402, 22403, none},
        Bound{&Quirks::no_sums_in_graphs, 22702, 22703, none},
        Bound{&Quirks::blocking, 22600, 22507, none}, Bound{&Quirks::blocking, 22605, 22700, none},
        Bound{&Quirks::blocking, 22702, 22703, several},
        Bound{&Quirks::blocking, 21903, 22703, several},
        Bound{&Quirks::no_graph_registration, 23107, 23200, between_nodes},
        Bound{&Quirks::no_graph_registration, 23107, 23200, {}},
        Bound{&Quirks::no_mig_slices, 22909, 23000, one_card},
        Bound{&Quirks::no_shared_cards, 23002, 23003, one_card}}) {
    SCOPED_TRACE(std::to_string(bound.with) + " and " + std::to_string(bound.without));
    EXPECT_TRUE(find_quirks(bound.with, bound.situation).*bound.quirk);
    EXPECT_FALSE(find_quirks(bound.without, bound.situation).*bound.quirk);
  }
  EXPECT_FALSE(find_quirks(22507, none).blocking);
  EXPECT_FALSE(find_quirks(22809, none).no_graph_registration);
  EXPECT_EQ(find_quirks(22703, none).text, "");
  EXPECT_EQ(find_quirks(22702, none).text,
            "sums are queued between graphs; 2.27.3 or newer is recommended");
  EXPECT_EQ(find_quirks(23200).text, "");
}

TEST_F(Nccl, AWrapperThatCastsOnTheHostIsRefused) {
  expect_error(ErrorKind::usage, {"nccl+bf16 cannot cast in GPU memory"},
               [&] { backend("mirrored+bf16")->connect(replicas(2)); });
}

TEST_F(Nccl, ALaneOfTheHostIsRefused) {
  const auto nccl = backend();
  auto communicators = nccl->connect(replicas(2));
  InlineLane lane;
  std::vector<float> data(10);
  expect_error(ErrorKind::usage, {"choose --device cuda", "bucket 0"}, [&] {
    communicators[0]->all_reduce(data.data(), 10, DType::f32, lane, "bucket 0");
  });
}

TEST_F(Nccl, JoiningEndsAtTheDeadlineWithTheCure) {
  set("FAKE_NCCL_STALL", "1");
  expect_error(ErrorKind::stall,
               {"rank 0: NCCL did not connect 2 ranks within", "NCCL_SOCKET_IFNAME", "firewall",
                "NCCL_DEBUG=INFO"},
               [&] {
                 backend()->connect(replicas(2, {0.1, 0.4}));
               });
}

// NCCL then fails the question itself and leaves the state as it was.
TEST_F(Nccl, ACommunicatorThatIsNoneEndsJoiningAtOnce) {
  set("FAKE_NCCL_INVALID", "1");
  const double start = now_seconds();
  expect_error(ErrorKind::internal, {"rank 0: joining: NCCL"}, [&] {
    backend()->connect(replicas(2, {1, 30}));
  });
  EXPECT_LT(now_seconds() - start, 15);
}

// As a library does that waits for a peer behind a firewall within its own call.
TEST_F(Nccl, JoiningThatDoesNotReturnEndsTheProcessWithTheCure) {
  const std::filesystem::path block = scratch_ / "block";
  std::ofstream(block) << "";
  std::string words;
  int code = 0;
  StallMonitor::Setup setup;
  setup.deadlines = {0.1, 0.2};
  setup.grace_seconds = 0.1;
  setup.on_fatal_error = [&](const Error& error) { words = error.what(); };
  setup.exit = [&](int with) {
    code = with;
    std::filesystem::remove(block);  // here the process goes on
  };
  {
    StallMonitor stall_monitor(setup);
    Membership membership = replicas(2);
    membership.stall_monitor = &stall_monitor;
    backend()->connect(membership);
  }
  EXPECT_EQ(code, 72);
  expect_parts(words, {"connecting the ranks by NCCL", "NCCL_SOCKET_IFNAME", "firewall"});
}

TEST_F(Nccl, AnErrorThatNcclFindsEndsTheWaits) {
  set("FAKE_NCCL_FAIL", "1:2");
  on_every(replicas(2), [](Communicator& all) {
    EXPECT_EQ(sum_partials(all, 1.0F), 2.0F);
    expect_error(ErrorKind::peer_lost,
                 {"rank 1: found by NCCL: NCCL: remote process exited or there was a network error",
                  "Connection closed by remote peer"},
                 [&] { sum_partials(all, 1.0F); });
    expect_error(ErrorKind::peer_lost, {"remote process"}, [&] { sum_partials(all, 1.0F); });
  });
}

TEST_F(Nccl, ARankThatDoesNotComeIsNamedAtTheDeadline) {
  on_every(replicas(3, {0.1, 0.5}), [](Communicator& all) {
    sum_partials(all, 1.0F);
    if (all.rank() == 1) return;
    expect_error(ErrorKind::stall, {"rank 1 did not come within", "step 2"},
                 [&] { sum_partials(all, 1.0F, "step 2"); });
  });
}

TEST_F(Nccl, AnAbortEndsTheWaitsOfTheWholeTask) {
  on_every(replicas(2), [](Communicator& all) {
    if (all.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return all.abort("rank 1: out of memory");
    }
    expect_error(ErrorKind::peer_lost, {"rank 1: out of memory"}, [&] { sum_partials(all, 1.0F); });
    expect_error(ErrorKind::peer_lost, {"rank 1"}, [&] { all.barrier(); });
  });
}

TEST(NcclLog, TransportsAreCountedWithoutWhichAdapter) {
  EXPECT_EQ(nccl::transports_in(
                "n1:7:9 [0] NCCL INFO Using network IB\n"
                "n1:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n"
                "n1:7:9 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n"
                "n1:7:9 [0] NCCL INFO Channel 00/0 : 3[3] -> 4[0] [receive] via NET/IB/3/GDRDMA\n"
                "n1:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 5[1] [send] via NET/IB/1(3)/GDRDMA\n"
                "n1:7:9 [0] NCCL INFO Channel 02/0 : 0[0] -> 5[1] [send] via NET/Socket/0\n"
                "n1:7:9 [0] NCCL INFO NVLS comm 0x5 headRank 0 nHeads 8 nvlsRanks 8\n"
                "n1:7:9 [0] NCCL INFO Connected all rings\n"),
            "NET/IB/GDRDMA x2, NET/Socket x1, NVLS, P2P/CUMEM/read x2");
  EXPECT_EQ(nccl::transports_in("nothing of the kind"), "");
}

TEST(NcclLog, ReportsWhatNcclWarnedOfLast) {
  EXPECT_EQ(nccl::warnings_in("n1:7:9 [0] NCCL INFO Bootstrap: Using eth0\n"), "");
  std::string log;
  for (const char* warning : {"one", "two", "two", "three", "four"}) {
    log += std::string("\nn1:7:9 [0] transport/p2p.cc:219 NCCL WARN ") + warning + "\n";
  }
  EXPECT_EQ(nccl::warnings_in(log), "two; three; four");
}

TEST(NcclLog, ReportsRanksOfANodeThatDoNotCopyDirectly) {
  const std::string
      within = "n1:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n",
      between = "n1:7:9 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0\n",
      shared = "n1:7:9 [0] NCCL INFO Channel 01 : 2[0] -> 3[1] via SHM/direct/direct\n",
      network = "n1:7:9 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[0] [receive] via NET/Socket/0\n";
  const std::vector<std::string> hosts = {"n1", "n1", "n2", "n2"};
  EXPECT_EQ(nccl::detour_in(within + between, hosts), "");
  EXPECT_EQ(nccl::detour_in(within + between + shared, hosts),
            "ranks 2 and 3 by SHM/direct/direct");
  EXPECT_EQ(nccl::detour_in(network, hosts), "ranks 0 and 1 by NET/Socket");
}

TEST(NcclBackend, WithoutTheLibraryItReportsWhereItWouldLook) {
  Membership membership;
  const auto nccl = make_backend("nccl", backend_table(), wrapper_table());
  // Where the toolkit that this was built with has one, that it needs a GPU.
  const std::string why = nccl->serves(membership).because();
  EXPECT_TRUE(contains(why, "PACELINE_CUDA_LIBS") || contains(why, "--device cuda")) << why;
}

}  // namespace
}  // namespace paceline
