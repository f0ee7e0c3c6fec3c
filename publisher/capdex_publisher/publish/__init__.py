"""Publish packages, or claim a name, by one call each; the modules are the steps."""

from capdex_publisher.publish.claim import claim
from capdex_publisher.publish.plan import PublishPlan
from capdex_publisher.publish.publish import Publication, PublishStep, publish
from capdex_publisher.publish.upload import Uploader

__all__ = ["Publication", "PublishPlan", "PublishStep", "Uploader", "claim", "publish"]
