"""The calls that `jax_compat` compares: a row per function of jax, with arguments for it.

A row is (name, *arguments); keyword arguments come last, in a dict.  Arrays are f32 and i32,
as both libraries make them.
"""

import operator

import numpy as np

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4)).astype("float32")           # a matrix of both signs
Y = RNG.standard_normal((3, 4)).astype("float32")
P = RNG.uniform(0.1, 0.9, (3, 4)).astype("float32")         # between 0 and 1
U = RNG.uniform(1.1, 3.0, (3, 4)).astype("float32")         # above 1
V = RNG.standard_normal(6).astype("float32")
S = RNG.standard_normal((3, 3)).astype("float32")
D = (S @ S.T + 2 * np.eye(3)).astype("float32")             # positive definite
I = RNG.integers(0, 5, (3, 4)).astype("int32")
J = RNG.integers(1, 5, (3, 4)).astype("int32")
K = np.array([2, 0, 1], "int32")
B = X > 0
N = X.copy()
N[0, 1] = np.nan


def each(names, *args):
    """A row per name, all with the same arguments."""
    return [(name, *args) for name in names.split()]


NUMPY = [
    *each("abs absolute negative positive sign square exp exp2 expm1 sin cos tan sinh cosh tanh "
          "arctan "
          "arcsinh floor ceil trunc rint round fabs cbrt sinc deg2rad rad2deg degrees radians "
          "isfinite "
          "isinf isnan isneginf isposinf signbit nan_to_num real imag conj conjugate angle "
          "logical_not "
          "reciprocal sum prod mean var std max min amax amin ptp all any argmax argmin cumsum "
          "cumprod "
          "median count_nonzero ravel transpose flip fliplr flipud sort argsort squeeze atleast_1d "
          "atleast_2d atleast_3d copy ones_like zeros_like ndim shape size trace diagonal tril "
          "triu "
          "diff isreal iscomplex matrix_transpose rot90 cov corrcoef ediff1d modf "
          "isrealobj iscomplexobj diag average", X),
    *each("log log2 log10 log1p sqrt arccosh i0", U), *each("arcsin arccos arctanh", P),
    *each("add subtract multiply divide true_divide maximum minimum fmax fmin hypot arctan2 "
          "logaddexp "
          "logaddexp2 copysign mod remainder fmod floor_divide equal not_equal less less_equal "
          "greater "
          "greater_equal logical_and logical_or logical_xor isclose allclose array_equal heaviside "
          "divmod array_equiv vdot vecdot inner", X, Y),
    *each("power float_power", U, Y),
    *each("bitwise_and bitwise_or bitwise_xor gcd lcm left_shift right_shift bitwise_left_shift "
          "bitwise_right_shift power add divide isin", J, I), *each("mod floor_divide", I, J),
    *each("invert bitwise_not bitwise_count", I),
    *each("nansum nanprod nanmean nanvar nanstd nanmax nanmin nanmedian nanargmax nanargmin "
          "nancumsum "
          "nancumprod", N),
    ("sum", X, {"axis": 0}), ("mean", X, {"axis": 1, "keepdims": True}), ("sum", X, {"where": B}),
    ("max", X, {"where": B, "initial": -9.0}), ("mean", X, {"where": B}), ("var", X, {"ddof": 1}),
    ("cumsum", X, {"axis": 1}), ("cumulative_sum", V), ("cumulative_prod", V), ("sum", I),
    ("mean", I), ("prod", J), ("any", B), ("sum", B),
    ("clip", X, -0.5, 0.5), ("where", B, X, Y), ("matmul", X, Y.T), ("dot", X, Y.T),
    ("outer", V, V),
    ("tensordot", X, Y, {"axes": 2}), ("kron", S, S), ("cross", S, S),
    ("einsum", "ij,kj->ik", X, Y),
    ("reshape", X, (4, 3)), ("broadcast_to", V, (2, 6)), ("expand_dims", X, 0),
    ("permute_dims", X, (1, 0)), ("swapaxes", X, 0, 1),
    ("moveaxis", X, 0, 1), ("rollaxis", X, 1), ("roll", X, 2), ("tile", V, 2), ("repeat", V, 2),
    ("concatenate", [X, Y]), ("stack", [X, Y]), ("hstack", [X, Y]), ("vstack", [X, Y]),
    ("dstack", [X, Y]), ("column_stack", [V, V]), ("split", V, 2), ("array_split", V, 4),
    ("hsplit", X, 2), ("vsplit", X.T, 2), ("append", V, V), ("insert", V, 2, 7.0),
    ("delete", V, 1), ("resize", V, (2, 4)), ("pad", X, 1), ("pad", X, 1, {"mode": "reflect"}),
    ("pad", X, 1, {"mode": "edge"}), ("pad", X, 1, {"mode": "wrap"}), ("block", [[X, Y], [Y, X]]),
    ("take", V, K), ("take_along_axis", X, I[:, :2] % 4, {"axis": 1}),
    ("choose", K, [V[:3], V[3:], V[1:4]]),
    ("select", [B, X < -1], [X, Y]), ("searchsorted", np.sort(V), X), ("digitize", X, np.sort(V)),
    ("interp", X, np.sort(V), V), ("histogram", V, 4), ("bincount", K), ("unique", I),
    ("union1d", I, J),
    ("intersect1d", I, J), ("setdiff1d", I, J), ("setxor1d", I, J), ("nonzero", B), ("argwhere", B),
    ("flatnonzero", B), ("quantile", X, 0.3), ("percentile", X, 30.0), ("nanquantile", N, 0.3),
    ("nanpercentile", N, 30.0), ("polyval", V, X), ("polyadd", V, V), ("polysub", V, V),
    ("polymul", V, V), ("polyder", V), ("polyint", V), ("polydiv", V, V[:2]),
    ("polyfit", V, V ** 2, 2),
    ("poly", V[:3]), ("vander", V, 3), ("convolve", V, V[:3]), ("correlate", V, V[:3]),
    ("trapezoid", V), ("gradient", V), ("unwrap", 4 * V), ("lexsort", (K, K)), ("ldexp", V, 2),
    ("frexp", V), ("packbits", B), ("unpackbits", np.array([3, 200], "uint8")),
    ("ravel_multi_index", (K, K), (3, 3), {"mode": "clip"}), ("unravel_index", K, (2, 2)),
    ("tril_indices", 3), ("triu_indices", 3), ("diag_indices", 3), ("ix_", K, K),
    ("indices", (2, 3)),
    ("meshgrid", V, V), ("arange", 5), ("arange", 0.0, 1.0, 0.25), ("linspace", 0.0, 1.0, 5),
    ("logspace", 0.0, 2.0, 3), ("geomspace", 1.0, 8.0, 4), ("eye", 3), ("identity", 3), ("tri", 3),
    ("zeros", (2, 3)), ("ones", (2, 3)), ("full", (2, 3), 1.5), ("full_like", X, 2.0),
    ("array", [1, 2.5]),
    ("bartlett", 5), ("blackman", 5), ("hamming", 5), ("hanning", 5), ("kaiser", 5, 3.0),
    ("diagflat", V), ("fill_diagonal", S, 0.0, {"inplace": False}), ("histogram2d", V, V, 3),
    ("histogramdd", X, 3), ("nextafter", X, Y), ("partition", V, 2), ("argpartition", V, 2),
    ("roots", V), ("spacing", X), ("trim_zeros", V), ("unique_counts", I), ("unstack", X),
    ("place", X, B, V, {"inplace": False}), ("put", X, K, V, {"inplace": False}),
    ("put_along_axis", X, I[:, :1] % 4, 0.0, 1, {"inplace": False}),
    ("compress", K > 0, X, {"axis": 0}),
    ("extract", B, X), ("result_type", "int32", "float16"), ("matvec", X, Y[0]),
    ("vecmat", V[:3], X), ("broadcast_shapes", (3, 1), (4,)), ("astype", X, "int32"),
    ("promote_types", "int32", "float16"), ("can_cast", "int8", "int32"),
    *[(name, X, share, {"method": method, "axis": 1})
      for name, share in (("quantile", 0.3), ("percentile", 30.0), ("nanquantile", 0.3))
      for method in ("lower", "higher", "nearest", "midpoint")],
    ("sort", X, {"stable": True}), ("argsort", I, {"stable": True}), ("std", X, {"correction": 1}),
    ("diff", X, {"prepend": X[:, :1], "append": X[:, :2]}), ("diff", V, {"prepend": 0.5}),
    ("repeat", X, K, {"axis": 0, "total_repeat_length": 5}),
    ("cov", X, Y), ("cov", V), ("cov", X, {"bias": True, "aweights": np.abs(X[0])}),
    ("cov", X, {"fweights": J[0], "ddof": 0}), ("corrcoef", V, V ** 2),
    ("einsum", "ij,kj,k->i", X, Y, Y[:, 0]), ("einsum", X, [0, 1], Y, [2, 1], [0, 2]),
]

