"""The project's architectures in PyTorch, with the same parameter names and shapes: what the parity test and the
benchmarks compare with. Each function returns an nn.Module; forward takes (n, c, h, w), the mlp also (n, f)."""
from torch import nn
from torch.nn import functional as F


class Mlp(nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        sizes = [inputs, *hidden, outputs]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        x = x.flatten(1)
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


class Vgg16(nn.Module):
    PLAN = [64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M"]

    def __init__(self, channels, outputs, dropout=0.0):
        super().__init__()
        self.dropout = dropout
        modules = []
        for width in self.PLAN:
            if width == "M":
                modules.append(nn.MaxPool2d(2))
            else:
                modules += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.LeakyReLU(0.2)]
                channels = width
        self.features = nn.Sequential(*modules)
        drop, act = nn.Dropout(dropout), nn.LeakyReLU(0.2)
        self.classifier = nn.Sequential(nn.Linear(512, 2048), act, drop, nn.Linear(2048, 2048), act, drop,
                                        nn.Linear(2048, outputs))

    def forward(self, x):
        p = max(self.dropout - 0.3, 0.2) if self.dropout > 0 else 0.0
        for module in self.features:
            if isinstance(module, nn.MaxPool2d) and min(x.shape[2:]) < 2:
                continue
            x = module(x)
            if isinstance(module, nn.LeakyReLU) and p > 0:
                x = F.dropout(x, p, self.training)
        return self.classifier(x.mean((2, 3)))


class Block(nn.Module):
    """Basic or bottleneck residual block, post-activation."""

    def __init__(self, inputs, width, stride, bottleneck, bias, shortcut_norm, **norm):
        super().__init__()
        out = width * (4 if bottleneck else 1)
        shape = [(1, width, 1), (3, width, stride), (1, out, 1)] if bottleneck else [(3, width, stride), (3, out, 1)]
        self.count, last = len(shape), inputs
        for i, (k, w, s) in enumerate(shape, 1):
            setattr(self, f"conv{i}", nn.Conv2d(last, w, k, s, k // 2, bias=bias))
            setattr(self, f"bn{i}", nn.BatchNorm2d(w, **norm))
            last = w
        self.downsample = None
        if stride != 1 or inputs != out:
            parts = [nn.Conv2d(inputs, out, 1, stride, bias=bias)]
            self.downsample = nn.Sequential(*parts, *([nn.BatchNorm2d(out, **norm)] if shortcut_norm else []))

    def forward(self, x):
        y = x
        for i in range(1, self.count + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            y = F.relu(y) if i < self.count else y
        return F.relu(y + (self.downsample(x) if self.downsample is not None else x))


class ResNet(nn.Module):
    def __init__(self, channels, outputs, blocks, width, large, bottleneck=False, bias=False, shortcut_norm=True, **norm):
        super().__init__()
        self.large, self.groups = large, len(blocks)
        k, s = (7, 2) if large else (3, 1)
        self.conv1 = nn.Conv2d(channels, width, k, s, k // 2, bias=bias)
        self.bn1 = nn.BatchNorm2d(width, **norm)
        last = width
        for i, n in enumerate(blocks):
            group = []
            for j in range(n):
                group.append(Block(last, width << i, 2 if i and not j else 1, bottleneck, bias, shortcut_norm, **norm))
                last = (width << i) * (4 if bottleneck else 1)
            setattr(self, f"layer{i + 1}", nn.Sequential(*group))
        self.fc = nn.Linear(last, outputs)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.max_pool2d(x, 3, 2, 1) if self.large else x
        for i in range(self.groups):
            x = getattr(self, f"layer{i + 1}")(x)
        return self.fc(x.mean((2, 3)))


class WideBlock(nn.Module):
    def __init__(self, inputs, width, stride, dropout):
        super().__init__()
        self.dropout = dropout
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.shortcut = nn.Conv2d(inputs, width, 1, stride, bias=False) if stride != 1 or inputs != width else None

    def forward(self, x):
        y = self.conv1(F.relu(self.bn1(x)))
        y = F.dropout(y, self.dropout, self.training) if self.dropout > 0 else y
        y = self.conv2(F.relu(self.bn2(y)))
        return y + (x if self.shortcut is None else self.shortcut(x))


class WideResNet(nn.Module):
    def __init__(self, channels, outputs, depth, width, dropout=0.0):
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise ValueError(f"depth {depth}, wanted 6n + 4")
        self.conv1 = nn.Conv2d(channels, 16, 3, 1, 1, bias=False)
        last = 16
        for i in range(3):
            out, group = (16 << i) * width, []
            for j in range((depth - 4) // 6):
                group.append(WideBlock(last, out, 2 if i and not j else 1, dropout))
                last = out
            setattr(self, f"layer{i + 1}", nn.Sequential(*group))
        self.bn = nn.BatchNorm2d(last)
        self.fc = nn.Linear(last, outputs)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.conv1(x))))
        return self.fc(F.relu(self.bn(x)).mean((2, 3)))


def mlp(hidden, inputs, outputs):
    return Mlp(inputs, hidden, outputs)


def vgg16(channels, outputs, dropout=0.0):
    return Vgg16(channels, outputs, dropout)


def resnet20(channels, outputs):
    return ResNet(channels, outputs, [3, 3, 3], 16, False, bias=True, shortcut_norm=False, eps=1e-3, momentum=0.01)


def resnet18(channels, outputs, large=False):
    return ResNet(channels, outputs, [2, 2, 2, 2], 64, large)


def resnet50(channels, outputs, large=False):
    return ResNet(channels, outputs, [3, 4, 6, 3], 64, large, bottleneck=True)


def wrn(depth, width, channels, outputs, dropout=0.0):
    return WideResNet(channels, outputs, depth, width, dropout)
