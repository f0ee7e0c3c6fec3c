"""JSON Schema 2020-12 as packages use it (P8): strict JSON and the rules of the meta-schema."""