LINALG = [
    *each("det inv slogdet norm matrix_rank cond svdvals qr pinv matrix_norm matrix_transpose "
          "trace "
          "diagonal", S),
    *each("cholesky eigvalsh", D), ("eigh", D), ("svd", X, {"full_matrices": False}),
    ("solve", S, D), ("lstsq", X, X[:, 0]), ("matrix_power", S, 3), ("multi_dot", [S, D, S]),
    ("norm", X, {"ord": "nuc"}), ("norm", X, {"ord": 2}), ("norm", V, {"ord": 3}),
    ("vector_norm", V),
    ("outer", V, V), ("cross", S, S), ("tensordot", S, S), ("vecdot", S, S), ("matmul", S, S),
    ("tensorinv", S.reshape(3, 3), {"ind": 1}), ("tensorsolve", S, S[0]), ("eig", S),
    ("eigvals", S),
]

SPECIAL = [
    *each("gammaln digamma erf erfc i0 i0e i1 i1e expit ndtr log_ndtr logsumexp softmax "
          "log_softmax "
          "gamma factorial", X),
    *each("logit erfinv ndtri entr", P), *each("betaln beta xlogy xlog1py rel_entr kl_div gammainc "
                                               "gammaincc poch", U, U.T.reshape(3, 4)),
    ("betainc", U, U, P), ("zeta", U, U), ("polygamma", 1, U), ("gammasgn", X),
    ("multigammaln", U + 2, 3),
    ("expi", U), ("expn", 2, U), ("sici", U), ("spence", U), ("bernoulli", 4), ("comb", 5, 2),
]

