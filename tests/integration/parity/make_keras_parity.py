#!/usr/bin/env python3
"""Makes keras_parity.json: 100 training losses of each MNIST workload by Keras in float64, and of
mnist-mlp with a softmax before a loss that takes logits: as a function, and as the last activation.

  pip install tensorflow-cpu && python3 make_keras_parity.py ../../../data/mnist > keras_parity.json

Layers, loss, gradients and Adam are Keras' own; train_on_batch is a step. Weights, batches and
dropout bits are those of make_parity.py; the bits come in as a second input that is multiplied, for
Keras cannot be told its own. parity_test.cpp checks the device `reference` against these numbers, and
with --check this script compares Keras against the numbers stored.
"""
import gzip, json, os, sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
try:
    import numpy as np
    import keras
    from keras import layers
except ImportError as error:
    print(f"skipped: {error} (pip install tensorflow-cpu)")
    sys.exit(77)

BATCH, STEPS, RATE, SEED = 64, 100, 0.001, 7
keras.config.set_floatx("float64")


def load(folder):
    images = np.frombuffer(gzip.open(f"{folder}/train-images-idx3-ubyte.gz").read(), np.uint8, offset=16)
    labels = np.frombuffer(gzip.open(f"{folder}/train-labels-idx1-ubyte.gz").read(), np.uint8, offset=8)
    return images.reshape(-1, 28, 28, 1) / 255.0, labels.astype(np.int64)


def weights(shape, index, fan_in, fan_out):
    i = np.arange(int(np.prod(shape)), dtype=np.uint64)
    bits = (i * np.uint64(2654435761) + np.uint64(40503 * (index + 1))) % np.uint64(2**32)
    limit = (6.0 / (fan_in + fan_out)) ** 0.5
    return ((2 * (bits.astype(np.float64) / 2**32) - 1) * limit).reshape(shape)


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
    return (bits >= int(rate * 65536 + 0.5)) / (1 - rate)


def mlp(last=None):
    x, kept = keras.Input((28, 28, 1)), keras.Input((512,))
    h = layers.Multiply()([layers.Dense(512, activation="relu")(layers.Flatten()(x)), kept])
    model = keras.Model([x, kept], layers.Dense(10, activation=last)(h))
    model.set_weights([weights((784, 512), 0, 784, 512), np.zeros(512),
                       weights((512, 10), 1, 512, 10), np.zeros(10)])
    return model


def cnn():
    x, kept = keras.Input((28, 28, 1)), keras.Input((512,))  # the second one is not used
    h = layers.Flatten()(layers.MaxPooling2D(2)(layers.Conv2D(32, 3, activation="relu")(x)))
    model = keras.Model([x, kept], layers.Dense(10)(layers.Dense(64, activation="relu")(h)))
    model.set_weights([weights((3, 3, 1, 32), 0, 9, 288), np.zeros(32),
                       weights((5408, 64), 1, 5408, 64), np.zeros(64),
                       weights((64, 10), 2, 64, 10), np.zeros(10)])
    return model


from_logits = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def softmax_twice(labels, logits):
    return from_logits(labels, keras.ops.exp(keras.ops.log_softmax(logits)))


def train(model, images, labels, loss=from_logits):
    # As Python floats the betas of the bias correction would go through float32.
    adam = keras.optimizers.Adam(RATE, beta_1=np.float64(0.9), beta_2=np.float64(0.999))
    model.compile(optimizer=adam, loss=loss)
    losses = []
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        model.reset_metrics()  # else the mean so far is returned
        losses.append(float(model.train_on_batch([images[rows], dropout_mask(step, 512, 0.2)], labels[rows])))
    return losses


def make(folder):
    images, labels = load(folder)
    return {"made_by": "make_keras_parity.py, Keras " + keras.__version__,
            "mnist-mlp": train(mlp(), images, labels),
            "mnist-cnn": train(cnn(), images, labels),
            "mnist-mlp, softmax twice": train(mlp(), images, labels, softmax_twice),
            # Keras sees that the last activation is a softmax, warns, and goes back to its input.
            "mnist-mlp, softmax layer": train(mlp("softmax"), images, labels)}


def check(folder, stored):
    made = make(folder)
    for name, losses in json.load(open(stored)).items():
        if name != "made_by":
            np.testing.assert_allclose(made[name], losses, rtol=1e-8, err_msg=name)
    print("Keras repeats", stored)


if sys.argv[1] == "--check":
    check(*sys.argv[2:])
else:
    print(json.dumps(make(sys.argv[1]), indent=1))
