"""Moto as the tests run it: quicker where it takes long over nothing, and, as a server, one request at a time.

Moto copies a whole table, item by item, once for each item of a transaction, to put the copy in the table's place
should the transaction be cancelled. A transaction changes the items that it names and no others: here these alone are
copied before, and put back after a cancelled one. And for each attribute that it answers, moto looks for all ten types
that an attribute may have, under all names that they may have in a Python object; here an attribute is answered as it
is kept. Together that halves the time that a test of jobs takes.

As a program this is moto's server, one request at a time: moto looks and writes in two steps without a lock, and a
cancelled transaction puts back the table whatever others wrote meanwhile.

```sh
python -m tests.servers.moto_ours HOST PORT
```
"""

from __future__ import annotations

import copy
import os
import sys
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


@contextmanager
def quickened() -> Iterator[None]:
    """Within the block moto copies no tables, and writes attributes into its answers as they are."""
    from moto.core.serialize import BaseJSONSerializer  # noqa: PLC0415 - takes half a second, and few tests need it
    from moto.dynamodb.models import DynamoDBBackend  # noqa: PLC0415 - the same
    from moto.dynamodb.models.dynamo_type import DynamoType  # noqa: PLC0415 - the same
    from moto.dynamodb.models.table import Table  # noqa: PLC0415 - the same

    transact = DynamoDBBackend.transact_write_items
    write = BaseJSONSerializer._serialize_type_structure

    def transact_quickly(backend: Any, actions: list[dict[str, Any]]) -> None:
        found = [_found(backend, one) for action in actions for one in action.values()]
        try:
            transact(backend, actions)
        except BaseException:
            for table, pk, sk, item in found:
                table.delete_item(pk, sk)
                if item is not None:
                    table.items[pk][sk] = item
            raise

    def write_quickly(serializer: Any, serialized: dict[str, Any], value: Any, shape: Any, key: str) -> None:
        if shape.name == "AttributeValue":
            serialized[key] = value.to_regular_json() if isinstance(value, DynamoType) else value
        else:
            write(serializer, serialized, value, shape, key)

    with (
        mock.patch.object(Table, "__deepcopy__", lambda table, _memo: table, create=True),
        mock.patch.object(DynamoDBBackend, "transact_write_items", transact_quickly),
        mock.patch.object(BaseJSONSerializer, "_serialize_type_structure", write_quickly),
    ):
        yield


def _found(backend: Any, write: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
    """Answer the table, the key and a copy of the item that a write of a transaction is about."""
    table = backend.get_table(write["TableName"])
    pk, sk = backend.get_keys_value(table, write.get("Key") or write["Item"])
    return table, pk, sk, copy.deepcopy(table.get_item(pk, sk))


class OneAtATime:
    """A WSGI application whose requests wait for each other.

    Args:
        application: the application; its answers are complete when it returns.
    """

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application
        self._lock = Lock()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a request."""
        with self._lock:
            return list(self._application(environ, start))


def main(host: str, port: str) -> None:
    """Serve until the process is ended."""
    os.environ["MOTO_PORT"] = port
    from moto.moto_server.werkzeug_app import (  # noqa: PLC0415 - it reads the port when it is loaded
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import run_simple  # noqa: PLC0415 - the same

    application = OneAtATime(DomainDispatcherApplication(create_backend_app))
    with quickened():
        run_simple(host, int(port), application, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    main(*sys.argv[1:])
