"""Converts OpenAPI documents (3.0, 3.1 and 3.2) to manifests whose tools are HTTP calls.

    documents → operations → arguments, results ← schemas
                          ↘ apis, naming → assembling → accepted

Operations with unsupported features are omitted, with a note on each feature.
"""
