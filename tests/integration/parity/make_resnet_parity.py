#!/usr/bin/env python3
"""Makes resnet_parity.json: ResNets in locked steps by PyTorch in float64.

  pip install torch numpy && python3 make_resnet_parity.py > resnet_parity.json

Networks, gradients and batch normalisation are PyTorch's, the update is w += a, a = 0.9 a - rate g.
Weights, images and labels follow formulas that resnets.cpp repeats. Of each array that a step leaves
(gradients, then running averages behind it) the file holds the norm, the element in the middle and the
last one, in Keras' layout. Biases before a normalisation are left out: their gradients are rounding
errors around zero. resnet_test.cpp checks the device `reference` against these numbers.
"""
import json
import numpy as np
import torch
from torch.nn import functional as F


def random_bits(count, stream):
    """32 bits each: MurmurHash3's finalizer."""
    mask = np.uint64(0xFFFFFFFF)
    h = (np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B1) + np.uint64(stream * 0x85EBCA77)) & mask
    h = ((h ^ (h >> np.uint64(16))) * np.uint64(0x85EBCA6B)) & mask
    h = ((h ^ (h >> np.uint64(13))) * np.uint64(0xC2B2AE35)) & mask
    return h ^ (h >> np.uint64(16))


def spread(shape, stream, limit, middle=0.0):
    uniform = random_bits(int(np.prod(shape)), stream).astype(np.float64) / 2**32
    return torch.tensor(((2 * uniform - 1) * limit + middle).reshape(shape), requires_grad=True)


def glorot(shape, stream, fan_in, fan_out):
    return spread(shape, stream, (6.0 / (fan_in + fan_out)) ** 0.5)


class Net:
    """Layers in the order in which they are described; called with images it computes."""

    def __init__(self):
        self.arrays, self.averages, self.layers, self.cancelled = {}, {}, 0, set()

    def conv(self, name, x, filters, kernel, stride=1, bias_cancels=True):
        if name + "/kernel" not in self.arrays:
            inputs = x.shape[1]
            self.arrays[name + "/bias"] = spread((filters,), 1000 + self.layers, 0.1)
            self.arrays[name + "/kernel"] = glorot((kernel, kernel, inputs, filters), self.layers,
                                                   inputs * kernel ** 2, filters * kernel ** 2)
            self.layers += 1
            if bias_cancels:
                self.cancelled.add(name + "/bias")
        w = self.arrays[name + "/kernel"].permute(3, 2, 0, 1)
        return F.conv2d(x, w, self.arrays[name + "/bias"], stride, kernel // 2)

    def norm(self, name, x, epsilon=1.001e-5, momentum=0.99):
        if name + "/gamma" not in self.arrays:
            channels = x.shape[1]
            self.arrays[name + "/beta"] = spread((channels,), 1000 + self.layers, 0.1)
            self.arrays[name + "/gamma"] = spread((channels,), self.layers, 0.1, 0.2 if name.endswith("_3_bn") else 1.0)
            self.averages[name + "/moving_mean"] = torch.zeros(channels, dtype=torch.float64)
            self.averages[name + "/moving_variance"] = torch.ones(channels, dtype=torch.float64)
            self.layers += 1
        return F.batch_norm(x, self.averages[name + "/moving_mean"], self.averages[name + "/moving_variance"],
                            self.arrays[name + "/gamma"], self.arrays[name + "/beta"], True, 1 - momentum, epsilon)

    def unit(self, name, x, filters, kernel, stride=1):
        return self.norm(name + "_bn", self.conv(name + "_conv", x, filters, kernel, stride))

    def dense(self, name, x, units):
        if name + "/kernel" not in self.arrays:
            inputs = x.shape[1]
            self.arrays[name + "/bias"] = spread((units,), 1000 + self.layers, 0.1)
            self.arrays[name + "/kernel"] = glorot((inputs, units), self.layers, inputs, units)
            self.layers += 1
        return x @ self.arrays[name + "/kernel"] + self.arrays[name + "/bias"]


def small(net, x):
    x = F.max_pool2d(F.relu(net.unit("stem", x, 8, 5, 2)), 3, 2, 1)
    x = F.relu(net.unit("a2", F.relu(net.unit("a1", x, 8, 3)), 8, 3) + x)
    down = net.unit("b0", x, 12, 1, 2)
    x = F.relu(net.unit("b2", F.relu(net.unit("b1", x, 12, 3, 2)), 12, 3) + down)
    return net.dense("dense", x.mean((2, 3)), 4)


def resnet50(net, x):
    x = F.max_pool2d(F.relu(net.unit("conv1", x, 64, 7, 2)), 3, 2, 1)
    for stage, filters, blocks in ((2, 64, 3), (3, 128, 4), (4, 256, 6), (5, 512, 3)):
        for block in range(1, blocks + 1):
            name = f"conv{stage}_block{block}"
            stride = 2 if block == 1 and stage > 2 else 1
            shortcut = net.unit(name + "_0", x, 4 * filters, 1, stride) if block == 1 else x
            y = F.relu(net.unit(name + "_1", x, filters, 1, stride))
            y = F.relu(net.unit(name + "_2", y, filters, 3))
            x = F.relu(net.unit(name + "_3", y, 4 * filters, 1) + shortcut)
    return net.dense("dense", x.mean((2, 3)), 10)


def batch(step, samples, height, width, classes):
    pixels = random_bits(samples * height * width * 3, 3000 + step) >> np.uint64(24)
    images = torch.tensor(pixels.astype(np.float64).reshape(samples, height, width, 3) / 255)
    labels = [(step * samples + n) * 7 // 3 % classes for n in range(samples)]
    return images.permute(0, 3, 1, 2), torch.tensor(labels)


def rounded(value):
    return float(f"{value:.12g}")


def digest(array):
    flat = array.detach().reshape(-1)
    return [rounded(v) for v in (flat.norm().item(), flat[len(flat) // 2].item(), flat[-1].item())]


def train(forward, samples, height, width, classes, rate, shown=(0, 1, 5, 20)):
    net, moments, steps = Net(), {}, []
    for step in range(max(shown) + 1):
        images, labels = batch(step, samples, height, width, classes)
        if step == 0:
            forward(net, images)  # makes the arrays, and moves the averages on
            for name, average in net.averages.items():
                average.fill_(1 if name.endswith("variance") else 0)
        loss = F.cross_entropy(forward(net, images), labels)
        gradients = dict(zip(net.arrays, torch.autograd.grad(loss, list(net.arrays.values()))))
        if step in shown:
            steps.append({"step": step, "loss": rounded(loss.item()),
                          "gradients": [digest(g) for n, g in gradients.items() if n not in net.cancelled],
                          "statistics": [digest(a) for a in net.averages.values()]})
        with torch.no_grad():
            for name, g in gradients.items():
                moments[name] = 0.9 * moments.get(name, 0) - rate * g
                net.arrays[name] += moments[name]
    return {"gradients": [n for n in net.arrays if n not in net.cancelled],
            "statistics": list(net.averages), "steps": steps}


if __name__ == "__main__":
    result = {"made_by": "make_resnet_parity.py, PyTorch " + torch.__version__.split("+")[0],
              "small": train(small, 6, 21, 19, 4, 0.01),
              "resnet50": train(resnet50, 4, 64, 64, 10, 0.0001)}
    print(json.dumps(result, separators=(",", ":")).replace("],", "],\n"))
