"""DynamoDB emulators: moto over HTTP and inside this process, and dynalite.

```python
with DynaliteServer() as server:
    client = server.client()
    storage = open_storage(server.url("some-table"), queue="merges")
```
"""

import http.client
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock
from urllib.parse import urlencode

import boto3
from botocore.config import Config
from typing_extensions import override

from tests.servers.binaries import dynalite_program, node_binary
from tests.servers.controlled import ControlledServer
from tests.servers.moto_ours import quickened

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

REGION = "eu-west-1"

# No emulator checks them, and boto3 refuses to send anything without.
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "nobody",
    "AWS_SECRET_ACCESS_KEY": "nothing",
    "AWS_EC2_METADATA_DISABLED": "true",
}
_REAL_CREDENTIALS = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_CONFIG_FILE")
_PATIENCE = 5


@contextmanager
def dummy_credentials() -> Iterator[None]:
    """Within the block boto3 finds credentials in the environment that open nothing."""
    with mock.patch.dict(os.environ, CREDENTIALS):
        for name in _REAL_CREDENTIALS:
            os.environ.pop(name, None)
        yield


@contextmanager
def moto_in_process() -> Iterator["DynamoDBClient"]:
    """Within the block all boto3 clients of this process reach an emulator in it, first empty."""
    from moto import mock_aws  # noqa: PLC0415 - takes half a second, and few tests need it

    with dummy_credentials(), mock_aws(), quickened():
        yield boto3.client("dynamodb", region_name=REGION)


class DynamoEndpoint:
    """An emulator known by its address alone, such as `http://127.0.0.1:8000`."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    @property
    def endpoint(self) -> str:
        """Where requests are sent to."""
        return self._endpoint

    def url(self, table: str, **options: str | int) -> str:
        """Return the storage URL of a table, without credentials; `options` go into its query."""
        query = {"region": REGION, "endpoint": self.endpoint, **options}
        return f"dynamodb://{table}?{urlencode(query, safe=':/')}"

    def client(self, config: Config | None = None) -> "DynamoDBClient":
        """Return a new low-level client with credentials that open nothing."""
        client: DynamoDBClient = boto3.client(
            "dynamodb",
            region_name=REGION,
            endpoint_url=self.endpoint,
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            config=config,
        )
        return client


class _HttpServer(ControlledServer, DynamoEndpoint):
    def __init__(self, name: str) -> None:
        ControlledServer.__init__(self, name)
        DynamoEndpoint.__init__(self, endpoint="")

    @property
    @override
    def endpoint(self) -> str:
        return f"http://{self.host}:{self.port}"

    @override
    def answers(self) -> bool:
        return self._listens() and self._speaks_http()

    def _listens(self) -> bool:
        # Another server may have taken the port just before ours: so look at our process's sockets.
        import psutil  # noqa: PLC0415 - the unit tests load this module, and do without the package

        with suppress(psutil.Error):
            sockets = psutil.Process(self.process.pid).net_connections("tcp4")
            return any(each.status == psutil.CONN_LISTEN and each.laddr[1] == self.port for each in sockets)
        return False

    def _speaks_http(self) -> bool:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=_PATIENCE)
        try:
            connection.request("GET", "/")
            connection.getresponse().read()
        except OSError:
            return False
        finally:
            connection.close()
        return True


class MotoServer(_HttpServer):
    """Moto as a server over HTTP, in a process of its own, one request at a time; a restart empties it."""

    def __init__(self) -> None:
        super().__init__("moto")

    @override
    def command(self) -> list[str | Path]:
        return [sys.executable, Path(__file__).with_name("moto_ours.py"), self.host, str(self.port)]


class DynaliteServer(_HttpServer):
    """Dynalite, in memory; a restart empties it. It knows no transactions.

    Raises:
        FileNotFoundError: This machine lacks Node.js, or `install.sh` was not run.

    """

    def __init__(self) -> None:
        node, program = node_binary(), dynalite_program()
        if node is None or program is None:
            raise FileNotFoundError("this machine has no dynalite")
        self._program: list[str | Path] = [node, program]
        super().__init__("dynalite")

    @override
    def command(self) -> list[str | Path]:
        """Return the program; its tables are usable, and gone, at once."""
        waits = [f"--{verb}TableMs=0" for verb in ("create", "update", "delete")]
        return [*self._program, f"--host={self.host}", f"--port={self.port}", *waits]
