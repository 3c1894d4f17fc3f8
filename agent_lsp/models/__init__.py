"""Model endpoints behind one protocol: ``base`` says what a model is, ``openai_chat`` is the only file that knows
the wire, ``scripted`` plays a script without a network."""
