"""Layers, activations, losses and initialisers: pure functions over pytrees of parameters."""

from . import init
from .activations import (elu, gelu, leaky_relu, log_softmax, logsumexp, one_hot, relu, sigmoid,
                          silu, softmax, softplus, swish, tanh)
from .conv import Conv, Conv1d, Conv2d, Conv3d, ConvTranspose, DepthwiseSeparable
from .layers import Activation, Dense, Dropout, Flatten, Layer, Linear, Sequential
from .losses import (accuracy, mean_squared_error, sigmoid_binary_cross_entropy,
                     softmax_cross_entropy, softmax_cross_entropy_with_integer_labels,
                     squared_error)
from .norm import BatchNorm, GroupNorm, LayerNorm, RMSNorm
from .pool import AdaptiveAvgPool, AvgPool, GlobalAvgPool, MaxPool

__all__ = [
    "Activation", "AdaptiveAvgPool", "AvgPool", "BatchNorm", "Conv", "Conv1d", "Conv2d", "Conv3d",
    "ConvTranspose", "Dense", "DepthwiseSeparable", "Dropout", "Flatten", "GlobalAvgPool",
    "GroupNorm", "Layer", "LayerNorm", "Linear", "MaxPool", "RMSNorm", "Sequential", "accuracy",
    "elu", "gelu", "init", "leaky_relu", "log_softmax", "logsumexp", "mean_squared_error",
    "one_hot", "relu", "sigmoid", "sigmoid_binary_cross_entropy", "silu", "softmax",
    "softmax_cross_entropy", "softmax_cross_entropy_with_integer_labels", "softplus",
    "squared_error", "swish", "tanh",
]
