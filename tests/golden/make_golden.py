# SPDX-License-Identifier: Apache-2.0
"""Losses and gradients of small models, from an implementation that shares no code with ours.

PyTorch in double precision; plain formulas, autograd by PyTorch, AdamW written out. Run it to make
the JSON files beside it anew:

    python3 -m venv VENV && VENV/bin/pip install torch numpy && VENV/bin/python make_golden.py
"""

import json
import math
import pathlib
import sys

import numpy as np
import torch

sys.dont_write_bytecode = True
import philox

torch.set_default_dtype(torch.float64)

SEED = 1234
STEPS = 10
GLOBAL_BATCH = 8
ADAMW = dict(lr=1e-3, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1, clip=1.0)

T0 = dict(layers=4, hidden=64, heads=4, groups=4, ffn=128, seq=32, vocab=128, std=0.02,
          epsilon=1e-5, llama=False)
LLAMA = dict(layers=2, hidden=64, heads=4, groups=2, ffn=128, seq=32, vocab=128, std=0.02,
             epsilon=1e-5, llama=True)


def mock_sample(c, sample):
    """Tokens of one sample of data/mock_dataset.h: seq + 1 of them."""
    successors = philox.key(SEED, "mock", "successors")
    words = philox.philox(philox.key(SEED, "mock", "draws", sample), np.arange(c["seq"] + 1))
    tokens, previous = [], 0
    for t, word in enumerate(words):
        if t > 0 and int(word[0]) % 4 != 0:
            previous = philox.permutation_at(successors, c["vocab"], previous)
        else:
            previous = (int(word[1]) * c["vocab"]) >> 32
        tokens.append(previous)
    return torch.tensor(tokens)


