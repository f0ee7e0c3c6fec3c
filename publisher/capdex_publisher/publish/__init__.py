"""Publish packages, or claim a name without one, by one call each.

`publish` validates, signs, compares, plans, asks, uploads, commits, announces and waits; its
modules are these steps.
"""

from capdex_publisher.publish.claim import claim
from capdex_publisher.publish.plan import PublishPlan
from capdex_publisher.publish.publish import Publication, PublishStep, publish
from capdex_publisher.publish.upload import Uploader

__all__ = ["Publication", "PublishPlan", "PublishStep", "Uploader", "claim", "publish"]
