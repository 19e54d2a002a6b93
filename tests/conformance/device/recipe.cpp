#include "tests/conformance/device/recipe.h"

#include <gtest/gtest.h>

#include <cmath>

namespace paceline::conformance {

namespace {

// With and without decay, in stretches longer than a vector and shorter ones.
Network network() {
  Network n("recipe", {7, 7, 1}, 3);
  n.conv(8, 3).batch_norm(1e-3, 0.9).relu().flatten().dense(21).relu().dense(3);
  return n;
}

Replica format_reference(const Network& network, int batch) {
  return Replica(make_device("reference"), network, batch, false);
}

UpdateRule describe_rule(Optimizer optimizer, int kind, long step) {
  UpdateRule rule = update_rule(optimizer, 0.01, 0.9, step);
  switch (kind) {
    case 0:
      rule.clip_norm = 3;
      break;
    case 1:
      rule.clip_norm = 1e9;  // longer than any gradient here
      rule.decay = 0.01;
      break;
    case 2:
      rule.l2 = 0.1;
      break;
    default:
      rule.clip_norm = 2;
      rule.decay = 0.02;
  }
  return rule;
}

void write_gradients(Replica& tested, Replica& reference, RandomSequence& random) {
  for (const ParameterInfo& info : reference.plan().parameters) {
    std::vector<double> g(info.elements);
    for (double& value : g) value = static_cast<float>(random.normal());
    tested.program().write_gradient(tested.parameter_index(info.name), g);
    reference.program().write_gradient(reference.parameter_index(info.name), g);
  }
}

void update(Replica& replica, const UpdateRule& rule) {
  const std::size_t middle = replica.plan().ready.front().elements;
  Program& program = replica.program();
  if (rule.clip_norm > 0) program.measure_gradients(rule);
  program.update(rule, 0, middle);
  program.update(rule, middle, replica.plan().arena_elements);
  program.take_sums();
}

void compare_parameters(Replica& tested, Replica& reference, double bound) {
  for (const ParameterInfo& info : reference.plan().parameters) {
    const auto a = tested.program().read_parameter(tested.parameter_index(info.name));
    const auto b = reference.program().read_parameter(reference.parameter_index(info.name));
    EXPECT_LT(relative_error(a, b), bound) << info.name;
  }
}

// Outputs that do not depend on the sample, some of them equal.
void write_equal_outputs(Replica& replica) {
  Program& program = replica.program();
  const auto elements = [&](const char* name) {
    return replica.plan()
        .parameters[static_cast<std::size_t>(replica.parameter_index(name))]
        .elements;
  };
  program.write_parameter(replica.parameter_index("dense/kernel"),
                          std::vector<double>(elements("dense/kernel"), 0.0));
  std::vector<double> bias(elements("dense/bias"));
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<double>(i / 3 % 4);
  replica.write("dense/bias", bias);
}

}  // namespace

void follow_losses(const MakeReplica& make) {
  for (const int classes : {3, 12, 300}) {
    for (const double smoothing : {0.0, 0.1, 1.0}) {
      SCOPED_TRACE(std::to_string(classes) + " classes, " + std::to_string(smoothing));
      Network n("losses", {3, 3, 1}, classes);
      n.flatten().dense(classes).set_loss({.label_smoothing = smoothing});
      Replica tested = make(n, 40), reference = format_reference(n, 40);
      for (const bool equal : {false, true}) {
        if (equal) {
          write_equal_outputs(tested);
          write_equal_outputs(reference);
        }
        const RandomBatch inputs(n, 38, 40, 9);
        for (Replica* one : {&tested, &reference}) {
          one->program().forward(inputs.batch(), Mode::train);
        }
        const LossSums a = tested.program().take_sums(), b = reference.program().take_sums();
        EXPECT_NEAR(a.loss, b.loss, 1e-5 * b.loss);
        EXPECT_EQ(a.correct, b.correct);
        EXPECT_EQ(a.top5, b.top5);
        EXPECT_EQ(b.top5 == b.samples, classes == 3);
        EXPECT_GE(b.top5, b.correct);
        tested.backward();
        reference.backward();
        EXPECT_LT(relative_error(tested.gradient("dense/bias"), reference.gradient("dense/bias")),
                  1e-5);
      }
    }
  }
}

void follow_updates(const MakeReplica& make, double bound) {
  const Network n = network();
  for (const Optimizer optimizer :
       {Optimizer::sgd, Optimizer::momentum, Optimizer::adagrad, Optimizer::adam}) {
    for (int kind = 0; kind < 4; ++kind) {
      SCOPED_TRACE(std::string(to_string(optimizer)) + ", kind " + std::to_string(kind));
      Replica tested = make(n, 4), reference = format_reference(n, 4);
      RandomSequence random(3, Stream::synthetic, 1);
      for (long step = 1; step <= 5; ++step) {  // often enough to be captured and replayed
        write_gradients(tested, reference, random);
        for (Replica* one : {&tested, &reference})
          update(*one, describe_rule(optimizer, kind, step));
      }
      compare_parameters(tested, reference, bound);
    }
  }
}

void follow_accumulation(const MakeReplica& make, double bound) {
  const Network n = network();
  Replica tested = make(n, 4), reference = format_reference(n, 4);
  const auto put_together = [&n](Replica& replica) {
    const std::size_t all = replica.plan().arena_elements;
    const std::size_t middle = replica.plan().ready.front().elements;
    Program& program = replica.program();
    const int last = static_cast<int>(replica.plan().operations.size()) - 1;
    std::uint32_t seed = 5;
    for (const Accumulate which : {Accumulate::first, Accumulate::more, Accumulate::last}) {
      const RandomBatch inputs(n, which == Accumulate::more ? 3 : 4, 11, ++seed);
      program.forward(inputs.batch(), Mode::train);
      program.backward(last, 0);
      program.wait_for_input();  // before the batch goes
      if (which != Accumulate::last) {
        program.accumulate(which, 0, all);
        continue;
      }
      program.accumulate(which, 0, middle);
      program.accumulate(which, middle, all);
    }
  };
  for (long step = 1; step <= 3; ++step) {
    put_together(tested);
    put_together(reference);
    double norm = 0;
    for (const ParameterInfo& info : reference.plan().parameters) {
      const auto a = tested.gradient(info.name), b = reference.gradient(info.name);
      if (!reference.is_cancelled_bias(reference.parameter_index(info.name))) {
        EXPECT_LT(relative_error(a, b), bound) << info.name;
      }
      for (const double value : b) norm += value * value;
    }
    UpdateRule rule = update_rule(Optimizer::sgd, 0.01, 0, step);
    rule.clip_norm = std::sqrt(norm) / 2;
    for (Replica* one : {&tested, &reference}) update(*one, rule);
    compare_parameters(tested, reference, bound);
  }
}

}  // namespace paceline::conformance
