"""What detection knows of each language; ``agent_lsp.validation.detect`` puts it together. Nothing is ever run."""
