"""GPT-2 on synthetic tokens by PyTorch: one training loop, one JSON line.

Models     gpt2-124m | gpt-tiny                  (the architecture of GPT-2; of gpt-tiny a token is a byte)
Replicas   one process, or DistributedDataParallel over Gloo (cpu) or NCCL (cuda) by torchrun's variables
Precisions fp32 | bf16                           (bf16 through autocast; fp32 without TF32)

  python3 torch_gpt.py --model gpt-tiny --batch 4 --steps 20
  torchrun --nproc-per-node 2 torch_gpt.py --model gpt-tiny --threads 1
  torchrun --nproc-per-node 8 torch_gpt.py --device cuda --precision bf16 --compile --batch 16 --gradient-accumulation 4
"""
import argparse, contextlib, json, math, os, time
from dataclasses import dataclass, replace
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F


@dataclass
class Shape:
    layers: int
    heads: int
    width: int
    context: int
    vocabulary: int
    padded: int  # rows of the embedding: a multiple of 64 suits matrix units
    rate: float  # of AdamW


SHAPES = {"gpt2-124m": Shape(12, 12, 768, 1024, 50257, 50304, 6e-4),
          "gpt-tiny": Shape(4, 4, 256, 128, 256, 256, 1e-3)}


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        width, self.heads = shape.width, shape.heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(self.norm_1(x)).split(width, dim=2))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.tokens, self.places = nn.Embedding(shape.padded, shape.width), nn.Embedding(shape.context, shape.width)
        self.blocks = nn.Sequential(*(Block(shape) for _ in range(shape.layers)))
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.padded, bias=False)
        self.head.weight = self.tokens.weight
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                residual = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * shape.layers) if residual else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, x, y):
        h = self.blocks(self.tokens(x) + self.places.weight[:x.shape[1]])
        return F.cross_entropy(self.head(self.norm(h)).flatten(0, 1), y.flatten())


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", default="gpt2-124m", choices=SHAPES)
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    p.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    p.add_argument("--batch", type=int, default=4, help="sequences of a replica whose gradients are computed at once")
    p.add_argument("--context", type=int, help="tokens of a sequence, the model's own if not given")
    p.add_argument("--gradient-accumulation", type=int, default=1, help="batches of a replica whose gradients make one step")
    p.add_argument("--steps", type=int, default=20, help="measured steps")
    p.add_argument("--warmup", type=int, default=3, help="steps before them")
    p.add_argument("--block", type=int, help="steps that are timed together, without waiting between them (10 on cuda, else 1)")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--compile", action="store_true")
    a = p.parse_args()
    a.block = a.block or (10 if a.device == "cuda" else 1)
    a.context = a.context or SHAPES[a.model].context
    for name in ("batch", "context", "gradient_accumulation", "steps", "warmup", "block", "threads"):
        if getattr(a, name) < 1:
            p.error(f"--{name.replace('_', '-')} must be 1 or more")
    if a.context > SHAPES[a.model].context:
        p.error(f"--context is at most {SHAPES[a.model].context} of {a.model}")
    return a


def main():
    a = options()
    shape = replace(SHAPES[a.model], context=a.context)
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    torch.set_num_threads(a.threads)
    device = torch.device(a.device)
    if a.device == "cuda":  # a study shows each replica its own GPU only, torchrun all of the node
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
        torch.cuda.set_device(device)
        torch.set_float32_matmul_precision("highest")
    if world > 1:
        dist.init_process_group("nccl" if a.device == "cuda" else "gloo")

    torch.manual_seed(0)  # of all replicas the same weights, of each its own tokens
    network = Gpt(shape).to(device)
    torch.manual_seed(1 + rank)
    text = torch.randint(shape.vocabulary, (a.gradient_accumulation, a.batch, a.context + 1), device=device)
    batches = [(piece[:, :-1].contiguous(), piece[:, 1:].contiguous()) for piece in text]
    matrices = [p for p in network.parameters() if p.dim() > 1]
    vectors = [p for p in network.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                                  lr=shape.rate, betas=(0.9, 0.95), fused=True)
    replica = nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=True) if world > 1 else network
    model = torch.compile(replica) if a.compile else replica
    cast = (lambda: torch.autocast(a.device, dtype=torch.bfloat16)) if a.precision == "bf16" else contextlib.nullcontext

    def step():
        optimizer.zero_grad(set_to_none=True)
        total = torch.zeros((), device=device)
        for number, (x, y) in enumerate(batches, 1):
            # Gradients are summed over replicas once a step.
            last = number == len(batches) or world == 1
            with contextlib.nullcontext() if last else replica.no_sync():
                with cast():
                    loss = model(x, y) / len(batches)
                loss.backward()
            total += loss.detach()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        return total

    def now():
        if a.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    first_loss = float(step())
    for _ in range(a.warmup - 1):
        step()
    times = []  # seconds a step, one for each block of steps
    begin = start = now()
    for done in range(0, a.steps, a.block):
        size = min(a.block, a.steps - done)
        for _ in range(size):
            loss = step()
        end = now()
        times.append((end - start) / size)
        start = end
    seconds = end - begin
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()
    if rank == 0:
        sequences = a.batch * a.gradient_accumulation * world
        tokens_per_step = sequences * a.context
        print(json.dumps({"peer": "pytorch", "version": torch.__version__, "model": a.model, "device": a.device,
                          "precision": a.precision, "compile": a.compile, "replicas": world, "threads": a.threads,
                          "batch_per_replica": a.batch, "gradient_accumulation": a.gradient_accumulation, "context": a.context,
                          "parameter_count": sum(p.numel() for p in network.parameters()), "global_batch": sequences,
                          "tokens_per_step": tokens_per_step, "steps": a.steps, "tokens": tokens_per_step * a.steps,
                          "seconds": seconds, "tokens_per_second": tokens_per_step * a.steps / seconds,
                          "step_seconds": times, "first_loss": first_loss, "loss": float(loss)}))


if __name__ == "__main__":
    main()
