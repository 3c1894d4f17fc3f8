"""Model endpoints behind one protocol: ``base`` says what a model is, ``scripted`` plays a script without a network,
and ``openai_chat`` talks to servers; only it and what it is made of (``encoding``, ``sse``, ``assembler``, ``reply``,
``faults``) know the wire."""
