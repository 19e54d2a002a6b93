"""Prints what TensorBoard's own reader finds below a run's folder: side, tag, step, value.

A histogram's value is its number of buckets."""
import os
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util

for side in sorted(os.listdir(sys.argv[1])):
    accumulator = EventAccumulator(os.path.join(sys.argv[1], side), {"tensors": 0})
    accumulator.Reload()
    for tag in accumulator.Tags()["tensors"]:
        metadata = accumulator.SummaryMetadata(tag)
        plugin = metadata.plugin_data.plugin_name
        for event in accumulator.Tensors(tag):
            array = tensor_util.make_ndarray(event.tensor_proto)
            if plugin == "histograms":
                assert array.shape[1] == 3, (tag, array.shape)
                print(side, tag, event.step, array.shape[0])
            else:
                assert plugin == "scalars", (tag, plugin)
                print(side, tag, event.step, repr(float(array)))
