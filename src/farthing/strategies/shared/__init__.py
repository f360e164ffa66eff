"""What the families of strategies share: the base class, randomness, designs, surrogates and searches."""