Q = RNG.standard_normal((2, 3, 4, 6)).astype("float32")     # queries of four heads
G = RNG.standard_normal((2, 5, 2, 6)).astype("float32")     # keys that pairs of them share

FFT = [*each("fft rfft ihfft fftn rfftn fft2 rfft2 ifft ifftn ifft2 fftshift ifftshift", X),
       *each("irfft hfft irfftn irfft2", X), ("fft", X, {"n": 3, "axis": 0, "norm": "ortho"}),
       ("fftfreq", 5), ("rfftfreq", 6)]

NN = [
    ("dot_product_attention", Q, G, G, {"is_causal": True, "scale": 0.5}),
    ("dot_product_attention", Q, G, G, {"local_window_size": (2, 1)}),
    ("dot_product_attention", Q, G, G, Q[:, :1, :, :5].swapaxes(1, 2), {"return_residual": True}),
    *each("relu sigmoid tanh silu swish softplus elu gelu softmax log_softmax logsumexp leaky_relu "
          "relu6 selu celu glu hard_sigmoid hard_silu hard_swish hard_tanh log_sigmoid soft_sign "
          "mish squareplus standardize sparse_plus sparse_sigmoid identity logmeanexp", X),
    *each("relu relu6 leaky_relu softplus elu celu selu gelu softmax hard_tanh hard_sigmoid "
          "log_sigmoid soft_sign squareplus mish identity", I),
    *each("relu relu6 leaky_relu elu hard_tanh softplus selu sparse_plus", np.array(
        [-3, -1, -0.5, 0, 0.5, 1, 6], "float32")),
    *each("softmax logsumexp logmeanexp", X, {"axis": 0, "where": B}),
    ("log1mexp", U), ("leaky_relu", X, 0.2), ("elu", X, 0.5), ("celu", X, 2.0), ("gelu", X, False),
    ("squareplus", X, 1.0), ("standardize", X, 0), ("standardize", X, {"where": B}),
    ("one_hot", K, 4), ("one_hot", K, 4, {"axis": 0, "dtype": "int32"}),
]

LAX = [
    *each("abs neg sign exp expm1 sin cos tan tanh sinh cosh floor ceil round is_finite square erf "
          "erfc logistic cbrt lgamma digamma bessel_i0e bessel_i1e asinh atan stop_gradient", X),
    *each("log log1p sqrt rsqrt acosh", U), *each("asin acos atanh erf_inv", P),
    *each("add sub mul div max min atan2 rem eq ne lt le gt ge nextafter", X, Y), ("pow", U, Y),
    ("integer_pow", X, 3), ("clamp", -0.5, X, 0.5), ("select", B, X, Y), ("reshape", X, (4, 3)),
    ("transpose", X, (1, 0)), ("rev", X, (0,)), ("broadcast", X, (2,)), ("concatenate", [X, Y], 0),
    ("slice", X, (0, 1), (2, 3)), ("dynamic_slice", X, (1, 1), (2, 2)), ("cumsum", X),
    ("cumprod", X),
    ("cummax", X), ("cummin", X), ("cumlogsumexp", X), ("argmax", X, 0, "int32"), ("sort", X),
    ("top_k", V, 3), ("dot", X, Y.T), ("expand_dims", X, (0,)), ("squeeze", X[None], (0,)),
    ("iota", "float32", 5), ("full", (2,), 1.5), ("broadcast_in_dim", V, (2, 6), (1,)),
    ("betainc", U, U, P),
    ("igamma", U, U), ("igammac", U, U), ("population_count", I), ("clz", I),
    ("dynamic_index_in_dim", X, 1), ("dynamic_update_slice", X, Y[:1, :1], (1, 1)),
    ("bitcast_convert_type", X, "int32"), ("bitcast_convert_type", X, "uint8"),
    ("reduce", X, np.float32(0), operator.add, (0,)),
    ("reduce", X, np.float32(1), operator.mul, (0, 1)), ("round", np.float32([-1.5, 0.5, 2.5])),
    *[("associative_scan", operator.matmul, X.reshape(3, 2, 2), {"reverse": reverse})
      for reverse in (False, True)],
    ("conv_general_dilated_patches", Q, (3, 2), (1, 2), "SAME"),
    ("conv_general_dilated_patches", Q, (2, 2), (1, 1), "VALID", {"rhs_dilation": (2, 1)}),
]

