"""What other libraries call by a name that fgrad has not: what to write instead.

Read when a name is not found.  Relies on nothing; `later` relies on it.

>>> print(instead("fgrad", "pmap"))
vmap batches, and a compiled function uses all processors
"""

from __future__ import annotations

PROCESSES = "one process computes, on one device: fgrad.devices() lists them"
PARALLEL = "vmap batches, and a compiled function uses all processors"
X64 = 'an explicit dtype stays; fgrad.default_dtype("float64") changes the defaults, for a block'
LINES = "what is printed names the lines of your functions by itself"
PRECISION = "products of f32 are computed in f32: leave it out"
TRAINED = "model.apply(params, state, x, train=True) says so at each call"
SEEDED = "fgrad.random.key(seed) makes the key that random functions are given"
IMPLICIT = "fgrad.custom_vjp takes the rule of implicit differentiation"
CALLED = "a layer is given the function: nn.Sequential(nn.Dense(8), nn.relu)"

INSTEAD = {                # module → name → what does the same
    "fgrad": {
        "pmap": PARALLEL, "shard_map": PARALLEL, "make_mesh": PARALLEL, "sharding": PARALLEL,
        "default_backend": PROCESSES, "local_devices": PROCESSES, "device_count": PROCESSES,
        "local_device_count": PROCESSES, "process_index": PROCESSES, "process_count": PROCESSES,
        "default_device": "fgrad.device(name), for a block",
        "Tensor": "fgrad.Array", "tensor": "fgrad.numpy.array",
        "backward": "fgrad.grad(loss)(params) gives the gradients",
        "closure_convert": "functions may close over arrays that are differentiated",
        "custom_gradient": "fgrad.custom_vjp",
        "debug_infs": "fgrad.debug.nans(f) names the operation, or FGRAD_NANS=1 for all",
        "debug_nans": "fgrad.debug.nans(f) names the operation, or FGRAD_NANS=1 for all",
        "default_matmul_precision": PRECISION,
        "enable_x64": X64,
        "explain_cache_misses": "f.explain(), of the jitted function",
        "experimental": "what fgrad has is in fgrad, fgrad.numpy, fgrad.lax",
        "log_compiles": "f.explain(), of the jitted function",
        "named_call": LINES, "named_scope": LINES,
        "manual_seed": SEEDED,
        "no_grad": "nothing is recorded outside of fgrad.grad",
        "profiler": "f.profile(x) says what every kernel takes",
        "numpy_dtype_promotion": "fgrad.strict_promotion()",
        "typeof": "x.type",
        "tree_flatten": "fgrad.tree.flatten", "tree_leaves": "fgrad.tree.leaves",
        "tree_map": "fgrad.tree.map", "tree_unflatten": "fgrad.tree.unflatten",
    },
    "fgrad.config": {
        "update": f"64 bits need no switch ({X64}); FGRAD_NANS=1 is jax_debug_nans",
    },
    "fgrad.lax": {
        "Precision": PRECISION, "custom_linear_solve": IMPLICIT, "custom_root": IMPLICIT,
        "conv_general_dilated_local": "einsum of conv_general_dilated_patches with the kernels",
        "reduce_precision": 'x.astype("bfloat16").astype("float32"), or of "float16"',
    },
    "fgrad.nn": {
        "AvgPool2d": "nn.AvgPool", "BatchNorm1d": "nn.BatchNorm", "BatchNorm2d": "nn.BatchNorm",
        "ConvTranspose2d": "nn.ConvTranspose",
        "CrossEntropyLoss": "nn.softmax_cross_entropy_with_integer_labels of numbers of classes, "
                            "nn.softmax_cross_entropy of shares",
        "DenseGeneral": "nn.Dense", "EinsumDense": "nn.Dense",
        "Embed": "nn.Embedding", "GELU": f"nn.gelu; {CALLED}",
        "GRUCell": "nn.GRU takes whole sequences", "Identity": "nn.Lambda(lambda x: x)",
        "LSTMCell": "nn.LSTM takes whole sequences", "MLP": "nn.Sequential",
        "MSELoss": "nn.mean_squared_error", "MaxPool2d": "nn.MaxPool",
        "Module": "a layer is a subclass of nn.Layer", "ModuleList": "nn.Sequential",
        "Parameter": "parameters are a pytree that you pass", "ReLU": f"nn.relu; {CALLED}",
        "Reshape": "nn.Lambda(lambda x: x.reshape(-1, 8, 8))",
        "SelfAttention": "nn.MultiHeadAttention",
        "Sigmoid": f"nn.sigmoid; {CALLED}", "SiLU": f"nn.silu; {CALLED}",
        "Softmax": f"nn.softmax; {CALLED}", "Tanh": f"nn.tanh; {CALLED}",
        "Unflatten": "nn.Lambda(lambda x: x.reshape(-1, 8, 8))",
        "Upsample": "nn.Lambda(lambda x: x.repeat(2, 1).repeat(2, 2))",
        "avg_pool": "nn.AvgPool", "compact": "nn.Sequential",
        "eval": TRAINED, "functional": "the functions are in nn itself: nn.relu, nn.softmax",
        "max_pool": "nn.MaxPool", "train": TRAINED,
    },
    "fgrad.numpy": {
        "float_": "float32", "int_": "int32",
        "complex_": "complex64", "uint": "uint32",
        "random": "fgrad.random, whose functions take a key: random.normal(random.key(0), (3,))",
        "relu": "fgrad.nn.relu", "sigmoid": "fgrad.nn.sigmoid", "softmax": "fgrad.nn.softmax",
        "load": "asarray(np.load(file)); fgrad.io keeps whole pytrees",
        "save": "np.save takes arrays; fgrad.io keeps whole pytrees",
        "savez": "np.savez takes arrays; fgrad.io keeps whole pytrees",
    },
    "fgrad.random": {
        "default_rng": SEEDED, "manual_seed": SEEDED, "seed": SEEDED,
        "rand": "random.uniform(key, shape)", "randn": "random.normal(key, shape)",
    },
    "fgrad.optim": {
        "incremental_update": "fgrad.tree.map(lambda a, b: a + rate * (b - a), old, new)",
        "l2_loss": "fgrad.nn.squared_error(a, b) / 2",
        "lbfgs": "fgrad.optim.minimize_lbfgs, which runs until it has converged",
    },
    "fgrad.scipy": {
        "integrate": "fgrad.numpy.trapezoid is the integral of samples",
        "interpolate": "fgrad.numpy.interp is linear, along a line",
        "optimize": "fgrad.optim.minimize_lbfgs and minimize_newton_cg",
        "sparse": "fgrad.numpy.linalg.solve; conjugate gradients are a short lax.while_loop",
    },
}


def instead(module, name):
    """What stands for that name of a module, in words, or None."""
    return INSTEAD.get(module, {}).get(name)


def missing(module, name):
    """The AttributeError of a module that has no such name; Python itself proposes similar ones."""
    found = instead(module.__name__, name)
    said = f"module {module.__name__!r} has no attribute {name!r}"
    return AttributeError(f"{said}: {found}." if found else said, name=name,
                          obj=None if found else module)