def shapes(c):
    """Name -> (shape, initial deviation; 0: zeros, None: ones)."""
    h, d = c["hidden"], c["hidden"] // c["heads"]
    qkv = c["groups"] * (c["heads"] // c["groups"] + 2) * d
    std, out = c["std"], c["std"] / math.sqrt(2.0 * c["layers"])
    s = {"embedding.word_embeddings.weight": ([c["vocab"], h], std)}
    if not c["llama"]:
        s["embedding.position_embeddings.weight"] = ([c["seq"], h], std)

    def norm(name):
        s[name + ".weight"] = ([h], None)
        if not c["llama"]:
            s[name + ".bias"] = ([h], 0)

    def linear(name, shape, deviation):
        s[name + ".weight"] = (shape, deviation)
        if not c["llama"]:
            s[name + ".bias"] = (shape[:-1], 0)

    for n in range(c["layers"]):
        layer = f"layers.{n}."
        norm(layer + "input_norm")
        linear(layer + "attention.qkv", [qkv, h], std)
        linear(layer + "attention.proj", [h, h], out)
        norm(layer + "pre_mlp_norm")
        linear(layer + "mlp.fc1", [2, c["ffn"], h] if c["llama"] else [c["ffn"], h], std)
        linear(layer + "mlp.fc2", [h, c["ffn"]], out)
    norm("final_norm")
    s["output.weight"] = ([c["vocab"], h], std)
    return s


def initial(name, shape, deviation):
    count = int(np.prod(shape))
    if deviation is None:
        return torch.ones(shape)
    if deviation == 0:
        return torch.zeros(shape)
    return torch.from_numpy(philox.normal(philox.key(SEED, "init", name), count, deviation)).reshape(shape)


class Model:
    def __init__(self, c):
        self.c = c
        self.p = {name: initial(name, *spec).requires_grad_(True) for name, spec in shapes(c).items()}

    def norm(self, x, name):
        weight, epsilon = self.p[name + ".weight"], self.c["epsilon"]
        if self.c["llama"]:
            return x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred * centred).mean(-1, keepdim=True)
        return centred / torch.sqrt(variance + epsilon) * weight + self.p[name + ".bias"]

    def linear(self, x, name):
        y = x @ self.p[name + ".weight"].transpose(-1, -2)
        return y if self.c["llama"] else y + self.p[name + ".bias"]

    def rotate(self, x):  # [s, heads, d]
        s, _, d = x.shape
        angle = torch.arange(s)[:, None] * 10000.0 ** (-2.0 * torch.arange(d // 2) / d)[None, :]
        cos, sin = angle.cos()[:, None, :], angle.sin()[:, None, :]
        a, b = x[..., : d // 2], x[..., d // 2 :]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def attention(self, x, name):  # [s, h]
        c = self.c
        s, d, queries = x.shape[0], c["hidden"] // c["heads"], c["heads"] // c["groups"]
        qkv = self.linear(x, name + ".qkv").reshape(s, c["groups"], queries + 2, d)
        q = qkv[:, :, :queries].reshape(s, c["heads"], d)
        k, v = qkv[:, :, queries], qkv[:, :, queries + 1]  # [s, groups, d]
        if c["llama"]:
            q, k = self.rotate(q), self.rotate(k)
        k, v = k.repeat_interleave(queries, 1), v.repeat_interleave(queries, 1)
        scores = torch.einsum("ihd,jhd->hij", q, k) / math.sqrt(d)
        future = torch.triu(torch.ones(s, s, dtype=torch.bool), 1)
        weights = torch.softmax(scores.masked_fill(future, -math.inf), -1)
        out = torch.einsum("hij,jhd->ihd", weights, v).reshape(s, c["hidden"])
        return self.linear(out, name + ".proj")

    def mlp(self, x, name):
        if self.c["llama"]:
            gate, up = torch.einsum("sh,pfh->psf", x, self.p[name + ".fc1.weight"])
            inner = gate * torch.sigmoid(gate) * up
        else:
            z = self.linear(x, name + ".fc1")
            inner = 0.5 * z * (1 + torch.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))
        return self.linear(inner, name + ".fc2")

    def loss(self, tokens):
        c = self.c
        inputs, targets = tokens[:-1], tokens[1:]
        x = self.p["embedding.word_embeddings.weight"][inputs]
        if not c["llama"]:
            x = x + self.p["embedding.position_embeddings.weight"][: len(inputs)]
        for n in range(c["layers"]):
            layer = f"layers.{n}."
            x = x + self.attention(self.norm(x, layer + "input_norm"), layer + "attention")
            x = x + self.mlp(self.norm(x, layer + "pre_mlp_norm"), layer + "mlp")
        logits = self.norm(x, "final_norm") @ self.p["output.weight"].T
        picked = logits[torch.arange(len(targets)), targets]
        return (torch.logsumexp(logits, -1) - picked).mean()


def decays(name):
    return name.endswith(".weight") and "norm" not in name


def train(c):
    model = Model(c)
    moments = {name: (torch.zeros_like(p), torch.zeros_like(p)) for name, p in model.p.items()}
    result = {"losses": [], "grad_norms": [], "parameters": {}}
    for step in range(1, STEPS + 1):
        samples = range((step - 1) * GLOBAL_BATCH, step * GLOBAL_BATCH)
        loss = sum(model.loss(mock_sample(c, sample)) for sample in samples) / GLOBAL_BATCH
        grads = dict(zip(model.p, torch.autograd.grad(loss, list(model.p.values()))))
        norm = math.sqrt(sum(float((g * g).sum()) for g in grads.values()))
        result["losses"].append(float(loss.detach()))
        result["grad_norms"].append(norm)
        if step == 1:
            for name, g in grads.items():
                result["parameters"][name] = {
                    "shape": list(g.shape), "sum": float(model.p[name].detach().sum()),
                    "grad_norm": float(g.norm()), "grad_sum": float(g.sum())}
        scale = min(1.0, ADAMW["clip"] / (norm + 1e-6))
        with torch.no_grad():
            for name, p in model.p.items():
                update(p, moments[name], grads[name] * scale, decays(name), step)
    return result


def update(p, moments, g, decay, step):
    m, v = moments
    m.mul_(ADAMW["beta1"]).add_(g * (1 - ADAMW["beta1"]))
    v.mul_(ADAMW["beta2"]).add_(g * g * (1 - ADAMW["beta2"]))
    if decay:
        p.mul_(1 - ADAMW["lr"] * ADAMW["weight_decay"])
    m_hat = m / (1 - ADAMW["beta1"] ** step)
    v_hat = v / (1 - ADAMW["beta2"] ** step)
    p.sub_(ADAMW["lr"] * m_hat / (v_hat.sqrt() + ADAMW["epsilon"]))


def main():
    here = pathlib.Path(__file__).parent
    for name, config in (("t0", T0), ("llama", LLAMA)):
        result = {"config": config, "seed": SEED, "global_batch": GLOBAL_BATCH, "adamw": ADAMW}
        result.update(train(config))
        (here / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
        print(name, result["losses"], result["grad_norms"])


if __name__ == "__main__":
    main()
