"""Transfer learning, in three strategies: a network that knows 0 … 4 learns 5 … 9 from few images.

    python examples/transfer.py                   drawn digits (made here; not MNIST)
    python examples/transfer.py --data DIR        the four MNIST files in DIR

What you learn: parameters are a dict, so a body is kept and a head exchanged by writing
{**old, **new}; which groups learn, how fast and from when on is the optimizer's business
(`optim.multi_transform` by label, `set_to_zero`, `unfreeze_at`), not the model's.
Answers: CS231n and d2l 14.2 (fine-tuning), Howard and Ruder 2018 (progressive unfreezing).
"""

import argparse

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import data, nn, optim, random, tree

MODEL = nn.Sequential(
    nn.Conv(16, (3, 3)), nn.relu, nn.MaxPool((2, 2)),
    nn.Conv(32, (3, 3)), nn.relu, nn.MaxPool((2, 2)),
    nn.Flatten(), nn.Dense(64), nn.relu, nn.Dense(5))
HEAD = "dense2"                                            # the layers: conv1 conv2 dense1 dense2


def loss_and_accuracy(params, images, labels):
    """u8[n,28,28], i[n] → f32[], f32[]"""
    logits, _ = MODEL.apply(params, {}, images[..., None].astype("float32") / 255.0)
    loss = fnp.mean(nn.softmax_cross_entropy_with_integer_labels(logits, labels))
    return loss, nn.accuracy(logits, labels)


def train(params, optimizer, images, labels, steps, batch=50, seed=0):
    """The parameters after so many steps, in epochs of shuffled batches."""
    @fgrad.jit
    def step(params, state, images, labels):
        (loss, _), grads = fgrad.value_and_grad(loss_and_accuracy, has_aux=True)(params, images,
                                                                                 labels)
        updates, state = optimizer.update(grads, state, params)
        return optim.apply_updates(params, updates), state, loss

    state, done, epoch = optimizer.init(params), 0, 0
    while done < steps:
        for x, y in data.batches(images, labels, size=min(batch, len(images)), seed=(seed, epoch)):
            params, state, loss = step(params, state, x, y)
            done += 1
        epoch += 1
    return params


def strategies(steps):
    """{name: optimizer}: how an old body and a new head learn together."""
    frozen, fast = optim.set_to_zero(), optim.adam(3e-3)
    head_only = lambda params: {name: "new" if name == HEAD else "old" for name in params}
    own = lambda params: {name: name for name in params}         # each layer is a group
    return {
        "feature extractor": optim.multi_transform({"old": frozen, "new": fast}, head_only),
        "fine-tuning by groups": optim.multi_transform(
            {"conv1": optim.adam(1e-4), "conv2": optim.adam(3e-4), "dense1": optim.adam(1e-3),
             HEAD: fast}, own),
        "progressive unfreezing": optim.multi_transform(
            {HEAD: fast, "dense1": optim.unfreeze_at(optim.adam(1e-3), steps // 4),
             "conv2": optim.unfreeze_at(optim.adam(1e-3), steps // 2),
             "conv1": optim.unfreeze_at(optim.adam(1e-3), 3 * steps // 4)}, own),
    }


def chosen(images, labels, digits, each=None):
    """The images of some digits, `each` of every one or all, and their labels from 0 on."""
    rows = [np.flatnonzero(labels == d)[:each] for d in digits]
    return images[np.concatenate(rows)], np.repeat(np.arange(len(rows)), [len(r) for r in rows])


def changed(before, after):
    """The share by which each layer has moved, in words."""
    size = lambda layer: float(optim.global_norm(layer))
    moved = {k: size(tree.map(lambda a, b: a - b, after[k], before[k])) / size(before[k])
             for k in before}
    return ", ".join(f"{k} {share:.0%}" for k, share in moved.items())


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="DIR", help="folder of the four MNIST files, gz or plain")
    parser.add_argument("--each", type=int, default=5, help="images of each new digit")
    parser.add_argument("--steps", type=int, default=200, help="on the new digits")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="store_true", help="a small data set, fewer steps")
    args = parser.parse_args(argv)
    split = (data.mnist.load(args.data) if args.data else
             data.digits.drawn(*(1500, 500) if args.short else (12000, 2000), seed=args.seed))
    print(split)
    old_steps, new_steps = (40, 40) if args.short else (600, args.steps)

    first, second = random.split(random.key(args.seed))
    fresh, _ = MODEL.init(first, fnp.zeros((1, 28, 28, 1)))
    known = chosen(split.train_images, split.train_labels, range(5))
    old = train(fresh, optim.adam(1e-3), *known, old_steps)
    test = chosen(split.test_images, split.test_labels, range(5))
    print(f"0 … 4: test accuracy {float(loss_and_accuracy(old, *test)[1]):.4f}")

    new, _ = MODEL.init(second, fnp.zeros((1, 28, 28, 1)))
    begin = {**old, HEAD: new[HEAD]}
    few = chosen(split.train_images, split.train_labels, range(5, 10), args.each)
    test = chosen(split.test_images, split.test_labels, range(5, 10))
    results = []
    for name, optimizer in {"from scratch": optim.adam(1e-3), **strategies(new_steps)}.items():
        start = new if name == "from scratch" else begin
        params = train(start, optimizer, *few, new_steps)
        results.append(f"{name} {float(loss_and_accuracy(params, *test)[1]):.4f}")
        print(f"{results[-1]}   moved: {changed(start, params)}")
    if args.short:
        print("too short to learn: run it without --short")
    print(f"test accuracy on 5 … 9 from {args.each} images each:", ", ".join(results))


if __name__ == "__main__":
    main()
