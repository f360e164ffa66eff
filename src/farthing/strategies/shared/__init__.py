"""Common to the families of strategies: the base class, randomness, designs, surrogates and searches."""
