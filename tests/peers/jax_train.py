"""The JAX side of a side-by-side measurement: one training loop, one JSON line.

Workloads   mnist-mlp | mnist-cnn | resnet50          (the networks of the published studies)

One process, one replica; parameters, data and the optimizer's moments stay on the device. The whole
step is one jit, and with --scan several steps are. Threads are those of the CPUs that this process
may use, so start it on as many CPUs as it is to have (taskset).

  taskset -c 0,1 ../../sweeps/frameworks/tuned python3 jax_train.py mnist-cnn --batch 64 --steps 300
  taskset -c 0,1 ../../sweeps/frameworks/tuned python3 jax_train.py resnet50 --bias --precision bf16 --steps 4 --warmup 1
"""
import argparse, functools, json, math, os, statistics, time
import jax, jax.numpy as jnp, jaxlib, numpy
from jax import lax


class Parameters:
    """Hands a network its parameters one by one: made at first (values None), read afterwards."""

    def __init__(self, random=None, values=None):
        self.random, self.made = random, []
        self.values = iter(values) if values is not None else None

    def __call__(self, *shape, fill=None):
        if self.values is not None:
            return next(self.values)
        deviation = math.sqrt(2 / math.prod(shape[:-1]))  # He's
        value = self.random.normal(0, deviation, shape) if fill is None else numpy.full(shape, fill)
        self.made.append(value.astype(numpy.float32))
        return self.made[-1]


def dense(p, x, width, dtype):
    w, b = p(x.shape[-1], width), p(width, fill=0)
    return x.astype(dtype) @ w.astype(dtype) + b.astype(dtype)


def conv(p, x, width, kernel, stride, padding, dtype, bias=True):
    w = p(kernel, kernel, x.shape[-1], width)
    y = lax.conv_general_dilated(x.astype(dtype), w.astype(dtype), (stride, stride), [(padding, padding)] * 2,
                                 dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y + p(width, fill=0).astype(dtype) if bias else y


def max_pool(x):
    """Maximum of 3x3 with stride 2, as one of nine: XLA's gradient of it takes a quarter of reduce_window's time."""
    side = (x.shape[1] - 1) // 2 + 1
    x = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=-jnp.inf)
    parts = [x[:, i:i + 2 * side - 1:2, j:j + 2 * side - 1:2] for i in range(3) for j in range(3)]
    return functools.reduce(jnp.maximum, parts)


def mlp(a, p, running, x, key, dtype):
    y = jax.nn.relu(dense(p, x.reshape(a.batch, -1), 512, dtype))
    y = jnp.where(jax.random.bernoulli(key, 0.8, y.shape), y / 0.8, 0)
    return dense(p, y, 10, jnp.float32), []


def cnn(a, p, running, x, key, dtype):
    y = jax.nn.relu(conv(p, x, 32, 3, 1, 0, dtype))
    y = y.reshape(a.batch, 13, 2, 13, 2, 32).max((2, 4)).reshape(a.batch, -1)
    return dense(p, jax.nn.relu(dense(p, y, 64, dtype)), 10, jnp.float32), []


