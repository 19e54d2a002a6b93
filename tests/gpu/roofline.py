#!/usr/bin/env python3
"""A prediction of training rates of ResNet-50 and GPT-2 on an H200, from counts alone. docs/gpu.md has what an H200 measured.

The step is written down as the device queues it: convolutions, and our kernels with the bytes that
each must read and write and the instructions of its loop (conformance.machine_code and, for the
stem, conformance.cuda_ptx print them).
Assumptions, all of which are options:
  - convolutions and products reach the share --products of the rate that --bandwidth or --peak allows;
  - attention reaches the share --attention of --peak, of the products below the diagonal (--cores: on CUDA cores instead,
    by the instructions of our kernels);
  - a kernel of ours takes the cube root of the sum of the cubes of its memory time, which reaches the
    share --memory of --bandwidth, and of the time of its instructions (in each of 4 schedulers of
    --multiprocessors at --clock): the longer of them if one is, and 26 % more if they are equal;
  - each kernel loses --gap microseconds; a tensor that was written is never found in the cache.
Not modelled: communication, input, evaluation, and what a card does about heat.

usage: tests/gpu/roofline.py [--detail] [--before] [options]
"""
import argparse

STAGES = [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]  # width, blocks, stride
# Cycles that a warp's instructions take for a vector of 8 bf16 elements in each kernel's loop, before
# and after the loops were written for it: as many as there are, or two for each one of integers and
# comparisons, if that is more. Of the pooling kernels a vector of the plane that they walk over.
LOOPS = {
    "statistics": (42, 39), "apply": (147, 90), "apply_add": (175, 106), "sums": (97, 76),
    "sums_branch": (131, 102), "gradient": (340, 76), "gradient_skip": (430, 90),
    "gradient_branch": (430, 113), "pool": (1275, 824), "pool_sums": (410, 355),
    "pool_gradient": (490, 219),
}
# Instructions of our attention for a query and a key of a head of 64: products, exponentials and sums of each pass.
PAIR = {"forward": 2 * 64 + 20, "backward": 7 * 64 + 60}


class Step:
    def __init__(self, options):
        self.o, self.rows, self.parameters = options, [], 0

    def product(self, name, nbytes, flops):
        o = self.o
        seconds = max(nbytes / (o.bandwidth * 1e12), flops / (o.peak * 1e12)) / o.products
        self.rows.append((name, nbytes, seconds + o.gap * 1e-6))

    # `vectors`: of 8 elements; a warp issues its 32 at once.
    def kernel(self, loop, nbytes, vectors):
        o = self.o
        issue = (vectors / 32 * LOOPS[loop][0 if o.before else 1] if loop in LOOPS else 0) / (
            o.multiprocessors * 4 * o.clock * 1e9)
        memory = nbytes / (o.bandwidth * 1e12 * o.memory)
        self.rows.append((loop, nbytes, (memory**3 + issue**3) ** (1 / 3) + o.gap * 1e-6))


