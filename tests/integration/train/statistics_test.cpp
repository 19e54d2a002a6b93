// Running averages of replicas: apart in training, averaged or local in evaluation.
#include <gtest/gtest.h>

#include <thread>

#include "engine/comm/backend.h"
#include "engine/train/evaluation.h"
#include "engine/train/trainer.h"
#include "tests/integration/made.h"

namespace paceline {
namespace {

constexpr int kReplicas = 2, kBatch = 8;

Network network() {
  Network n("small", {8, 8, 2}, 4);
  n.conv(6, 3, 2, 1).batch_norm(1e-3, 0.7).relu().conv(5, 3).batch_norm(1e-3, 0.7).relu();
  n.global_average_pool().dense(4);
  return n;
}

std::vector<std::vector<double>> count_statistics(const Program& program, const Plan& plan) {
  std::vector<std::vector<double>> all;
  for (std::size_t i = 0; i < plan.statistics.size(); ++i) {
    all.push_back(program.read_statistic(static_cast<int>(i)));
  }
  return all;
}

struct Ended {
  TrainingOutcome outcome;
  std::vector<std::vector<double>> statistics;
  LossSums own;   // on the test set, with this replica's averages
  LossSums mean;  // with the mean of all replicas'
};

LossSums evaluate_part(Trainer& trainer, const Dataset& test, std::size_t begin, std::size_t end) {
  trainer.program().take_sums();
  for (std::size_t at = begin; at < end; at += kBatch) {
    Batch batch;
    batch.images = test.images.data() + at * test.sample_bytes();
    batch.labels = test.labels.data() + at;
    batch.samples = batch.global_samples =
        static_cast<int>(std::min<std::size_t>(kBatch, end - at));
    trainer.program().forward(batch, Mode::evaluate);
  }
  return trainer.program().take_sums();
}

std::vector<Ended> train(NormStatistics statistics, const DatasetPair& data) {
  const Network net = network();
  TrainConfig config;
  config.replicas = kReplicas;
  config.batch_per_replica = kBatch;
  config.epochs = 2;
  config.norm_statistics = statistics;
  Membership membership;
  membership.replicas_here = kReplicas;
  const auto backend = find_maker(backend_table(), "mirrored")();
  const auto communicators = backend->connect(membership);
  std::vector<Ended> ended(kReplicas);
  const auto one = [&](std::size_t rank) {
    Trainer::Setup setup{};
    setup.config = &config;
    setup.network = &net;
    setup.data = &data;
    setup.communicator = communicators[rank].get();
    setup.device = make_device("reference", "fp64");
    Trainer trainer(std::move(setup));
    Ended& mine = ended[rank];
    mine.outcome = trainer.run();
    mine.statistics = count_statistics(trainer.program(), trainer.plan());
    const std::size_t half = data.test.samples / kReplicas;
    mine.own = evaluate_part(trainer, data.test, rank * half, (rank + 1) * half);
    with_averaged_statistics(trainer.program(), trainer.plan(), *communicators[rank], [&] {
      mine.mean = evaluate_part(trainer, data.test, rank * half, (rank + 1) * half);
    });
    EXPECT_EQ(count_statistics(trainer.program(), trainer.plan()), mine.statistics)
        << "not restored";
  };
  std::thread second(one, 1);
  one(0);
  second.join();
  return ended;
}

class Statistics : public ::testing::Test {
 protected:
  const DatasetPair data_ = synthetic_images(8, 8, 2, 4, 100, 40, 3);
};

TEST_F(Statistics, OfReplicasDifferWhileParametersAgree) {
  const std::vector<Ended> ended = train(NormStatistics::averaged, data_);
  EXPECT_NE(ended[0].statistics, ended[1].statistics);
  EXPECT_EQ(ended[0].outcome.quality.parameter_checksum,
            ended[1].outcome.quality.parameter_checksum);
}

TEST_F(Statistics, EvaluationTakesTheirMeanOrEachItsOwn) {
  const std::vector<Ended> averaged = train(NormStatistics::averaged, data_);
  const std::vector<Ended> local = train(NormStatistics::local, data_);
  ASSERT_EQ(averaged[0].statistics, local[0].statistics);
  const auto samples = static_cast<double>(data_.test.samples);
  const double with_mean = (averaged[0].mean.loss + averaged[1].mean.loss) / samples;
  const double with_own = (local[0].own.loss + local[1].own.loss) / samples;
  EXPECT_NE(with_mean, with_own);
  EXPECT_NEAR(averaged[0].outcome.quality.epochs.back().test_loss.value(), with_mean, 1e-12);
  EXPECT_NEAR(local[0].outcome.quality.epochs.back().test_loss.value(), with_own, 1e-12);
}

}  // namespace
}  // namespace paceline
