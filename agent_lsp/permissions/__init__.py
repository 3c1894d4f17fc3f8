"""Who may do what: ``rules`` reads and matches rules, ``policy`` judges an action, ``grants`` remembers answers,
``shell_syntax`` says what a command line certainly is."""
