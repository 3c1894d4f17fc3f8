"""Settings from all layers: ``schema`` says what there is, ``load`` merges the layers and reports what is wrong."""
