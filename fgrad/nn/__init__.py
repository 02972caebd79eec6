"""Layers, activations, losses and initialisers: pure functions over pytrees of parameters."""

import typing as _typing

from .. import later as _later
from ..errors import at_home as _at_home

if _typing.TYPE_CHECKING:                        # for editors; at run time see _NAMES
    from . import initializers
    from . import initializers as init
    from .activations import (
        celu, elu, gelu, glu, hard_shrink, hard_sigmoid, hard_silu, hard_swish, hard_tanh,
        identity, leaky_relu, log1mexp, log_sigmoid, log_softmax, logmeanexp, logsumexp,
        mish, one_hot, prelu, relu, relu6, selu, sigmoid, silu, soft_shrink, soft_sign,
        softmax, softplus, sparse_plus, sparse_sigmoid, squareplus, standardize, swish,
        tanh, tanh_shrink)
    from .attention import (
        Embedding, MultiHeadAttention, Positions, TransformerBlock, causal,
        dot_product_attention, rotary, sinusoidal_positions)
    from .combine import ChannelsFirst, Lambda, Parallel, Residual
    from .conv import Conv, Conv1d, Conv2d, Conv3d, ConvTranspose, DepthwiseSeparable
    from .layers import Activation, Dense, Dropout, Flatten, Layer, Linear, Sequential
    from .losses import (
        absolute_error, accuracy, cosine_distance, cosine_similarity, ctc, hinge, huber,
        kl_divergence, log_cosh, mean_absolute_error, mean_squared_error, nll, poisson_nll,
        sigmoid_binary_cross_entropy, sigmoid_focal, smoothed, softmax_cross_entropy,
        softmax_cross_entropy_with_integer_labels, squared_error, triplet)
    from .norm import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
    from .overview import count_params, summary
    from .parameters import filter, mask, merge, paths, split
    from .pool import (
        AdaptiveAvgPool, AdaptiveMaxPool, AvgPool, GlobalAvgPool, GlobalMaxPool, MaxPool)
    from .recurrent import GRU, LSTM, RNN, Bidirectional

_NAMES = {                 # module → what it gives; all of it is loaded at first use
    "initializers": "initializers init=initializers",
    "activations": """celu elu gelu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh
        identity leaky_relu log1mexp log_sigmoid log_softmax logmeanexp logsumexp mish one_hot
        prelu relu relu6 selu sigmoid silu soft_shrink soft_sign softmax softplus sparse_plus
        sparse_sigmoid squareplus standardize swish tanh tanh_shrink""",
    "attention": """Embedding MultiHeadAttention Positions TransformerBlock causal
        dot_product_attention rotary sinusoidal_positions""",
    "combine": "ChannelsFirst Lambda Parallel Residual",
    "conv": "Conv Conv1d Conv2d Conv3d ConvTranspose DepthwiseSeparable",
    "layers": "Activation Dense Dropout Flatten Layer Linear Sequential",
    "losses": """absolute_error accuracy cosine_distance cosine_similarity ctc hinge huber
        kl_divergence log_cosh mean_absolute_error mean_squared_error nll poisson_nll
        sigmoid_binary_cross_entropy sigmoid_focal smoothed softmax_cross_entropy
        softmax_cross_entropy_with_integer_labels squared_error triplet""",
    "norm": "BatchNorm GroupNorm InstanceNorm LayerNorm RMSNorm",
    "overview": "count_params summary",
    "parameters": "filter mask merge paths split",
    "pool": "AdaptiveAvgPool AdaptiveMaxPool AvgPool GlobalAvgPool GlobalMaxPool MaxPool",
    "recurrent": "GRU LSTM RNN Bidirectional",
}
if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _later.names(__name__, _NAMES, made=_at_home)
