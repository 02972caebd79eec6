"""Convolutions of several kinds: forward, and the gradients of the images and of the kernel.

Images are (N, H, W, C) for fgrad and jax, and the same bytes seen as (N, C, H, W) for torch, whose
results are compared in the order of fgrad's.
"""

from dataclasses import dataclass

from ..workload import Workload

NHWC = ("NHWC", "HWIO", "NHWC")


@dataclass(frozen=True)
class Kind:
    """One convolution: images size², channels in and out, a kernel of window²."""
    batch: int
    size: int
    channels: int
    filters: int
    window: int
    stride: int = 1
    dilation: int = 1
    groups: int = 1
    transposed: bool = False

    @property
    def margin(self):
        """Padding on every side."""
        return self.dilation * (self.window - 1) // 2

    @property
    def out(self):
        if self.transposed:
            return self.size * self.stride
        return (self.size + 2 * self.margin - self.dilation * (self.window - 1) - 1
                ) // self.stride + 1

    @property
    def images(self):
        return self.batch, self.size, self.size, self.channels

    @property
    def kernel(self):
        return self.window, self.window, self.channels // self.groups, self.filters

    @property
    def results(self):
        return self.batch, self.out, self.out, self.filters

    @property
    def flops(self):
        places = self.size if self.transposed else self.out
        return (2 * self.batch * places**2 * self.window**2
                * self.channels * self.filters // self.groups)

    def inputs(self, rng):
        return tuple(rng.standard_normal(shape, "float32")
                     for shape in (self.images, self.kernel, self.results))


KINDS = {
    "3x3": Kind(16, 28, 64, 64, 3),
    "1x1": Kind(16, 28, 128, 128, 1),
    "5x5": Kind(16, 28, 32, 64, 5),
    "strided": Kind(16, 28, 64, 128, 3, stride=2),
    "dilated": Kind(16, 28, 64, 64, 3, dilation=2),
    "depthwise": Kind(16, 28, 128, 128, 3, groups=128),
    "transposed": Kind(16, 14, 128, 64, 2, stride=2, transposed=True),
}


def jax_convolution(kind, lib):
    """f(x, w) for fgrad and jax."""
    stride, pad = (kind.stride, kind.stride), [(kind.margin, kind.margin)] * 2
    if kind.transposed:
        return lambda x, w: lib.lax.conv_transpose(x, w, stride, "VALID", dimension_numbers=NHWC)
    return lambda x, w: lib.lax.conv_general_dilated(
        x, w, stride, pad, rhs_dilation=(kind.dilation, kind.dilation), dimension_numbers=NHWC,
        feature_group_count=kind.groups)


def torch_convolution(kind, torch):
    """f(x, w) on torch's order of axes."""
    functional = torch.nn.functional
    if kind.transposed:
        return lambda x, w: functional.conv_transpose2d(x, w, stride=kind.stride)
    return lambda x, w: functional.conv2d(x, w, None, kind.stride, kind.margin, kind.dilation,
                                          kind.groups)


def torch_arrays(kind, torch, x, w, ct):
    """The arrays with channels first, laid out with channels last."""
    last = torch.channels_last
    kernel = w.flip(0, 1).permute(2, 3, 0, 1) if kind.transposed else w.permute(3, 2, 0, 1)
    return (x.permute(0, 3, 1, 2).contiguous(memory_format=last),
            kernel.contiguous(memory_format=last),
            ct.permute(0, 3, 1, 2).contiguous(memory_format=last))


def forward(kind):
    def jax(lib, x, w, ct):
        return lib.jit(jax_convolution(kind, lib)), x, w

    def torch(torch, *arrays):
        x, w, _ = torch_arrays(kind, torch, *arrays)
        convolution = torch_convolution(kind, torch)
        return lambda x, w: convolution(x, w).permute(0, 2, 3, 1), x, w
    return {"jax": jax, "torch": torch}


def gradient(kind, which):
    """The gradient of the images (0) or of the kernel (1)."""
    def jax(lib, x, w, ct):
        function = jax_convolution(kind, lib)
        fixed = (lambda x: lambda w: function(x, w)) if which else (
            lambda w: lambda x: function(x, w))

        def pulled_back(x, w, ct):
            other, own = (x, w) if which else (w, x)
            return lib.vjp(fixed(other), own)[1](ct)[0]
        return lib.jit(pulled_back), x, w, ct

    def torch(torch, *arrays):
        x, w, ct = torch_arrays(kind, torch, *arrays)
        order = (0, 2, 3, 1) if not which else (2, 3, 0, 1) if kind.transposed else (2, 3, 1, 0)

        def pulled_back(x, w, ct):
            stride, pad = [kind.stride] * 2, [0 if kind.transposed else kind.margin] * 2
            found = torch.ops.aten.convolution_backward(
                ct, x, w, None, stride, pad, [kind.dilation] * 2, kind.transposed, [0, 0],
                kind.groups, [which == 0, which == 1, False])[which]
            found = found.permute(order)
            return found.flip(0, 1) if which and kind.transposed else found
        return pulled_back, x, w, ct
    return {"jax": jax, "torch": torch}


def workloads(name, kind):
    """Forward, gradient of the images, gradient of the kernel."""
    return [Workload(f"conv_{name}", forward(kind), kind.inputs, flops=kind.flops),
            *[Workload(f"conv_{name}_grad_{what}", gradient(kind, which), kind.inputs,
                       flops=kind.flops, tolerance=1e-3) for which, what in enumerate("xw")]]


WORKLOADS = [each for name, kind in KINDS.items() for each in workloads(name, kind)]
