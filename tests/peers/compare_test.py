"""The arithmetic of compare.py: who is the fastest, and which runs a ratio pairs. Needs no peer."""
import unittest

import compare


def pairs(*times, limit=0.5):
    return [{"ours": ours, "theirs": theirs, "limit": limit} for ours, theirs in times]


class Summary(unittest.TestCase):
    def test_the_fastest_is_judged_by_adjacent_runs(self):
        # The machine halved its speed while JAX was measured: its steps are longer, its ratios lower.
        summary = compare.summarize({"PyTorch eager": pairs((1, 3), (1, 3), (1, 3.2)),
                                     "JAX": pairs((2, 4), (2, 4.4), (2, 3.6))})
        self.assertEqual(summary["fastest"], "JAX")
        jax = summary["peers"]["JAX"]
        self.assertEqual((jax["ratio"], jax["ratio_low"], jax["ratio_high"]), (2, 1.8, 2.2))
        self.assertEqual(jax["step_seconds"], 4)

    def test_a_peer_of_fewer_rounds_is_not_the_fastest(self):
        summary = compare.summarize({"TensorFlow": pairs((1, 2), (1, 3), (1, 3)), "JAX": pairs((1, 2.5))})
        self.assertEqual(summary["fastest"], "TensorFlow")
        self.assertEqual(summary["peers"]["JAX"]["rounds"], 1)

    def test_shares_of_the_peak_are_of_each_run(self):
        summary = compare.summarize({"JAX": pairs((1, 2)) + pairs((2, 4), limit=1.2)})
        self.assertAlmostEqual(summary["share_of_peak"], (0.5 + 0.6) / 2)
        self.assertAlmostEqual(summary["peers"]["JAX"]["share_of_peak"], (0.25 + 0.3) / 2)

    def test_a_setting_is_chosen_by_its_ratio(self):
        tried = dict(zip(("channels_last", "NCHW"), pairs((1, 3), (2, 4))))
        self.assertEqual(compare.choose_setting(tried), "NCHW")

    def test_slow_peers_are_left_out_of_later_rounds(self):
        first = dict(zip(("JAX", "TensorFlow", "PyTorch compiled"), pairs((1, 2), (1, 4), (1, 4.1))))
        self.assertEqual(compare.keep_near(first, 2), ["JAX", "TensorFlow"])


class Checks(unittest.TestCase):
    ours = {"parameter_count": 10, "global_batch": 64, "precision": "fp32"}

    def test_equal_work_passes(self):
        compare.check_peer("JAX", self.ours, {**self.ours, "first_loss": 2, "loss": 1})

    def test_unequal_work_is_refused(self):
        for key, value in (("parameter_count", 9), ("global_batch", 32), ("precision", "bf16")):
            with self.assertRaisesRegex(SystemExit, key):
                compare.check_peer("JAX", self.ours, {**self.ours, key: value, "first_loss": 2, "loss": 1})

    def test_a_loss_that_does_not_fall_is_refused(self):
        for loss in (2, 3, float("nan")):
            with self.assertRaisesRegex(SystemExit, "does not fall"):
                compare.check_peer("JAX", self.ours, {**self.ours, "first_loss": 2, "loss": loss})


class Tables(unittest.TestCase):
    def test_the_fastest_stands_in_the_first_table_and_all_in_the_second(self):
        cell = {"cell": ("mnist-cnn", "fp32", 64, 2), "pairs": {"JAX": pairs((0.001, 0.003), (0.001, 0.0034)), "TensorFlow": pairs((0.001, 0.004))},
                "settings": {"JAX": {"best": "a step a call"}, "TensorFlow": {"best": "oneDNN"}}, "busy": 0, "runs": 3,
                "probes": [{"flops_per_second": 2.5e11, "bytes_per_second": 1e10}], "parameter_count": 347146}
        for pair in sum(cell["pairs"].values(), []):
            pair["limit"] = 0.0006
        text = compare.markdown("mnist", [cell], {"JAX": "0.12, jaxlib 0.12"}, 2, "compare.py")
        first, second = text.split("All peers")
        self.assertIn("| mnist-cnn | fp32 | 64 | 2 | 1.000 | JAX | 3.200 | **3.20** | 3.00 to 3.40 | 60 % |", first)
        self.assertNotIn("TensorFlow", first)
        self.assertIn("| TensorFlow | oneDNN | 1 | 4.000 | 16,000 | 4.00 |  | 15 % |", second)
        self.assertIn("- JAX 0.12, jaxlib 0.12", second)


if __name__ == "__main__":
    unittest.main()
