"""Names out of a recurrent network: one letter after the other, until it says that it is done.

    python examples/rnn_names.py                       a hundred names, to see it run
    python examples/rnn_names.py --data names.txt      one name a line, as in makemore
    python examples/rnn_names.py --cell LSTM           RNN, GRU or LSTM

What you learn: a recurrent layer is a cell and a `scan`, compiled to one native loop; names of
unequal length are padded, and a mask keeps the padding out of the loss; sampling gives the last
state back in, for many names at a time by `vmap`.
Answers: makemore parts 1 to 5, d2l chapters 9 and 10 (GRU, LSTM), CS231n assignment 3 (RNN).
"""

import argparse

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import data, nn, optim, random

LETTERS = data.text.CharTokenizer(".abcdefghijklmnopqrstuvwxyz")   # a dot begins and ends a name
NAMES = """
ada agnes albert alice amelia amos andrew anna anton arthur astrid august barbara beatrice
benjamin bernard bertha boris bruno carl caroline cecilia charles charlotte clara conrad cora
cyril daniel daphne david dora dorothea edgar edith edmund edward eleanor elias elisabeth ella
elsa emil emily emma erik ernest esther eva felix fiona flora frances frederick george gerald
gertrude grace gustav hannah harold harriet heinrich helen henry herbert hilda hugo ida ingrid
irene iris isaac isabel ivan jacob jane jonathan josephine julia julius karin klara laura leo
leonard lewis lillian louisa lucy ludwig lydia magnus margaret maria martha martin mathilda max
michael miriam nathan nina nora olga oliver oscar otto pauline peter philip rebecca richard robert
rosa rudolf ruth samuel sarah simon sophia stella susanna theodore thomas ursula victor viola
walter wilhelm willa winifred
"""


def encoded(names):
    """(letters before, letters after, mask) of each: i32[n,time], i32[n,time], f32[n,time]"""
    time = max(map(len, names)) + 1
    padded = np.stack([LETTERS.encode(f".{name}".ljust(time + 1, ".")) for name in names])
    lengths = np.array([len(name) + 1 for name in names])
    return padded[:, :-1], padded[:, 1:], (np.arange(time) < lengths[:, None]).astype(np.float32)


def network(cell, units=128):
    """(embedding, recurrent layer, dense layer)"""
    return nn.Embedding(len(LETTERS), 32), cell(units), nn.Dense(len(LETTERS))


def init(model, key):
    """One tree of parameters for the three."""
    embedding, cell, dense = model
    first, second, third = random.split(key, 3)
    return {"embedding": embedding.init(first, fnp.zeros((1, 1), "int32"))[0],
            "cell": cell.init(second, fnp.zeros((1, 1, embedding.features)))[0],
            "dense": dense.init(third, fnp.zeros((1, 1, cell.units)))[0]}


def scores(model, params, letters, start=None):
    """(scores of each next letter, last state): i[n,time] → f32[n,time,27]"""
    embedding, cell, dense = model
    x, _ = embedding.apply(params["embedding"], {}, letters)
    y, last = cell.run(params["cell"], x, start)
    return dense.apply(params["dense"], {}, y)[0], last


def loss(model, params, before, after, mask):
    """Nats a letter, the dot at the end among them; padding does not count."""
    wrong = nn.softmax_cross_entropy_with_integer_labels(scores(model, params, before)[0], after)
    return fnp.sum(mask * wrong) / fnp.sum(mask)


def invented(model, params, key, longest=15):
    """The letters of one name, i32[longest]: a letter drawn from the scores is the next input."""
    def step(carry, key):
        letter, state = carry
        logits, state = scores(model, params, letter[None, None], state)
        letter = random.categorical(key, logits[0, 0]).astype("int32")
        return (letter, state), letter
    begin = model[1].begin(fnp.zeros((1, 1, 1)))
    return fgrad.lax.scan(step, (fnp.array(0), begin), random.split(key, longest))[1]


def train(model, rows, steps, batch=64, seed=0):
    """The parameters after so many steps of Adam."""
    optimizer = optim.chain(optim.clip_by_global_norm(1.0),
                            optim.adam(optim.cosine_decay_schedule(5e-3, steps)))

    @fgrad.jit
    def step(params, state, *rows):
        value, grads = fgrad.value_and_grad(lambda p: loss(model, p, *rows))(params)
        updates, state = optimizer.update(grads, state, params)
        return optim.apply_updates(params, updates), state, value

    params, rng = init(model, random.key(seed)), np.random.default_rng(seed)
    state = optimizer.init(params)
    for k in range(steps):
        chosen = rng.integers(len(rows[0]), size=batch)
        params, state, value = step(params, state, *[r[chosen] for r in rows])
        if k % max(steps // 8, 1) == 0 or k == steps - 1:
            print(f"step {k:5d}  loss {float(value):.4f}")
    return params


def bigram(train, test):
    """Nats a letter of the model that looks at one letter only, counted with one more of each."""
    counts = np.ones((len(LETTERS), len(LETTERS)))
    np.add.at(counts, (train[0], train[1]), train[2])
    log_share = np.log(counts / counts.sum(axis=1, keepdims=True))
    return -np.sum(test[2] * log_share[test[0], test[1]]) / np.sum(test[2])


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="FILE", help="names of letters a to z, one a line")
    parser.add_argument("--cell", choices=("RNN", "GRU", "LSTM"), default="GRU")
    parser.add_argument("--steps", type=int, default=None, help="3000 with --data, else 60")
    parser.add_argument("--short", action="store_true", help="60 steps")
    args = parser.parse_args(argv)
    known = set((data.text.read(args.data) if args.data else NAMES).split())
    names = np.random.default_rng(0).permutation(sorted(known)).tolist()
    cut = len(names) * 9 // 10
    rows, test = encoded(names[:cut]), encoded(names[cut:])
    model = network(getattr(nn, args.cell))
    params = train(model, rows, 60 if args.short else args.steps or (3000 if args.data else 60))
    write = fgrad.jit(fgrad.vmap(lambda key: invented(model, params, key)))
    found = [LETTERS.decode(row).split(".")[0]
             for row in np.asarray(write(random.split(random.key(1), 400)))]
    fresh = [name for name in dict.fromkeys(found) if name and name not in known]
    print("invented:", " ".join(fresh[:20]))
    print(f"validation loss: {float(loss(model, params, *test)):.4f} nats a letter; pairs of "
          f"letters alone: {bigram(rows, test):.4f}")


if __name__ == "__main__":
    main()
