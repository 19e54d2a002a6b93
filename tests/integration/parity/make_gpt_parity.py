#!/usr/bin/env python3
"""Makes gpt_parity.json: GPTs in locked steps by PyTorch in float64.

  pip install torch numpy && python3 make_gpt_parity.py > gpt_parity.json

Networks and gradients are PyTorch's. The update is Keras' Adam (docs/training.md) with rate 0.001, a
decay of 0.1 of matrices only and clipping by norm 1. Weights and tokens follow formulas that
gpt_test.cpp repeats. The file holds the loss of each step, before its update.
"""
import json
import math
import numpy as np
import torch
from torch.nn import functional as F

STEPS = 20
SUBJECTS = {  # layers, heads, width, context, vocabulary, batch
    "small": (2, 2, 32, 16, 61, 4),
    "gpt-tiny": (4, 4, 256, 128, 256, 2),
    "gpt2-124m": (12, 12, 768, 64, 50304, 1),
}


def random_bits(count, stream):
    """32 bits each: MurmurHash3's finalizer."""
    mask = np.uint64(0xFFFFFFFF)
    h = (np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B1) + np.uint64(stream * 0x85EBCA77)) & mask
    h = ((h ^ (h >> np.uint64(16))) * np.uint64(0x85EBCA6B)) & mask
    h = ((h ^ (h >> np.uint64(13))) * np.uint64(0xC2B2AE35)) & mask
    return h ^ (h >> np.uint64(16))


class Gpt:
    def __init__(self, layers, heads, width, context, vocabulary):
        self.layers, self.heads, self.arrays = layers, heads, {}
        self.array("wte/tokens", (vocabulary, width))
        self.array("wte/positions", (context, width))
        for i in range(layers):
            self.norm(f"h.{i}.ln_1", width)
            self.dense(f"h.{i}.attn.c_attn", width, 3 * width)
            self.dense(f"h.{i}.attn.c_proj", width, width)
            self.norm(f"h.{i}.ln_2", width)
            self.dense(f"h.{i}.mlp.c_fc", width, 4 * width)
            self.dense(f"h.{i}.mlp.c_proj", 4 * width, width)
        self.norm("ln_f", width)

    def array(self, name, shape, middle=0.0):
        """Uniform on +-0.04 around the middle, in fp32."""
        uniform = random_bits(int(np.prod(shape)), len(self.arrays)).astype(np.float64) / 2**32
        values = ((2 * uniform - 1) * 0.04 + middle).astype(np.float32).astype(np.float64)
        self.arrays[name] = torch.tensor(values.reshape(shape), requires_grad=True)

    def norm(self, name, width):
        self.array(name + "/gamma", (width,), 1.0)
        self.array(name + "/beta", (width,))

    def dense(self, name, inputs, outputs):
        self.array(name + "/kernel", (inputs, outputs))
        self.array(name + "/bias", (outputs,))

    def apply_norm(self, name, x):
        return F.layer_norm(x, x.shape[-1:], self.arrays[name + "/gamma"], self.arrays[name + "/beta"], 1e-5)

    def apply_dense(self, name, x):
        return x @ self.arrays[name + "/kernel"] + self.arrays[name + "/bias"]

    def loss(self, samples):
        x, labels = samples[:, :-1], samples[:, 1:]
        batch, context = x.shape
        x = self.arrays["wte/tokens"][x] + self.arrays["wte/positions"]
        for i in range(self.layers):
            qkv = self.apply_dense(f"h.{i}.attn.c_attn", self.apply_norm(f"h.{i}.ln_1", x))
            q, k, v = (t.view(batch, context, self.heads, -1).transpose(1, 2) for t in qkv.chunk(3, -1))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.apply_dense(f"h.{i}.attn.c_proj", y.transpose(1, 2).reshape(x.shape))
            hidden = F.gelu(self.apply_dense(f"h.{i}.mlp.c_fc", self.apply_norm(f"h.{i}.ln_2", x)), approximate="tanh")
            x = x + self.apply_dense(f"h.{i}.mlp.c_proj", hidden)
        logits = self.apply_norm("ln_f", x) @ self.arrays["wte/tokens"].T
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def update(arrays, moments, step):
    rate, decay = 0.001, 0.1
    norm = math.sqrt(sum((a.grad**2).sum().item() for a in arrays.values()))
    factor = 1 / max(norm, 1)
    adapted = rate * math.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    with torch.no_grad():
        for name, w in arrays.items():
            g = w.grad * factor
            a, b = moments.setdefault(name, (torch.zeros_like(w), torch.zeros_like(w)))
            a += 0.1 * (g - a)
            b += 0.001 * (g * g - b)
            if w.dim() > 1:
                w -= rate * decay * w
            w -= adapted * a / (b.sqrt() + 1e-7)
            w.grad = None


def main():
    result = {}
    for name, (layers, heads, width, context, vocabulary, batch) in SUBJECTS.items():
        net, moments, losses = Gpt(layers, heads, width, context, vocabulary), {}, []
        for step in range(STEPS):
            bits = random_bits(batch * (context + 1), 7000 + step % 4)
            samples = torch.tensor((bits % vocabulary).astype(np.int64).reshape(batch, context + 1))
            loss = net.loss(samples)
            loss.backward()
            losses.append(loss.item())
            update(net.arrays, moments, step + 1)
        result[name] = {"shape": [layers, heads, width, context, vocabulary], "batch": batch, "losses": losses}
    print(json.dumps(result, indent=1))


main()
