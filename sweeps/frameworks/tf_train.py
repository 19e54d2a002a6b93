"""The TensorFlow side of a side-by-side measurement: one training loop, one JSON line.

Workloads   mnist-mlp | mnist-cnn | resnet50          (the networks of the published studies)
Strategies  one           a single replica
            mirrored      MirroredStrategy: one process, a replica on each GPU (on CPUs, on each logical one)
            multiworker   MultiWorkerMirroredStrategy: a process each, by torchrun's variables

Data is synthetic and in memory, as in torch_train.py.

  python3 tf_train.py mnist-cnn --batch 64 --threads 2 --steps 300
  RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_PORT=5000 python3 tf_train.py mnist-cnn --strategy multiworker &
  RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_PORT=5000 python3 tf_train.py mnist-cnn --strategy multiworker
"""
import argparse, json, os, time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def cluster(rank, world):
    """TF_CONFIG of processes of one machine; on several the launcher's own has to be set."""
    if "TF_CONFIG" in os.environ:
        return
    if os.environ.get("LOCAL_WORLD_SIZE", str(world)) != str(world):
        raise SystemExit("set TF_CONFIG: the processes are on several nodes")
    port = int(os.environ["MASTER_PORT"])
    workers = [f"127.0.0.1:{port + i}" for i in range(world)]
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})


def bottleneck(layers, x, width, stride, late, bias):
    first, middle = (1, stride) if late else (stride, 1)
    start = skip = x

    def norm(x, filters, kernel, stride, relu=True):
        x = layers.Conv2D(filters, kernel, stride, "same", use_bias=bias)(x)
        x = layers.BatchNormalization()(x)
        return layers.ReLU()(x) if relu else x

    x = norm(x, width, 1, first)
    x = norm(x, width, 3, middle)
    x = norm(x, 4 * width, 1, 1, relu=False)
    if stride != 1 or start.shape[-1] != 4 * width:
        skip = norm(start, 4 * width, 1, stride, relu=False)
    return layers.ReLU()(layers.Add()([x, skip]))