SIGNAL = [(name, X, Y[:2, :3], {"mode": mode}) for mode in ("full", "same", "valid")
          for name in ("convolve", "correlate", "convolve2d", "correlate2d", "fftconvolve")]

IMAGE = [("resize", X, shape, method) for shape in ((7, 2), (2, 5))
         for method in ("nearest", "linear", "cubic", "lanczos3", "lanczos5")]

NDIMAGE = [("map_coordinates", X, Y[:2, :3], order, mode) for order in (0, 1)
           for mode in ("constant", "nearest", "wrap", "mirror", "reflect")]

# (name, *arguments behind the key)
RANDOM = [
    *each("uniform normal exponential gumbel laplace bits cauchy logistic maxwell rademacher",
        (5,)),
    ("randint", (5,), 0, 9), ("bernoulli", 0.3, (5,)), ("permutation", 6), ("choice", 6, (3,)),
    ("categorical", V), ("truncated_normal", -1.0, 2.0, (5,)), ("split",), ("fold_in", 3),
    ("gamma", 2.0, (5,)), ("gamma", 0.3, (5,)), ("loggamma", 0.3, (5,)), ("beta", 2.0, 3.0, (5,)),
    ("dirichlet", P[0], (2,)), ("poisson", 3.0, (5,)), ("poisson", 50.0, (5,)), ("t", 3.0, (5,)),
    ("f", 3.0, 4.0, (5,)), ("chisquare", 3.0, {"shape": (5,)}), ("pareto", 2.0, (5,)),
    ("weibull_min", 2.0, 3.0, (5,)), ("rayleigh", np.float32(2.0), (5,)),
    ("wald", np.float32(2.0), (5,)),
    ("double_sided_maxwell", 1.0, 2.0, (5,)), ("geometric", 0.3, (5,)), ("lognormal", 1.0, (5,)),
    ("triangular", 0.0, 1.0, 3.0, (5,)), ("orthogonal", 3), ("ball", 3),
    ("generalized_normal", 3.0, (5,)),
    ("multivariate_normal", V[:3], D), ("binomial", 10.0, 0.3, (5,)),
    ("multinomial", 10, P[0] / P[0].sum()),
]

LAX_LINALG = [
    ("cholesky", D), ("lu", S), ("lu_pivots_to_permutation", np.int32([2, 1]), 4),
    ("qr", S), ("svd", S, {"compute_uv": False}), ("triangular_solve", S, S),
    ("eigh", D), ("tridiagonal_solve", D[0], D[1] + 4, D[2], S),
]

SCIPY_LINALG = [
    ("cholesky", D), ("cho_factor", D), ("lu", S), ("lu_factor", S),
    ("solve", S, X), ("solve_triangular", S, X), ("qr", S), ("det", S),
    ("inv", S), ("eigh", D, {"eigvals_only": True}), ("expm", S),
    ("block_diag", S, X),
]

GROUPS = {"numpy": NUMPY, "numpy.linalg": LINALG, "numpy.fft": FFT, "scipy.special": SPECIAL,
          "scipy.linalg": SCIPY_LINALG, "scipy.signal": SIGNAL,
          "scipy.ndimage": NDIMAGE, "image": IMAGE, "nn": NN, "lax": LAX,
          "lax.linalg": LAX_LINALG, "random": RANDOM}

REASONS = {
    "numpy.linalg.lstsq": "residuals as NumPy gives them: none without more rows than columns",
    "scipy.linalg.cholesky": "of the symmetric part; jax's is of the triangle that it reads",
    "scipy.linalg.cho_factor": "of the symmetric part; jax's is of the triangle that it reads",
    "scipy.special.spence": "jax's is NaN between 1 and 2",
    "random.binomial": "the distribution is equal, the algorithm another",
    "random.multinomial": "the distribution is equal, the algorithm another",
    "numpy.partition": "more is sorted than asked for",
    "numpy.argpartition": "more is sorted than asked for",
}
