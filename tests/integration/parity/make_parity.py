#!/usr/bin/env python3
"""Makes parity.json: 100 training losses of each MNIST workload by PyTorch in float64.

  pip install torch numpy && python3 make_parity.py ../../../data/mnist > parity.json

Networks and gradients are PyTorch's; Adam is written out in Keras' form (epsilon outside the bias
correction). Weights follow a formula that parity_test.cpp repeats; step t takes samples
[64 t, 64 t + 64) of the training file, with positions 0 to 63 of epoch t; dropout bits are those of
engine/core/random.h. parity_test.cpp checks the device `reference` against these numbers.
"""
import gzip, json, sys
import numpy as np
import torch
from torch.nn import functional as F

BATCH, STEPS, RATE, SEED = 64, 100, 0.001, 7


def load(folder):
    images = np.frombuffer(gzip.open(f"{folder}/train-images-idx3-ubyte.gz").read(), np.uint8, offset=16)
    labels = np.frombuffer(gzip.open(f"{folder}/train-labels-idx1-ubyte.gz").read(), np.uint8, offset=8)
    return torch.tensor(images.reshape(-1, 1, 28, 28) / 255.0), torch.tensor(labels.astype(np.int64))


def weights(shape, index, fan_in, fan_out):
    count = int(np.prod(shape))
    i = np.arange(count, dtype=np.uint64)
    bits = (i * np.uint64(2654435761) + np.uint64(40503 * (index + 1))) % np.uint64(2**32)
    uniform = bits.astype(np.float64) / 2**32
    limit = (6.0 / (fan_in + fan_out)) ** 0.5
    return torch.tensor(((2 * uniform - 1) * limit).reshape(shape), requires_grad=True)


def zeros(n):
    return torch.zeros(n, dtype=torch.float64, requires_grad=True)


def philox(counter, key):
    c0, c1, c2, c3 = [np.asarray(c, dtype=np.uint64) for c in counter]
    low, high, mask = np.uint64(key[0]), np.uint64(key[1]), np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (b >> np.uint64(32)) ^ c1 ^ low, b & mask, (a >> np.uint64(32)) ^ c3 ^ high, a & mask
        low, high = (low + np.uint64(0x9E3779B9)) & mask, (high + np.uint64(0xBB67AE85)) & mask
    return c0, c1, c2, c3


def dropout_mask(step, elements, rate):
    key = philox((SEED, 0, 3, 0), (0x70616365, 0x6C696E65))[:2]
    position, block = np.meshgrid(np.arange(BATCH), np.arange(elements // 8), indexing="ij")
    words = philox((block, position, np.full_like(block, step), np.zeros_like(block)), key)
    halves = [half for word in words for half in (word & np.uint64(0xFFFF), word >> np.uint64(16))]
    bits = np.stack(halves, axis=-1).reshape(BATCH, elements)
    return torch.tensor((bits >= int(rate * 65536 + 0.5)) / (1 - rate))


def mlp():
    p = [weights((784, 512), 0, 784, 512), zeros(512), weights((512, 10), 1, 512, 10), zeros(10)]

    def forward(x, step):
        h = F.relu(x.reshape(BATCH, -1) @ p[0] + p[1]) * dropout_mask(step, 512, 0.2)
        return h @ p[2] + p[3]

    return p, forward


def cnn():
    p = [weights((3, 3, 1, 32), 0, 9, 288), zeros(32), weights((5408, 64), 1, 5408, 64), zeros(64),
         weights((64, 10), 2, 64, 10), zeros(10)]

    def forward(x, step):
        h = F.max_pool2d(F.relu(F.conv2d(x, p[0].permute(3, 2, 0, 1), p[1])), 2)
        h = h.permute(0, 2, 3, 1).reshape(BATCH, -1)  # NHWC, as Keras flattens
        return F.relu(h @ p[2] + p[3]) @ p[4] + p[5]

    return p, forward


def train(build, images, labels):
    parameters, forward = build()
    first = [torch.zeros_like(p) for p in parameters]
    second = [torch.zeros_like(p) for p in parameters]
    losses = []
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        loss = F.cross_entropy(forward(images[rows], step), labels[rows])
        gradients = torch.autograd.grad(loss, parameters)
        losses.append(loss.item())
        alpha = RATE * (1 - 0.999 ** (step + 1)) ** 0.5 / (1 - 0.9 ** (step + 1))
        with torch.no_grad():
            for p, g, m, v in zip(parameters, gradients, first, second):
                m += (g - m) * 0.1
                v += (g * g - v) * 0.001
                p -= alpha * m / (v.sqrt() + 1e-7)
    return losses


images, labels = load(sys.argv[1])
print(json.dumps({"made_by": "make_parity.py, PyTorch " + torch.__version__.split("+")[0],
                  "mnist-mlp": train(mlp, images, labels), "mnist-cnn": train(cnn, images, labels)}, indent=1))
