"""The command line front: ``main`` reads arguments, its siblings are the commands, ``terminal`` is the human's door."""
