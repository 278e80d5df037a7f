"""Template filters and tags of the house."""

from django import template

register = template.Library()
