"""Programs as users write them, in JAX style: simulations, images, graphs, text, statistics.

Each is a function of a library and arrays, compiled as a whole; `benchmarks.cliffs --everyday` runs
them beside jax.  They are in no table: what is looked for is a program that is slower than it
should be.
"""

import numpy

from ..workload import Workload

WORKLOADS = []
SPEEDS = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
WEIGHTS = numpy.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, "float32")
LAYERS = [(64, 64), (64,), (64, 128), (128,), (128, 10), (10,)] * 4


def program(**shapes):
    """Registers a function of a library and arrays: for each name a shape of normal numbers, a pair
    (limit, shape) of integers, or a list of shapes.
    """
    def registered(function):
        def inputs(rng):
            return tuple(drawn(rng, shape) for shape in shapes.values())

        def maker(lib, *arrays):
            return (lib.jit(lambda *arrays: function(lib, *arrays)), *arrays)
        WORKLOADS.append(Workload(function.__name__, {"jax": maker}, inputs, tolerance=5e-3))
        return function
    return registered


def drawn(rng, shape):
    """An array, or a list of them."""
    if isinstance(shape, list):
        return [drawn(rng, each) for each in shape]
    if len(shape) == 2 and isinstance(shape[1], tuple):
        return rng.integers(0, shape[0], shape[1]).astype("int32")
    return rng.standard_normal(shape, "float32")


# ---------------------------------------------------------------------------- training

@program(x=(64, 1, 28, 28), labels=(10, (64,)), first=(6, 1, 5, 5), second=(16, 6, 5, 5),
         weights=[(400, 120), (120, 84), (84, 10)])
