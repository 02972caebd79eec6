"""A transformer that writes, letter by letter, and remembers keys and values as it goes.

    python examples/char_transformer.py                            fgrad's own source code
    python examples/char_transformer.py --data tinyshakespeare.txt     any text in UTF-8

What you learn: a language model is an embedding, blocks of attention and a dense layer; state is
not for running means only: given a cache as their state, the same layers see one letter at a time,
and a `scan` makes a whole text one compiled call; and what pairs of letters alone would achieve.
Answers: makemore and nanoGPT (tiny Shakespeare), d2l chapter 11, CS231n assignment 3, TinyTorch.
"""

import argparse
import itertools
import time
from pathlib import Path

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import data, nn, optim, random


def network(letters, width, blocks, heads):
    """i[n,time] → f32[n,time,letters]: scores of each next letter.  Positions are turned in."""
    return nn.Sequential(
        nn.Embedding(letters, width, table_init=nn.init.normal(0.02)),
        *[nn.TransformerBlock(heads, rotary=True) for _ in range(blocks)],
        nn.LayerNorm(), nn.Dense(letters))


def loss(model, params, x, y):
    """The mean cross-entropy in nats a letter: i[n,time], i[n,time] → f32[]"""
    logits, _ = model.apply(params, {}, x)
    return fnp.mean(nn.softmax_cross_entropy_with_integer_labels(logits, y))


def bigram(train, test, letters):
    """Nats a letter of the model that looks at one letter only, counted with one more of each."""
    counts = np.ones((letters, letters))
    np.add.at(counts, (train[:-1], train[1:]), 1)
    log_share = np.log(counts / counts.sum(axis=1, keepdims=True))
    return -log_share[test[:-1], test[1:]].mean()


def with_cache(model, params, first, count, key):
    """`count` letters after `first`: each step sees one letter and the cache.   i32[count]"""
    x = fnp.zeros((1, 1, params["embedding1"]["table"].shape[1]))
    state = {name: layer.cache(1, count, x) for layer, name in zip(model.layers, model.names)
             if isinstance(layer, nn.TransformerBlock)}

    def step(carry, k):
        letter, state = carry
        logits, state = model.apply(params, state, letter[None, None])
        letter = random.categorical(random.fold_in(key, k), logits[0, 0]).astype("int32")
        return (letter, state), letter
    return fgrad.lax.scan(step, (first, state), fnp.arange(count))[1]


def without_cache(model, params, first, count, key):
    """The same, but each step sees the whole text again: slower the longer it is."""
    def step(text, k):
        logits, _ = model.apply(params, {}, text[None])          # what is behind k is not seen
        letter = random.categorical(random.fold_in(key, k), logits[0, k]).astype("int32")
        return text.at[k + 1].set(letter), letter
    text = fnp.zeros(count + 1, "int32").at[0].set(first)
    return fgrad.lax.scan(step, text, fnp.arange(count))[1]


def train(model, tokens, test, args):
    """(parameters, validation loss)"""
    params, _ = model.init(random.key(args.seed), fnp.zeros((1, args.length), "int32"))
    print(f"{nn.count_params(params):,} parameters")
    rate = optim.warmup_cosine_decay_schedule(0.0, args.rate, args.steps // 10, args.steps)
    optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(rate, weight_decay=0.1))

    @fgrad.jit(donate_argnums=(0, 1))
    def step(params, state, x, y):
        value, grads = fgrad.value_and_grad(lambda p: loss(model, p, x, y))(params)
        updates, state = optimizer.update(grads, state, params)
        return optim.apply_updates(params, updates), state, value

    of_batch = fgrad.jit(lambda p, x, y: loss(model, p, x, y))
    held_out = data.batches(*data.text.windows(test, args.length), size=args.batch, shuffle=False)
    validation = lambda p: np.mean([float(of_batch(p, x, y)) for x, y in held_out])
    state, seen, begun = optimizer.init(params), [], time.perf_counter()
    windows = data.batches(*data.text.windows(tokens, args.length, stride=1), size=args.batch,
                           seed=args.seed, prefetch=2)
    for k, (x, y) in enumerate(itertools.islice(windows, args.steps), 1):
        params, state, value = step(params, state, x, y)
        seen.append(value)
        if k % max(args.steps // 10, 1) == 0 or k == args.steps:
            mean = np.mean([float(v) for v in seen[-100:]])
            print(f"step {k:5d}  loss {mean:.4f}  validation {validation(params):.4f}  "
                  f"{time.perf_counter() - begun:.0f} s", flush=True)
    return params, validation(params)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="FILE", help="a text, such as tiny Shakespeare")
    for name, number, words in (("width", 128, "features"), ("blocks", 4, "of attention"),
                                ("heads", 4, "in each block"), ("length", 128, "letters seen"),
                                ("batch", 32, "windows a step"), ("steps", 1500, "of AdamW"),
                                ("letters", 400, "to write at the end"), ("seed", 0, "")):
        parser.add_argument(f"--{name}", type=int, default=number, help=words)
    parser.add_argument("--rate", type=float, default=2e-3, help="the highest learning rate")
    parser.add_argument("--short", action="store_true", help="a tiny network and 60 steps")
    args = parser.parse_args(argv)
    if args.short:
        args.width, args.blocks, args.heads, args.length, args.batch = 32, 1, 2, 32, 16
        args.steps, args.letters = 60, 60
    files = [args.data] if args.data else sorted(Path(fgrad.__file__).parent.rglob("*.py"))
    text = "\n".join(data.text.read(file) for file in files if Path(file).stat().st_size)
    alphabet = data.text.CharTokenizer.train(text)
    tokens = alphabet.encode(text[:100_000] if args.short else text)
    tokens, test = np.split(tokens, [len(tokens) * 9 // 10])
    print(f"{len(tokens):,} letters to learn from, {len(test):,} to test on, {alphabet}")

    model = network(len(alphabet), args.width, args.blocks, args.heads)
    params, tested = train(model, tokens, test, args)
    texts = []
    for write in (with_cache, without_cache):
        run = fgrad.jit(lambda params: write(model, params, test[0], args.letters, random.key(1)))
        run(params)                                              # compiles
        start = time.perf_counter()
        texts.append(alphabet.decode(np.asarray(run(params))))
        print(f"{write.__name__}: {1e3 * (time.perf_counter() - start) / args.letters:.2f} ms a "
              "letter")
    print(texts[0])
    print(f"the same text without a cache: {texts[0] == texts[1]}")
    print(f"validation loss: {tested:.4f} nats a letter; pairs of letters alone: "
          f"{bigram(tokens, test, len(alphabet)):.4f}")


if __name__ == "__main__":
    main()
