"""Publish packages, or claim a name without one, by one call each.

`publish` validates, signs, compares, plans, asks, uploads, commits, announces and waits; its
modules are these steps.
"""

from publisher.publish.claim import claim
from publisher.publish.plan import PublishPlan
from publisher.publish.publish import Publication, PublishStep, publish
from publisher.publish.upload import Uploader

__all__ = ["Publication", "PublishPlan", "PublishStep", "Uploader", "claim", "publish"]
