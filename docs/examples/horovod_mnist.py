#!/usr/bin/env python3
"""MNIST's MLP by TensorFlow and Horovod: somebody's own program in a study (horovod.json). Prints one JSON line.

  mpirun -np 2 python3 horovod_mnist.py --epochs 4
  mpirun -np 2 python3 horovod_mnist.py --epochs 4 --as-written

--as-written has three mistakes that such scripts are found with (docs/guides.md): fit() is given all samples instead of
the worker's batches, so that each worker passes all of them in every epoch; no distributed optimizer sums gradients;
and a softmax stands before a loss of logits.
"""
import argparse, importlib, json, math, os, time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # Horovod's callbacks are of Keras 2

NEEDED = {"numpy": "pip install numpy", "tensorflow": "pip install tensorflow tf-keras",
          "horovod.tensorflow.keras": "HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITH_MPI=1 pip install horovod"}


def load_modules():
    modules, missing = [], []
    for name, install in NEEDED.items():
        try:
            modules.append(importlib.import_module(name))
        except ImportError as error:
            missing.append(f"{name} ({install}; {error})")
    if missing:
        raise SystemExit("horovod_mnist.py: Python has no " + ", no ".join(missing))
    return modules


def load_digits(np, a):
    if a.synthetic:
        random = np.random.default_rng(0)
        return random.random((a.synthetic, 28, 28), "float32"), random.integers(0, 10, a.synthetic)
    if not os.path.exists(a.data):
        raise SystemExit(f"horovod_mnist.py: there is no {a.data}: where the internet is, run python3 -c 'import "
                         "tensorflow as tf; tf.keras.datasets.mnist.load_data()', or give --synthetic 60000")
    with np.load(a.data) as digits:
        return digits["x_train"].astype("float32") / 255, digits["y_train"]


def take_one_gpu(tf, hvd):
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return
    mine = gpus[hvd.local_rank()] if len(gpus) > 1 else gpus[0]  # one, where the launcher gave each task its own
    tf.config.set_visible_devices(mine, "GPU")
    tf.config.experimental.set_memory_growth(mine, True)


def make_model(tf, hvd, a):
    layers = tf.keras.layers
    head = layers.Dense(10, "softmax" if a.as_written else None)
    model = tf.keras.Sequential([layers.Flatten(input_shape=(28, 28)), layers.Dense(512, "relu"), layers.Dropout(0.2), head])
    optimizer = tf.keras.optimizers.Adam(a.learning_rate * hvd.size())
    if not a.as_written:
        optimizer = hvd.DistributedOptimizer(optimizer)
    model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", default=os.path.expanduser("~/.keras/datasets/mnist.npz"), help="Keras' archive of MNIST")
    p.add_argument("--synthetic", type=int, default=0, metavar="N", help="N random samples instead")
    p.add_argument("--batch", type=int, default=128, help="samples per worker per step")
    p.add_argument("--steps", type=int, default=500, help="of an epoch, by all workers together")
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--warmup-epochs", type=float, default=3)
    p.add_argument("--learning-rate", type=float, default=0.001, help="for one worker")
    p.add_argument("--threads", type=int, default=0, help="of a worker; 0: TensorFlow chooses")
    p.add_argument("--as-written", action="store_true", help="with the mistakes")
    a = p.parse_args()
    np, tf, hvd = load_modules()
    hvd.init()
    take_one_gpu(tf, hvd)
    tf.config.threading.set_intra_op_parallelism_threads(a.threads)
    x, y = load_digits(np, a)
    steps = max(1, a.steps // hvd.size())
    model = make_model(tf, hvd, a)
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback(),
                 hvd.callbacks.LearningRateWarmupCallback(initial_lr=a.learning_rate * hvd.size(), warmup_epochs=a.warmup_epochs)]
    starts, ends = [], []
    callbacks.append(tf.keras.callbacks.LambdaCallback(on_epoch_begin=lambda *_: starts.append(time.perf_counter()),
                                                       on_epoch_end=lambda *_: ends.append(time.perf_counter())))
    how = {"steps_per_epoch": steps, "epochs": a.epochs, "callbacks": callbacks, "verbose": 0}
    if a.as_written:  # TensorFlow 2.2 derived this batch from the number of steps
        batch = math.ceil(len(x) / steps)
        history = model.fit(x, y, batch_size=batch, **how)
    else:
        batch = a.batch
        shard = tf.data.Dataset.from_tensor_slices((x, y)).shard(hvd.size(), hvd.rank())
        history = model.fit(shard.shuffle(10000).repeat().batch(batch), **how)  # shuffle, then repeat: epochs do not mix
    times = [end - start for start, end in zip(starts, ends)]
    if hvd.rank() == 0:
        samples = steps * batch * hvd.size()
        print(json.dumps({"peer": "horovod", "replicas": hvd.size(), "batch_per_replica": batch, "global_batch": batch * hvd.size(),
                          "steps": steps * a.epochs, "parameter_count": int(model.count_params()), "precision": "fp32",
                          "throughput": samples * len(times[1:]) / sum(times[1:]) if times[1:] else samples / times[0],
                          "fit_seconds": sum(times), "epoch_seconds": times, "train_loss": float(history.history["loss"][-1])}))


if __name__ == "__main__":
    main()
