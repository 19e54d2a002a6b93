#include <gtest/gtest.h>

#include "engine/launch/topology.h"
#include "tests/support/expect_error.h"

namespace paceline {
namespace {

std::vector<Gpu> node_name(int gpus) {
  std::vector<Gpu> all;
  for (int i = 0; i < gpus; ++i) {
    all.push_back(
        {i, "0000:" + std::to_string(10 + i) + ":00.0", "GPU-" + std::to_string(i), "NVIDIA H200"});
  }
  return all;
}

ProcessRank process(int local_rank, int local_size) {
  ProcessRank process;
  process.rank = process.local_rank = local_rank;
  process.size = process.local_size = local_size;
  return process;
}

std::vector<int> indices(const std::vector<Gpu>& gpus) {
  std::vector<int> found;
  for (const Gpu& gpu : gpus) found.push_back(gpu.index);
  return found;
}

using Indices = std::vector<int>;

TEST(Gpus, TheLocalRankChoosesAmongThoseOfTheNode) {
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(indices(choose_gpus(node_name(4), process(rank, 4), 1, {})), Indices{rank});
  }
  EXPECT_EQ(indices(choose_gpus(node_name(8), process(1, 2), 3, {})), (Indices{3, 4, 5}));
}

TEST(Gpus, WhatTheLauncherGaveThisTaskAloneIsTaken) {
  EXPECT_EQ(indices(choose_gpus(node_name(1), process(3, 4), 1, {})), Indices{0});
  EXPECT_EQ(indices(choose_gpus(node_name(2), process(1, 2), 2, {})), (Indices{0, 1}));
}

TEST(Gpus, OneTaskTakesAsManyAsItHasReplicas) {
  EXPECT_EQ(indices(choose_gpus(node_name(4), process(0, 1), 2, {})), (Indices{0, 1}));
}

TEST(Gpus, TooFewAreRefusedWithTheCure) {
  expect_error(ErrorKind::usage,
               {"4 replicas on this node need 4 GPUs, but 2 are visible",
                "CUDA_VISIBLE_DEVICES=0,1", "unset CUDA_VISIBLE_DEVICES"},
               [] {
                 choose_gpus(node_name(2), process(0, 4), 1, {{"CUDA_VISIBLE_DEVICES", "0,1"}});
               });
  expect_error(ErrorKind::usage, {"--gres=gpu:", "--gpu-bind=none"}, [] {
    choose_gpus(node_name(2), process(0, 1), 4, {{"SLURM_JOB_ID", "7"}});
  });
  expect_error(ErrorKind::usage, {"0 are visible"},
               [] { choose_gpus({}, process(0, 1), 1, {}, GpuSharing::allowed); });
}

TEST(Gpus, SharingGoesRoundWhereItIsAllowed) {
  EXPECT_EQ(indices(choose_gpus(node_name(2), process(3, 4), 1, {}, GpuSharing::allowed)),
            Indices{1});
}

TEST(Gpus, TwoRanksOnOneCardAreNamed) {
  const auto card = [](const char* host, const char* pci) {
    return describe_card({0, pci, "", ""}, host);
  };
  check_distinct(
      {card("n1", "0000:0a:00.0"), card("n1", "0000:0b:00.0"), card("n2", "0000:0a:00.0")}, {});
  expect_error(ErrorKind::usage,
               {"ranks 1 and 3 have the same GPU 0000:0b:00.0", "host n1", "--gres=gpu:3"}, [&] {
                 check_distinct({card("n1", "0000:0a:00.0"), card("n1", "0000:0B:00.0"),
                                 card("n2", "0000:0b:00.0"), card("n1", "00000000:0b:00.0")},
                                {{"SLURM_JOB_ID", "7"}});
               });
}

// Images of clouds call every host "localhost", and parts of a card (MIG) share its PCI id.
TEST(Gpus, AreDistinguishedByTheirUuid) {
  const auto card = [](const char* uuid) {
    return describe_card({0, "0000:0a:00.0", uuid, ""}, "localhost");
  };
  check_distinct({card("GPU-1"), card("GPU-2"), card("MIG-1")}, {});
  expect_error(ErrorKind::usage, {"ranks 0 and 2 have the same GPU"}, [&] {
    check_distinct({card("GPU-1"), card("GPU-2"), card("GPU-1")}, {});
  });
}

// CUDA gives the UUID of a slice as that of a card.
TEST(Gpus, SlicesOfACardAreNamedMig) {
  const auto uuid = [](const char* name, const char* given) {
    return std::string(describe_card({0, "0000:0a:00.0", given, name}, "n1").uuid.data());
  };
  EXPECT_EQ(uuid("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "GPU-5c8b"), "MIG-5c8b");
  EXPECT_EQ(uuid("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "MIG-5c8b"), "MIG-5c8b");
  EXPECT_EQ(uuid("NVIDIA H100 80GB HBM3 MIG 1g.10gb", ""), "");
  EXPECT_EQ(uuid("NVIDIA H100 80GB HBM3", "GPU-5c8b"), "GPU-5c8b");
}

TEST(Gpus, ACureOfTheLibrarysReplacesTheGeneralOne) {
  const GpuCard card = describe_card({0, "0000:0a:00.0", "", ""}, "n1");
  expect_error(ErrorKind::usage, {"ranks 0 and 1 have the same GPU", "use a newer one"}, [&] {
    check_distinct({card, card}, {}, "use a newer one");
  });
}

TEST(Gpus, SharingByNcclIsEnabledByItsVariable) {
  EXPECT_TRUE(is_nccl_sharing_enabled({{"NCCL_MULTI_RANK_GPU_ENABLE", "1"}}));
  EXPECT_FALSE(is_nccl_sharing_enabled({{"NCCL_MULTI_RANK_GPU_ENABLE", "0"}}));
  EXPECT_FALSE(is_nccl_sharing_enabled({}));
  EXPECT_TRUE(are_nccl_ranks_nodes({{"PACELINE_NCCL_RANKS_AS_NODES", "1"}}));
  EXPECT_FALSE(are_nccl_ranks_nodes({}));
}

TEST(Gpus, PciIdsHaveOneForm) {
  EXPECT_EQ(canonical_pci("00000000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(canonical_pci("0000:1b:00.0"), "0000:1b:00.0");
  EXPECT_EQ(canonical_pci("00010000:1B:00.0"), "00010000:1b:00.0");
}

}  // namespace
}  // namespace paceline