class Conv:
    def __init__(self, step, batch, side, channels, filters, kernel, stride, data=True):
        self.side = (side + 2 * (kernel // 2) - kernel) // stride + 1
        self.x = batch * side * side * channels * 2
        self.y = batch * self.side * self.side * filters * 2
        self.w = filters * channels * kernel * kernel
        self.flops = self.y * channels * kernel * kernel
        self.vectors = self.y / 16
        self.data, self.step = data, step
        step.parameters += self.w + 2 * filters
        step.product("forward", self.x + self.y + 2 * self.w, self.flops)
        step.kernel("statistics", self.y, self.vectors)

    # `more`: bytes of a gradient that the input already has.
    def backward(self, more=0):
        self.step.product("weights", self.x + self.y + 2 * self.w, self.flops)
        if self.data:
            self.step.product("data", self.x + self.y + more + 2 * self.w, self.flops)


def apply(step, conv, skip=False):
    step.kernel("apply_add" if skip else "apply", conv.y * (2 + skip + 1 / 16), conv.vectors)


def gradient(step, conv, skip="", dy=True):
    """`skip`: "skip" hands its gradient on, "branch" is normalised itself."""
    read = conv.y * (1 + dy + (skip == "branch") + 1 / 16)
    step.kernel("sums_branch" if skip == "branch" else "sums", read, conv.vectors)
    step.kernel("gradient_" + skip if skip else "gradient", read + conv.y * (1 + (skip != "")),
                conv.vectors)


def build(options, variant, size, batch):
    """variant: v1.5 has the stride in the 3x3 convolution, v1 (Keras) in the first 1x1."""
    step = Step(options)
    step.kernel("cast", batch * size * size * (3 + 16), 0)
    stem = Conv(step, batch, size, 8, 64, 7, 2, data=False)
    side = (stem.side - 1) // 2 + 1
    pooled = batch * side * side * 64
    step.kernel("pool", stem.y + pooled * 3, pooled / 8)
    blocks, channels = [], 64
    for width, count, stride in STAGES:
        for b in range(count):
            s = stride if b == 0 else 1
            one = Conv(step, batch, side, channels, width, 1, s if variant == "v1" else 1)
            apply(step, one)
            two = Conv(step, batch, one.side, width, width, 3, 1 if variant == "v1" else s)
            apply(step, two)
            three = Conv(step, batch, two.side, width, 4 * width, 1, 1)
            short = Conv(step, batch, side, channels, 4 * width, 1, s) if b == 0 else None
            apply(step, three, skip=True)
            blocks.append((one, two, three, short))
            side, channels = three.side, 4 * width
    step.kernel("head", blocks[-1][2].y, 0)
    step.product("head", 3 * 2048 * 1000 * 4, 3 * 2 * batch * 2048 * 1000 * 8)  # in fp32
    step.parameters += 2049 * 1000
    for one, two, three, short in reversed(blocks):
        gradient(step, three, "branch" if short else "skip")
        three.backward()
        gradient(step, two)
        two.backward()
        gradient(step, one)
        if short:
            short.backward()
        one.backward(more=one.x)
    step.kernel("pool_sums", stem.y + pooled * 3, stem.vectors if options.before else pooled / 8)
    step.kernel("pool_gradient", 2 * stem.y + pooled * 3, stem.vectors)
    stem.backward()
    step.kernel("widen", step.parameters * 6, 0)
    step.kernel("adam", step.parameters * 30, 0)
    return step


def build_gpt2(options, batch, context=1024, layers=12, width=768, tokens=50304):
    """The step of gpt2-124m: planes of batch x context x width; the head shares the table of tokens."""
    step = Step(options)
    rows = batch * context
    plane = rows * width * 2
    pairs = batch * context * (context + 1) / 2 * width  # and channels, of one product of attention

    def dense(name, inputs, outputs, more=0):  # more: planes of the epilogue
        moved = (rows * (inputs + outputs) + inputs * outputs) * 2 + more * plane
        step.product(name, moved, 2 * rows * inputs * outputs)

    def attention(name, products, nbytes):
        seconds = max(nbytes / (options.bandwidth * 1e12 * options.memory),
                      2 * products * pairs / (options.peak * options.attention * 1e12))
        if options.cores:
            issue = pairs / 64 * PAIR[name] / 32
            seconds = issue / (options.multiprocessors * 4 * options.clock * 1e9)
        step.rows.append(("attention " + name, nbytes, seconds + options.gap * 1e-6))

    def kernel(name, planes):
        step.kernel(name, planes * plane, 0)

    # With what their epilogues read and write: nothing, the summand, what is before GELU, the summand.
    shapes = [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)]
    epilogues = [0, 1, 4, 1]
    kernel("embed", 1)
    for _ in range(layers):
        kernel("layer norm", 2 * 2)
        for (inputs, outputs), more in zip(shapes, epilogues):
            dense("forward", inputs, outputs, more)
        attention("forward", 2, 4 * plane)
    kernel("layer norm", 2)
    for name in ("logits", "data", "weights"):
        dense(name, width, tokens)
    step.kernel("loss", rows * tokens * 2 * 3, 0)  # read, read again from the cache for the most part, written
    kernel("layer norm", 5)
    for _ in range(layers):
        for inputs, outputs in shapes:
            dense("data", outputs, inputs, 4 if inputs == 4 * width else 0)  # GELU's slope
            dense("weights", inputs, outputs)
            kernel("bias", outputs / width)
        attention("backward", 5, 9 * plane)
        kernel("layer norm", 2 * 5)
    kernel("positions", 2)
    step.parameters = layers * (sum(i * o for i, o in shapes) + 13 * width) + (tokens + context + 2) * width
    step.kernel("widen", step.parameters * 6, 0)
    step.kernel("adam", step.parameters * 30, 0)
    return step


def show(label, unit, rows, count, detail):
    seconds = sum(row[2] for row in rows)
    print("%-18s %8.1f %9.2f %9.0f %s" % (label, sum(r[1] for r in rows) / 1e9, seconds * 1e3, count / seconds, unit))
    for kind in sorted({row[0] for row in rows}) if detail else []:
        of_kind = [row for row in rows if row[0] == kind]
        print("  %-18s %4d kernels %7.1f GB %7.2f ms" % (
            kind, len(of_kind), sum(r[1] for r in of_kind) / 1e9, sum(r[2] for r in of_kind) * 1e3))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bandwidth", type=float, default=4.3, help="TB/s, read and written")
    parser.add_argument("--memory", type=float, default=0.88, help="share of it that is reached")
    parser.add_argument("--peak", type=float, default=780, help="16-bit TFLOP/s")
    parser.add_argument("--products", type=float, default=0.60, help="share of either that is reached")
    parser.add_argument("--attention", type=float, default=0.30, help="share of --peak in attention")
    parser.add_argument("--cores", action="store_true", help="attention on CUDA cores, by our kernels")
    parser.add_argument("--multiprocessors", type=int, default=132)
    parser.add_argument("--clock", type=float, default=1.755, help="GHz")
    parser.add_argument("--gap", type=float, default=1.0, help="microseconds a kernel")
    parser.add_argument("--before", action="store_true", help="with the instructions of before")
    parser.add_argument("--detail", action="store_true", help="by kind of kernel")
    options = parser.parse_args()
    print("%-18s %8s %9s %9s" % ("", "GB/step", "ms/step", "rate"))
    for variant, size, batch in [("v1.5", 224, 400), ("v1", 300, 32)]:
        show("%s %d b%d" % (variant, size, batch), "images/s", build(options, variant, size, batch).rows, batch,
             options.detail)
    for batch in (4, 64):
        show("gpt2-124m b%d" % batch, "tokens/s", build_gpt2(options, batch).rows, batch * 1024, options.detail)


if __name__ == "__main__":
    main()
