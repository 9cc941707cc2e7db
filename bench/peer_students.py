"""Distillation steps in PyTorch, in its efficient idioms: what `retort bench --student ... --objective ... --perturb ...` does.

    latent-be:M, batch-ensemble:M   the batch is tiled member-major; a layer computes ((x o r) W + b) o s; BN is shared
    hydra:M                         an mlp up to its last hidden layer, then one batched product for all M output layers
    single                          kd to the mean of stored teachers

The loss is T^2 times the mean cross-entropy of member m to teacher m at T = 4 (kd: to the mean teacher). Teachers are stored outputs, or
networks in evaluation mode that run in the step (--online, or a perturbation). tdiv-sdiv computes only what it needs: two teachers and two
members of the student in evaluation mode, and the input gradient through one of each.
"""
import torch
from torch import nn
from torch.nn import functional as F

TEMPERATURE = 4.0


class Ensembled(nn.Module):
    """A Linear or Conv2d with rank-one factors per member, on a batch tiled member-major, or on one member's rows."""

    def __init__(self, layer, members):
        super().__init__()
        self.layer, self.members = layer, members
        conv = isinstance(layer, nn.Conv2d)
        self.shape = (-1, 1, 1) if conv else (-1,)
        self.r = nn.Parameter(torch.ones(members, layer.in_channels if conv else layer.in_features))
        self.s = nn.Parameter(torch.ones(members, layer.out_channels if conv else layer.out_features))
        self.one = None

    def scale(self, x, f):
        if self.one is not None:
            return x * f[self.one].view(self.shape)
        return (x.view(self.members, -1, *x.shape[1:]) * f.view(self.members, 1, *self.shape)).view_as(x)

    def forward(self, x):
        return self.scale(self.layer(self.scale(x, self.r)), self.s)


def ensemble(net, members):
    for name, child in list(net.named_children()):
        if isinstance(child, (nn.Conv2d, nn.Linear)):
            setattr(net, name, Ensembled(child, members))
        else:
            ensemble(child, members)
    return net


def choose(net, member):
    for layer in net.modules():
        if isinstance(layer, Ensembled):
            layer.one = member


class HydraMlp(nn.Module):
    def __init__(self, mlp, members):
        super().__init__()
        self.body = mlp.layers[:-1]
        last = mlp.layers[-1]
        self.weight = nn.Parameter(last.weight.detach().t().repeat(members, 1, 1))
        self.bias = nn.Parameter(last.bias.detach().repeat(members, 1, 1))

    def forward(self, x):
        for layer in self.body:
            x = F.relu(layer(x))
        return torch.baddbmm(self.bias, x.expand(len(self.weight), -1, -1), self.weight).flatten(0, 1)


def cross_entropy(target, logits, temperature):
    return -(F.softmax(target / temperature, 1) * F.log_softmax(logits / temperature, 1)).sum(1)


def train_student(a, build, optimiser):
    kind, _, number = a.student.partition(":")
    members = int(number or 1)
    net = build(a.arch, a.shape, a.classes)
    if kind in ("latent-be", "batch-ensemble"):
        net = ensemble(net, members)
    elif kind == "hydra":
        net = HydraMlp(net, members)
    net.train()
    perturbs = a.perturb not in ("", "none")
    teachers = members if members > 1 else 4
    nets = [build(a.arch, a.shape, a.classes).eval().requires_grad_(False) for _ in range(teachers)] if perturbs or a.online else None
    x = torch.rand(a.batch, *a.shape) - 0.5
    if a.format == "channels_last" and x.dim() == 4:
        x = x.contiguous(memory_format=torch.channels_last)
        for n in [net, *(nets or [])]:
            n.to(memory_format=torch.channels_last)
    y = torch.randint(a.classes, (a.batch,))
    stored = torch.randn(teachers * a.batch, a.classes)
    opt = optimiser(net.parameters())
    tiles = members if kind in ("latent-be", "batch-ensemble") else 1

    def answers(images):
        if nets is None:
            return stored
        with torch.no_grad():
            return torch.cat([n(images) for n in nets])

    def diversify(images):
        images = images.detach().requires_grad_()
        net.eval()
        with torch.no_grad():
            target = nets[1](images)
            choose(net, 1)
            own = net(images)
        choose(net, 0)
        loss = cross_entropy(target, nets[0](images), 1.0).sum() - cross_entropy(own, net(images), 1.0).sum()
        (g,) = torch.autograd.grad(loss, images)
        choose(net, None)
        net.train()
        size = images[0].numel()**0.5 / 255
        g = g / (g.flatten(1).norm(dim=1) + 1e-12).view(-1, *[1] * (g.dim() - 1)) * size
        return (images.detach() + g).clamp(0, 1)

    def step():
        opt.zero_grad(set_to_none=True)
        images = diversify(x) if perturbs else x
        target = answers(images) if a.objective != "labels" else None
        logits = net(images.repeat(tiles, *[1] * (images.dim() - 1)) if tiles > 1 else images)
        if a.objective == "labels":
            loss = F.cross_entropy(logits, y.repeat(members))
        elif a.objective == "kd":
            mean = F.softmax(target / TEMPERATURE, 1).view(teachers, a.batch, -1).mean(0)
            loss = -TEMPERATURE**2 * (mean * F.log_softmax(logits / TEMPERATURE, 1)).sum(1).mean()
        else:
            loss = TEMPERATURE**2 * cross_entropy(target, logits, TEMPERATURE).mean()
        loss.backward()
        opt.step()
    return step
