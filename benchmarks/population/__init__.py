"""Populations: on made-up landscapes, on CIFAR-10, on a lunar lander."""