def network(keras, a):
    layers = keras.layers
    if a.workload == "mnist-mlp":
        body = [layers.Flatten(), layers.Dense(512, "relu"), layers.Dropout(0.2), layers.Dense(10, dtype="float32")]
        return keras.Sequential([keras.Input((28, 28, 1)), *body]), 10
    if a.workload == "mnist-cnn":
        body = [layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2), layers.Flatten(),
                layers.Dense(64, "relu"), layers.Dense(10, dtype="float32")]
        return keras.Sequential([keras.Input((28, 28, 1)), *body]), 10
    start = keras.Input((a.size, a.size, 3))
    x = layers.ZeroPadding2D(3)(start)
    x = layers.Conv2D(64, 7, 2, use_bias=a.bias)(x)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.MaxPooling2D(3, 2, "same")(x)
    for stage, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for block in range(blocks):
            x = bottleneck(layers, x, width, 2 if block == 0 and stage > 0 else 1, not a.v1, a.bias)
    x = layers.GlobalAveragePooling2D()(x)
    if a.hidden:
        x = layers.Dense(a.hidden, "relu")(x)
    return keras.Model(start, layers.Dense(a.classes, dtype="float32")(x)), a.classes


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("workload", choices=["mnist-mlp", "mnist-cnn", "resnet50"])
    p.add_argument("--strategy", default="one", choices=["one", "mirrored", "multiworker"])
    p.add_argument("--communication", default="auto", choices=["auto", "ring", "nccl"])
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    p.add_argument("--precision", default="fp32", choices=["fp32", "tf32", "bf16"])
    p.add_argument("--replicas", type=int, default=1, help="of strategy mirrored")
    p.add_argument("--batch", type=int, default=32, help="samples per replica per step")
    p.add_argument("--size", type=int, default=300)
    p.add_argument("--classes", type=int, default=5)
    p.add_argument("--hidden", type=int, default=1016, help="width of the dense layer before the classifier, 0 for none")
    p.add_argument("--v1", action="store_true", help="stride in the first 1x1 (Keras ResNet50); default v1.5")
    p.add_argument("--bias", action="store_true", help="convolutions have biases, as in Keras ResNet50")
    p.add_argument("--threads", type=int, default=2, help="of this process; 0: as TF_NUM_INTRAOP_THREADS and TF_NUM_INTEROP_THREADS say")
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--warmup", type=int, default=20)
    p.add_argument("--block", type=int, default=1, help="steps that are timed together, without waiting between them")
    p.add_argument("--jit", action="store_true", help="compile the step by XLA")
    a = p.parse_args()

    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if a.strategy == "multiworker":
        cluster(rank, world)
    if a.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import tensorflow as tf
    keras = tf.keras
    if a.threads > 0:
        tf.config.threading.set_intra_op_parallelism_threads(a.threads)
        tf.config.threading.set_inter_op_parallelism_threads(a.replicas if a.strategy == "mirrored" else 1)
    tf.config.experimental.enable_tensor_float_32_execution(a.precision == "tf32")
    tf.random.set_seed(0)
    if a.precision == "bf16":
        keras.mixed_precision.set_global_policy("mixed_bfloat16")
    if a.strategy == "mirrored":
        if a.device == "cpu":
            one = tf.config.LogicalDeviceConfiguration()
            tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], [one] * a.replicas)
        places = [f"/{'gpu' if a.device == 'cuda' else 'cpu'}:{i}" for i in range(a.replicas)]
        how = None if a.device == "cuda" else tf.distribute.ReductionToOneDevice()
        strategy = tf.distribute.MirroredStrategy(places, cross_device_ops=how)
    elif a.strategy == "multiworker":
        options = tf.distribute.experimental.CommunicationOptions(
            implementation=tf.distribute.experimental.CommunicationImplementation[a.communication.upper()])
        strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    else:
        strategy = tf.distribute.get_strategy()
    replicas = strategy.num_replicas_in_sync
    with strategy.scope():
        model, classes = network(keras, a)
        optimizer = keras.optimizers.Adam(1e-4 if a.workload == "resnet50" else 1e-3)
        optimizer.build(model.trainable_variables)
        variables = model.trainable_variables
        parameters = int(sum(tf.size(v).numpy() for v in variables))

    shape = (a.batch, *model.input_shape[1:])
    x, y = tf.random.uniform(shape), tf.random.uniform((a.batch,), maxval=classes, dtype=tf.int64)

    def replica():
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)) / replicas
        gradients = tape.gradient(loss, variables)
        if replicas > 1:
            gradients = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        optimizer.apply(gradients, variables)
        return loss

    @tf.function(jit_compile=a.jit or None)
    def step():
        return strategy.run(replica)

    def run(steps):
        """Waits for the last step and returns its loss."""
        for _ in range(steps):
            loss = step()
        return sum(float(part.numpy()) for part in strategy.experimental_local_results(loss))

    first_loss = run(1)
    if a.warmup > 1:
        run(a.warmup - 1)
    times = []
    for _ in range(-(-a.steps // a.block)):
        start = time.perf_counter()
        loss = run(a.block)
        times.append((time.perf_counter() - start) / a.block)
    if rank == 0:
        print(json.dumps({"peer": "tensorflow", "version": tf.__version__, "libraries": f"Keras {keras.__version__}",
                          "workload": a.workload, "strategy": a.strategy, "first_loss": first_loss, "loss": loss,
                          "device": a.device, "precision": a.precision, "batch_per_replica": a.batch, "replicas": replicas,
                          "threads": a.threads, "steps": a.steps, "global_batch": a.batch * replicas,
                          "parameter_count": parameters, "throughput": a.batch * replicas * len(times) / sum(times),
                          "step_seconds": times}))


if __name__ == "__main__":
    main()