def gradients_of_lenet(lib, x, labels, first, second, weights):
    """Images whose channels come first, as in torch."""
    np, lax = lib.numpy, lib.lax

    def pooled(x, window, pad):
        y = np.tanh(lax.conv_general_dilated(x, window, (1, 1), pad))
        return y.reshape(*y.shape[:2], y.shape[2] // 2, 2, y.shape[3] // 2, 2).mean((3, 5))

    def loss(parameters):
        first, second, (one, two, three) = parameters
        y = pooled(pooled(x, first, "SAME"), second, "VALID").reshape(len(x), -1)
        scores = np.tanh(np.tanh(y @ one / 20) @ two / 10) @ three
        scores = scores - np.log(np.sum(np.exp(scores), 1, keepdims=True))
        return -np.mean(np.take_along_axis(scores, labels[:, None], 1))
    return lib.grad(loss)((first, second, weights))


@program(params=LAYERS, grads=LAYERS)
def step_of_one_vector(lib, params, grads):
    """Momentum over all parameters as one vector, with clipped gradients."""
    np = lib.numpy
    whole, slope = (np.concatenate([x.ravel() for x in tree]) for tree in (params, grads))
    whole = whole - 0.1 * slope / np.maximum(np.sqrt(np.sum(slope * slope)), 1.0)
    out, start = [], 0
    for x in params:
        size = int(numpy.prod(x.shape))
        out.append(whole[start:start + size].reshape(x.shape))
        start += size
    return out


@program(weights=[(64, 32), (32, 10)], x=(128, 64), labels=(10, (128,)))
def clipped_gradients_of_examples(lib, weights, x, labels):
    np = lib.numpy

    def loss(weights, x, label):
        return -lib.nn.log_softmax(np.tanh(x @ weights[0]) @ weights[1])[label]
    grads = lib.vmap(lib.grad(loss), (None, 0, 0))(weights, x, labels)
    norms = np.sqrt(sum(np.sum(g.reshape(len(x), -1)**2, 1) for g in grads))
    return [np.tensordot(np.minimum(1, 1 / norms), g, 1) / len(x) for g in grads]


@program(x=(400000,), temperature=(1,))
def gradient_of_elements_and_a_number(lib, x, temperature):
    def loss(x, temperature):
        return lib.numpy.sum(lib.numpy.exp(-lib.numpy.abs(x * temperature)))
    return lib.grad(loss, (0, 1))(x, temperature)


@program(weights=[(128, 128)] * 4, x=(4, 128, 128))
def causal_attention(lib, weights, x):
    np = lib.numpy

    def loss(weights, x):
        batch, length, width = x.shape
        q, k, v = [(x @ w / 11).reshape(batch, length, 4, width // 4).transpose(0, 2, 1, 3)
                   for w in weights[:3]]
        scores = np.einsum("bhid,bhjd->bhij", q, k) / 6
        scores = np.where(np.tril(np.ones((length, length), bool)), scores, -1e9)
        out = np.einsum("bhij,bhjd->bhid", lib.nn.softmax(scores), v)
        out = out.transpose(0, 2, 1, 3).reshape(x.shape) @ weights[3] / 11
        return np.mean(out * out)
    return lib.grad(loss)(weights, x)


@program(table=(5000, 64), window=(5, 64, 100), words=(5000, (32, 100)))
def convolution_over_words(lib, table, window, words):
    np = lib.numpy

    def loss(table, window):
        seen = lib.lax.conv_general_dilated(table[words], window, (1,), "SAME",
                                            dimension_numbers=("NWC", "WIO", "NWC"))
        return np.mean(np.max(lib.nn.relu(seen), 1)**2)
    return lib.grad(loss, (0, 1))(table, window)


@program(keys=(4, 8, 256, 64), values=(4, 8, 256, 64), new=[(4, 8, 64)] * 3, place=(256, (1,)))
def one_more_word(lib, keys, values, new, place):
    """A step of decoding, with a cache of keys and values."""
    np, lax = lib.numpy, lib.lax
    query, key, value = new
    keys = lax.dynamic_update_slice(keys, key[:, :, None], (0, 0, place[0], 0))
    values = lax.dynamic_update_slice(values, value[:, :, None], (0, 0, place[0], 0))
    scores = np.einsum("bhd,bhtd->bht", query, keys) / 8
    scores = np.where(np.arange(keys.shape[2]) <= place[0], scores, -1e9)
    return np.einsum("bht,bhtd->bhd", lib.nn.softmax(scores), values), keys, values


# ---------------------------------------------------------------------------- simulations

def with_edges(np, u):
    """The Laplacian, where what is outside equals the edge."""
    p = np.pad(u, 1, mode="edge")
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u


@program(rate=(1,), u=(128, 128))
def gradient_of_heat(lib, rate, u):
    def loss(rate, u):
        def step(u, _):
            return u + 0.1 * lib.nn.sigmoid(rate) * with_edges(lib.numpy, u), None
        return lib.numpy.mean(lib.lax.scan(step, u, None, length=50)[0]**2)
    return lib.grad(loss, (0, 1))(rate, u)


@program(flow=(9, 128, 128))
def lattice_boltzmann(lib, flow):
    np = lib.numpy
    ex, ey = numpy.array(SPEEDS, "float32").T
    weights = WEIGHTS[:, None, None]

    def step(_, flow):
        density = np.sum(flow, 0)
        ux, uy = np.tensordot(ex, flow, 1) / density, np.tensordot(ey, flow, 1) / density
        along = ex[:, None, None] * ux + ey[:, None, None] * uy
        rest = weights * density * (1 + 3 * along + 4.5 * along**2 - 1.5 * (ux**2 + uy**2))
        flow = flow - (flow - rest) / 0.6
        return np.stack([np.roll(np.roll(flow[k], a, 0), b, 1) for k, (a, b) in enumerate(SPEEDS)])
    return lib.lax.fori_loop(0, 20, step, weights * (1 + 0.01 * np.tanh(flow)))


@program(cells=(2, (512, 512)))
def game_of_life(lib, cells):
    np = lib.numpy

    def step(_, cells):
        near = sum(np.roll(np.roll(cells, a, 0), b, 1) for a, b in SPEEDS[1:])
        return ((near == 3) | ((cells == 1) & (near == 2))).astype("int32")
    return lib.lax.fori_loop(0, 20, step, cells)


@program(places=(512, 3), masses=(512,))
def forces_of_bodies(lib, places, masses):
    np = lib.numpy

    def energy(x):
        apart = x[None] - x[:, None]
        return -np.sum(masses[None] * masses[:, None] / np.sqrt(np.sum(apart * apart, -1) + 0.01))
    return lib.grad(energy)(places)


@program(directions=(128, 128, 3))
def ray_marching(lib, directions):
    np = lib.numpy

    def distance(p):
        q = p - np.array([0.5, 0.5, -0.5])
        balls = np.minimum(np.sqrt(np.sum(p * p)) - 1, np.sqrt(np.sum(q * q)) - 0.5)
        return np.minimum(balls, p[1] + 1)

    def colour(direction):
        direction = direction * 0.1 + np.array([0.0, 0.0, 1.0])
        way = direction / np.sqrt(np.sum(direction * direction))
        start = np.array([0.0, 0.0, -3.0])
        far = lib.lax.fori_loop(0, 40, lambda _, t: t + distance(start + t * way), np.float32(0))
        return np.sum(lib.grad(distance)(start + far * way) * np.array([0.5, 0.7, -0.5]))
    return lib.vmap(lib.vmap(colour))(directions)


@program(moves=(10000, 100))
def greeks_by_monte_carlo(lib, moves):
    np = lib.numpy

    def price(start, spread):
        path = start * np.exp(np.cumsum((0.05 - 0.5 * spread**2) / 100 + spread * 0.1 * moves, 1))
        return np.mean(np.maximum(np.mean(path, 1) - 100, 0))
    return lib.grad(price, (0, 1))(np.float32(100), np.float32(0.2))


# ---------------------------------------------------------------------------- images, sounds

@program(image=(512, 512, 3))
def blurred(lib, image):
    np = lib.numpy
    weights = [float(w) for w in numpy.exp(-numpy.linspace(-2, 2, 9)**2 / 2) / 4.4]
    wide = np.pad(image, ((4, 4), (4, 4), (0, 0)), mode="reflect")
    rows = sum(w * wide[k:k + 512] for k, w in enumerate(weights))
    return sum(w * rows[:, k:k + 512] for k, w in enumerate(weights))


@program(images=(128, 32, 32, 3), flips=(2, (128,)), places=(8, (2, 128)))
def augmented(lib, images, flips, places):
    np = lib.numpy

    def one(image, flip, y, x):
        image = np.pad(np.where(flip == 1, image[:, ::-1], image), ((4, 4), (4, 4), (0, 0)))
        return np.clip(lib.lax.dynamic_slice(image, (y, x, 0), (32, 32, 3)), 0, 1)
    return lib.vmap(one)(images, flips, *places)


@program(x=(8, 32, 32, 16))
def upsampled(lib, x):
    np = lib.numpy
    for axis in (1, 2):
        first, last = [np.take(x, np.array([k]), axis) for k in (0, x.shape[axis] - 1)]
        wide, n = np.concatenate([first, x, last], axis), x.shape[axis]
        before, behind = [lib.lax.slice_in_dim(wide, k, k + n, axis=axis) for k in (0, 2)]
        x = np.stack([0.25 * before + 0.75 * x, 0.75 * x + 0.25 * behind], axis + 1)
        x = x.reshape(*x.shape[:axis], 2 * n, *x.shape[axis + 2:])
    return x


@program(image=(128, 128))
def median_of_neighbours(lib, image):
    np = lib.numpy
    wide = np.pad(image, 1, mode="edge")
    return np.median(np.stack([wide[a:a + 128, b:b + 128] for a in range(3) for b in range(3)]), 0)


@program(sound=(13312,), filters=(512, 40))
def frames_of_sound(lib, sound, filters):
    np = lib.numpy
    frames = np.stack([sound[128 * k:128 * k + 512] for k in range(100)])
    return np.log1p(np.abs(frames * numpy.hanning(512).astype("float32") @ filters))


@program(grey=(255, (256, 256)))
def equalised(lib, grey):
    np = lib.numpy
    so_far = np.cumsum(np.zeros(256, "int32").at[grey.ravel()].add(1))
    return (so_far[grey] - so_far[0]) / (grey.size - so_far[0])


# ---------------------------------------------------------------------------- graphs, sequences

@program(start=(10000, (100000,)), end=(10000, (100000,)))
def page_rank(lib, start, end):
    np, count = lib.numpy, 10000
    degree = np.zeros(count, "float32").at[start].add(1.0)

    def step(_, rank):
        given = (rank / np.maximum(degree, 1))[start]
        return 0.15 / count + 0.85 * np.zeros(count, "float32").at[end].add(given)
    return lib.lax.fori_loop(0, 20, step, np.full(count, 1 / count, "float32"))


@program(weights=(32, 16), x=(1000, 32), start=(1000, (5000,)), end=(1000, (5000,)))
def graph_attention(lib, weights, x, start, end):
    np = lib.numpy

    def loss(weights):
        h = x @ weights / 6
        share = np.exp(np.tanh(np.sum(h[start] * h[end], -1)))
        total = np.zeros(len(x), "float32").at[end].add(share)
        out = np.zeros_like(h).at[end].add((share / total[end])[:, None] * h[start])
        return np.mean(out * out)
    return lib.grad(loss)(weights)


@program(points=(10000, 16), centres=(32, 16))
def k_means(lib, points, centres):
    np = lib.numpy

    def step(_, centres):
        far = np.sum(centres * centres, 1) - 2 * points @ centres.T
        nearest = np.argmin(far, 1)
        count = np.zeros(len(centres), "float32").at[nearest].add(1.0)
        total = np.zeros_like(centres).at[nearest].add(points)
        return total / np.maximum(count, 1)[:, None]
    return lib.lax.fori_loop(0, 10, step, centres)


@program(moves=(32, 32), words=(500, 32))
def likeliest_path(lib, moves, words):
    np, lax = lib.numpy, lib.lax

    def step(best, word):
        scores = best[:, None] + moves
        return np.max(scores, 0) + word, np.argmax(scores, 0)
    best, before = lax.scan(step, words[0], words[1:])
    return lax.scan(lambda k, row: (row[k], k), np.argmax(best), before, reverse=True)[1]


@program(a=(4, (300,)), b=(4, (300,)))
def edit_distance(lib, a, b):
    np, lax = lib.numpy, lib.lax
    places = np.arange(301)

    def row(above, letter):
        best = np.minimum(above[:-1] + (letter != b), above[1:] + 1)
        best = np.concatenate([above[:1] + 1, best])
        return lax.cummin(best - places) + places, None
    return lax.scan(row, places, a)[0][-1]


@program(x=(128, 2), y=(128, 2))
def optimal_transport(lib, x, y):
    np = lib.numpy

    def loss(x, y):
        cost = np.sum((x[:, None] - y[None])**2, -1)

        def shared(f, axis):
            least = np.min(cost - f, axis)
            return least - np.log(np.mean(np.exp(np.expand_dims(least, axis) - cost + f), axis))

        def step(state, _):
            f = shared(state[1][None], 1)
            return (f, shared(f[:, None], 0)), None
        (f, g), _ = lib.lax.scan(step, (np.zeros(128), np.zeros(128)), None, length=20)
        return np.mean(f) + np.mean(g)
    return lib.grad(loss, (0, 1))(x, y)


# ---------------------------------------------------------------------------- steps in steps

@program(x=(4096,))
def walsh_hadamard(lib, x):
    """Sums and differences of what lies 1, 2, 4, … apart."""
    np, apart = lib.numpy, 1
    while apart < x.shape[0]:
        y = x.reshape(-1, 2, apart)
        x = np.stack([y[:, 0] + y[:, 1], y[:, 0] - y[:, 1]], 1).reshape(-1)
        apart *= 2
    return x


@program(x=(16384,))
def sums_by_doubling(lib, x):
    np, ahead = lib.numpy, 1
    while ahead < x.shape[0]:
        x = x + np.concatenate([np.zeros(ahead, x.dtype), x[:-ahead]])
        ahead *= 2
    return x


@program(x=(100_000,), y=(100_000,))
def histogram_of_two(lib, x, y):
    np = lib.numpy
    i, j = (np.clip((z * 16 + 32).astype("int32"), 0, 63) for z in (x, y))
    return np.zeros((64, 64), "int32").at[i, j].add(1)


@program(f=(128, 128))
def cycle_of_grids(lib, f):
    """One V of a multigrid method for Poisson's equation."""
    np = lib.numpy

    def around(u):
        p = np.pad(u, 1)
        return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]

    def cycle(u, f):
        n = u.shape[0]
        for _ in range(2):
            u = (around(u) + f) / 4
        if n > 8:
            rest = (f - 4 * u + around(u)).reshape(n // 2, 2, n // 2, 2).sum((1, 3))
            u = u + np.repeat(np.repeat(cycle(np.zeros_like(rest), rest), 2, 0), 2, 1)
        return (around(u) + f) / 4
    return cycle(np.zeros_like(f), f)


@program(e=(128, 128))
def waves_of_light(lib, e):
    """Yee's scheme: fields on grids half a step apart."""
    np = lib.numpy

    def step(_, fields):
        e, x, y = fields
        x = x.at[:, :-1].add(-0.5 * (e[:, 1:] - e[:, :-1]))
        y = y.at[:-1].add(0.5 * (e[1:] - e[:-1]))
        turned = y[1:, 1:] - y[:-1, 1:] - x[1:, 1:] + x[1:, :-1]
        return e.at[1:, 1:].add(0.5 * turned), x, y
    return lib.lax.fori_loop(0, 50, step, (e, np.zeros_like(e), np.zeros_like(e)))[0]


@program(x=(2000,), at=(500,))
def density_by_kernels(lib, x, at):
    np = lib.numpy
    return np.mean(np.exp(-0.5 * ((at[:, None] - x) / 0.2)**2), -1)


@program(w=(24, 24), x=(2000, 24, 19))
def batches_of_one_matrix(lib, w, x):
    return lib.numpy.einsum("ik,bkj->bij", w, x)


@program(x=(5000, 3), y=(5000,), levels=(3, 60), q=())
def gradients_of_a_tweedie_model(lib, x, y, levels, q):
    """Means by three factors, and powers of them: sums of what is dear."""
    np = lib.numpy
    which, y = np.clip((x * 12 + 30).astype("int32"), 0, 59), np.abs(y)

    def loss(levels, q):
        mean, q = np.exp(levels[np.arange(3), which].sum(1) / 4), 1.5 + np.tanh(q) / 4
        return np.mean(mean**(2 - q) / (2 - q) - y * mean**(1 - q) / (1 - q))
    return lib.grad(loss, (0, 1))(levels, q)


@program(x=(500, 8), u=(30, 500))
def draws_of_a_probit_model(lib, x, u):
    """What is dear of each row comes in front of a sum over the rows."""
    np = lib.numpy
    inverse = np.linalg.inv(x.T @ x + np.eye(8))

    def sweep(b, u):
        mean = x @ b
        below = 1 / (1 + np.exp(1.6 * mean))
        p = np.clip(below + (1 - below) / (1 + np.exp(-u)), 1e-6, 1 - 1e-6)
        drawn = mean + np.sign(p - 0.5) * np.sqrt(-np.log(4 * p * (1 - p)))
        b = inverse @ (x.T @ drawn)
        return b, b
    return lib.lax.scan(sweep, np.zeros(8), u)[1]


@program(re=(4, 36, 36), im=(4, 36, 36))
def moments_of_waves_on_a_lattice(lib, re, im):
    """Chebyshev's recurrence: complex numbers and their neighbours, around the edges."""
    np = lib.numpy
    first = lib.lax.complex(re, im)
    turn = np.exp(2j * np.pi * np.arange(36) / 9).astype("complex64")[:, None]

    def energy(x):
        along = np.roll(x, 1, 2) * turn + np.roll(x, -1, 2) * np.conj(turn)
        return -(np.roll(x, 1, 1) + np.roll(x, -1, 1) + along) / 4

    def step(state, _):
        a, b = state
        c = 2 * energy(b) - a
        return (b, c), np.sum(np.conj(first) * c, (1, 2)).real
    return lib.lax.scan(step, (first, energy(first)), None, length=40)[1]


@program(x=(4000,))
def walks_by_bits_of_random_numbers(lib, x):
    """A generator of one word, whose high bits are those of floats."""
    np, bits = lib.numpy, lib.lax.bitcast_convert_type

    def step(state, _):
        word, place = state
        for by in (13, -17, 5):
            word = word ^ (word << by if by > 0 else word >> -by)
        return (word, place + bits((word >> 9) | np.uint32(0x3F800000), "float32") - 1.5), None
    return lib.lax.scan(step, (bits(x, "uint32"), np.zeros(4000)), None, length=40)[0][1]
