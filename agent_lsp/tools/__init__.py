"""The tools that the model sees: ``base`` says what a tool is, ``registry`` prepares calls, one tool a file."""
