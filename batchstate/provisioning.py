"""Provisioning: what an adapter may offer to whoever sets a store up and looks after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from batchstate.urls import adapter_named

if TYPE_CHECKING:
    from batchstate.urls import StorageURL

__all__ = ["Described", "Provisioned", "adapter_of"]


@runtime_checkable
class Provisioned(Protocol):
    """A storage class whose store must be made before it can be used."""

    def provision(self, url: StorageURL, *, recovery: bool) -> list[str]:
        """Create what is lacking, idempotently, and answer what was done or is wrong, a sentence each."""

    def template(self, url: StorageURL, form: str) -> str:
        """Answer the same as a template: `"cloudformation"`, or the rights a worker needs as `"iam"`."""


@runtime_checkable
class Described(Protocol):
    """A storage that can tell of its store."""

    def describe(self) -> tuple[dict[str, str], list[str]]:
        """Answer facts by name, and a sentence for each setting that endangers data."""


def adapter_of(url: StorageURL) -> object:
    """Answer the storage class that a URL's scheme names; raises `InvalidValueError` as `open_storage` does."""
    return adapter_named(url.scheme)