def resnet50(a, p, running, x, key, dtype):
    averages = []

    def norm(x, width, kernel, stride, relu=True):
        y = conv(p, x, width, kernel, stride, kernel // 2, dtype, a.bias)
        scale, shift = p(width, fill=1), p(width, fill=0)
        wide = y.astype(jnp.float32)
        mean = wide.mean((0, 1, 2))
        variance = jnp.square(wide).mean((0, 1, 2)) - jnp.square(mean)
        before = running(2, width, fill=1)
        averages.append(lax.stop_gradient(0.99 * before + 0.01 * jnp.stack([mean, variance])))
        y = ((wide - mean) * (scale * lax.rsqrt(variance + 1e-5)) + shift).astype(dtype)
        return jax.nn.relu(y) if relu else y

    def bottleneck(x, width, stride):
        y = norm(x, width, 1, stride if a.v1 else 1)
        y = norm(y, width, 3, 1 if a.v1 else stride)
        y = norm(y, 4 * width, 1, 1, relu=False)
        skip = norm(x, 4 * width, 1, stride, relu=False) if stride != 1 or x.shape[-1] != 4 * width else x
        return jax.nn.relu(y + skip)

    y = norm(x, 64, 7, 2)
    y = max_pool(y)
    for stage, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for block in range(blocks):
            y = bottleneck(y, width, 2 if block == 0 and stage > 0 else 1)
    y = y.astype(jnp.float32).mean((1, 2))
    if a.hidden:
        y = jax.nn.relu(dense(p, y, a.hidden, dtype))
    return dense(p, y, a.classes, jnp.float32), averages


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("workload", choices=["mnist-mlp", "mnist-cnn", "resnet50"])
    p.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    p.add_argument("--batch", type=int, default=32, help="samples per step")
    p.add_argument("--size", type=int, default=300)
    p.add_argument("--classes", type=int, default=5)
    p.add_argument("--hidden", type=int, default=1016, help="width of the dense layer before the classifier, 0 for none")
    p.add_argument("--v1", action="store_true", help="stride in the first 1x1 (Keras ResNet50); default v1.5")
    p.add_argument("--bias", action="store_true", help="convolutions have biases, as in Keras ResNet50")
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--warmup", type=int, default=20)
    p.add_argument("--block", type=int, default=1, help="steps that are timed together, without waiting between them")
    p.add_argument("--scan", action="store_true", help="the steps of a block are one compiled loop")
    a = p.parse_args()

    jax.config.update("jax_default_prng_impl", "unsafe_rbg")  # the cheapest bits for dropout
    dtype = jnp.bfloat16 if a.precision == "bf16" else jnp.float32
    network = {"mnist-mlp": mlp, "mnist-cnn": cnn, "resnet50": resnet50}[a.workload]
    shape, classes = ((a.size, a.size, 3), a.classes) if a.workload == "resnet50" else ((28, 28, 1), 10)
    random = numpy.random.default_rng(0)
    x = jnp.asarray(random.random((a.batch, *shape)), jnp.float32)
    target = jnp.asarray(random.integers(0, classes, a.batch))
    maker, running_maker, key = Parameters(random), Parameters(random), jax.random.key(0)
    jax.eval_shape(lambda x: network(a, maker, running_maker, x, key, dtype)[0], x)
    parameters, running = ([jnp.asarray(value) for value in made] for made in (maker.made, running_maker.made))

    def loss_of(parameters, running, x, target, key):
        logits, averages = network(a, Parameters(values=parameters), Parameters(values=running), x, key, dtype)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), target[:, None], 1)), averages

    def step(state, x, target):
        parameters, first, second, running, count = state
        (loss, running), gradients = jax.value_and_grad(loss_of, has_aux=True)(
            parameters, running, x, target, jax.random.fold_in(key, count))
        count += 1
        rate = (1e-4 if a.workload == "resnet50" else 1e-3) * jnp.sqrt(1 - 0.999 ** count) / (1 - 0.9 ** count)
        first = [0.9 * m + 0.1 * g for m, g in zip(first, gradients)]
        second = [0.999 * v + 0.001 * g * g for v, g in zip(second, gradients)]
        parameters = [w - rate * m / (jnp.sqrt(v) + 1e-7) for w, m, v in zip(parameters, first, second)]
        return (parameters, first, second, running, count), loss

    def loop(state, x, target):
        state, losses = lax.scan(lambda state, _: step(state, x, target), state, length=a.block)
        return state, losses[-1]

    call = jax.jit(loop if a.scan else step, donate_argnums=0)
    state = (parameters, [jnp.zeros_like(w) for w in parameters], [jnp.zeros_like(w) for w in parameters], running,
             jnp.int32(0))

    def run(state, steps):
        for _ in range(-(-steps // a.block) if a.scan else steps):
            state, loss = call(state, x, target)
        return state, loss.block_until_ready()

    state, first_loss = run(state, 1)
    if a.warmup > 1:
        state, _ = run(state, a.warmup - 1)
    times = []
    for _ in range(-(-a.steps // a.block)):
        start = time.perf_counter()
        state, loss = run(state, a.block)
        times.append((time.perf_counter() - start) / a.block)
    print(json.dumps({"peer": "jax", "version": jax.__version__, "libraries": f"jaxlib {jaxlib.__version__}",
                      "workload": a.workload, "device": "cuda" if jax.default_backend() == "gpu" else "cpu", "replicas": 1,
                      "precision": a.precision, "batch_per_replica": a.batch, "global_batch": a.batch, "steps": a.steps,
                      "threads": len(os.sched_getaffinity(0)), "parameter_count": sum(w.size for w in state[0]),
                      "median_step_seconds": statistics.median(times), "throughput": a.batch * len(times) / sum(times),
                      "step_seconds": times, "first_loss": float(first_loss), "loss": float(loss)}))


if __name__ == "__main__":
    main()
